"""Reports in which bots have pseudonyms, and the file that keeps these."""

import csv
import random
import re
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from string import ascii_lowercase

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from referee.judge.record_rows import WireLine
from referee.judge.results import GameRecord
from tests.reporting.reports import (
    broken_links,
    files_of,
    made,
    page_at,
    pages_in,
    records_of,
    report,
    some,
    summary_of,
    write_store,
)
from tournaments.reporting.pseudonyms import (
    BIRDS,
    COLOURS,
    HEAD,
    KEY_FILE,
    PseudonymError,
    draw,
    pseudonyms_for,
)
from tournaments.reporting.site.anonymizer import SHORT_NAME, Anonymizer, case_class, name_pattern
from tournaments.results.game_summary import GameSummary
from tournaments.results.journal import BOT, Action, Entry
from tournaments.results.store import Store
from tournaments.schedule.plan import Plan

NAMES = ("Quixotic-7", "zyzzyva bot", "Ümläut<&>", 'it\'s "me"')
PRIVATE = ("private words", "the-lecturers-machine", "/home/", "/opt/python", "a note for", "d1g3st")


def telling(record: GameRecord) -> GameRecord:
    """Return a game with the bots' names in every text."""
    players = [replace(player, digest="d1g3st" * 5, how=f"found {player.name}") for player in record.players]
    names = [player.name for player in players]
    lines = [
        *record.wire,
        WireLine(1, "from", f"MOVE;1 by {names[1]}", 2600),
        WireLine(0, "from", f"{names[0].upper()}!{names[0].lower()}!", 2700),
    ]
    versions = {"built by": names[0]}
    return replace(record, players=(players[0], players[1]), wire=lines, versions=versions)


def telling_store(path: Path, names: tuple[str, ...] = NAMES, rounds: int = 1) -> Path:
    """Make a tournament with the bots' names in all texts of games and rulings."""
    add = {"bot": names[0], "base": "/home/x", "digest": "d1g3st", "replaces": names[1]}
    at = "2026-02-03T04:05:06+00:00"
    journal = [
        Entry(Action.VOID, "r001-1v2", f"{names[0]} complained", 1, at),
        Entry(Action.WITHDRAW, names[1], f"{names[1]} gave up", 1, at, {"annul": False}),
        Entry(Action.ADD, "late " + names[0], "joined", 1, at, add),
        Entry(Action.PAIR, names[0], "x", 1, at, {"opponent": "late " + names[0], "for_round": 2}),
    ]
    return write_store(
        path, names, some, journal=journal, changed=telling, name=f"Cup of {names[0]}", rounds=rounds
    )


def everything(site: Path) -> str:
    """Return the names and contents of a report's files, without the assets."""
    pages = [path for path in site.rglob("*") if "assets" not in path.parts]
    texts = [path.read_text(encoding="utf-8") for path in pages if path.is_file()]
    return "\n".join([*(str(path.relative_to(site)) for path in pages), *texts])


def written(name: str) -> set[str]:
    """Return the forms in which a name can be in a file."""
    escaped = name.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    json = name.encode("unicode_escape").decode()
    quoted = escaped.replace('"', "&#34;").replace("'", "&#39;")
    return {name, escaped, quoted, json, quoted.replace("&#34;", "&quot;").replace("&#39;", "&#x27;")}


def assert_anonymous(directory: Path, names: tuple[str, ...]) -> None:
    """Make the anonymous report, and assert that no name and nothing private is in it."""
    text = everything(made(directory, "--anonymous")).casefold()
    assert [form for name in names for form in written(name) if form.casefold() in text] == []
    assert [private for private in PRIVATE if private in text] == []


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return telling_store(tmp_path / "cup", rounds=2)


def test_nothing_shows_the_names(directory: Path) -> None:
    """A report with names has all of them, so the test looks for the right texts."""
    assert_anonymous(directory, NAMES)
    site = directory / "report-anonymous"
    assert broken_links(pages_in(site)) == []
    assert KEY_FILE not in files_of(site)
    text = everything(made(directory))
    assert all(any(form in text for form in written(name)) for name in NAMES)
    assert all(private in text for private in ("private words", "the-lecturers-machine", "/home/"))


def test_the_head_digest_is_in_the_report_with_names_alone(directory: Path) -> None:
    """It would show to everybody who has a copy of the results which tournament the report is about."""
    with Store(directory / "results.db", read_only=True) as store:
        head = store.head()
    assert head is not None
    assert head.digest in everything(made(directory))
    assert head.digest not in everything(made(directory, "--anonymous"))


@settings(max_examples=8)
@given(
    st.lists(
        st.text("abcXYZ<>&\"'ß .-", min_size=1, max_size=12).map(lambda text: f"qjx{text.strip()}xjq"),
        min_size=2,
        max_size=3,
        unique_by=str.casefold,
    )
)
def test_nothing_shows_any_names(names: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        assert_anonymous(telling_store(Path(folder) / "cup", tuple(names)), tuple(names))


@pytest.mark.parametrize("keeps", [{}, {"keeps_annulled": True}], ids=["of an earlier version", "today"])
@pytest.mark.parametrize("games", [{}, {"games": ["r001-1v2", "r001-4v1"]}], ids=["all games", "some games"])
def test_the_table_is_the_same_under_other_names(keeps: dict[str, object], games: dict[str, object]) -> None:
    """Whatever was annulled and restored."""
    at = "2026-02-03T04:05:06+00:00"
    journal = [
        Entry(Action.WITHDRAW, NAMES[0], "copied", 1, at, {"annul": True} | games),
        Entry(Action.WITHDRAW, NAMES[1], "copied", 1, at, {"annul": True}),
        Entry(Action.RESTORE, NAMES[0], "did not copy", 1, at, {"what": BOT} | keeps),
    ]
    before = summary_of(NAMES)
    kept = [GameSummary.of(record, number) for number, record in records_of(before, some)]
    results = replace(before, kept=kept, journal=journal)
    names = dict(zip(NAMES, BIRDS, strict=False))
    table = Anonymizer(names, NAMES).summary(results).table
    assert table == [
        replace(
            line,
            name=names[line.name],
            versus={names[opponent]: versus for opponent, versus in line.versus.items()},
        )
        for line in results.table
    ]


@pytest.mark.parametrize(
    ("parameters", "shown"),
    [
        ({"kind": "swiss", "scoring": "match"}, {"kind": "swiss", "scoring": "match"}),
        ({"kind": "knockout", "seeding": "random"}, {"kind": "knockout", "seeding": "random"}),
        (
            {"kind": "gauntlet", "challengers": ["random"]},
            {"kind": "gauntlet", "challengers": ["Amber Heron"]},
        ),
    ],
)
def test_bots_may_be_named_like_a_format_or_its_options(
    parameters: dict[str, object], shown: dict[str, object]
) -> None:
    names = {"random": "Amber Heron", "swiss": "Teal Tern", "match": "Azure Crane", "gauntlet": "Jade Ibis"}
    before = replace(summary_of(list(names)), plan=Plan(parameters))
    after = Anonymizer(names, list(names)).summary(before)
    assert after.plan == Plan(shown)
    assert {line.name for line in after.table} == set(names.values())


def test_pseudonyms_stay(directory: Path) -> None:
    first = files_of(made(directory, "--anonymous"))
    key = directory / KEY_FILE
    before = key.read_bytes()
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert files_of(made(directory, "--anonymous")) == first
    assert key.read_bytes() == before
    index = page_at(directory / "report-anonymous" / "index.html")
    shown = {row.cells[1].removesuffix("withdrawn").strip() for row in index.rows("standings")}
    assert shown == set(pseudonyms_for(key, NAMES).values())


def test_a_pseudonym_may_have_the_name_of_another_bot_in_it(tmp_path: Path) -> None:
    """The bot joined later than the pseudonym was drawn."""
    directory = write_store(tmp_path / "cup", ["alpha", "Falcon"], some)
    (directory / KEY_FILE).write_text("pseudonym,name\nAmber Falcon,alpha\nTeal Heron,Falcon\n")
    text = everything(made(directory, "--anonymous"))
    assert "Amber Falcon" in text
    assert "Amber Teal Heron" not in text


def test_numbers_in_keys_are_those_of_the_pseudonyms(tmp_path: Path) -> None:
    """The keys of games would show the order of the tournament file."""
    directory = write_store(tmp_path / "cup", [f"qjx{number}" for number in range(4)], some)
    rows = ["pseudonym,name", *(f"Teal Tern {number},qjx{3 - number}" for number in range(4))]
    (directory / KEY_FILE).write_text("\n".join(rows) + "\n", encoding="utf-8")
    page = page_at(made(directory, "--anonymous") / "games.html")
    games = {row.cells[0]: row.cells[1:3] for row in page.rows("games")}
    assert games["r001-1v2"] == ["Teal Tern 0", "Teal Tern 1"]
    assert games["r001-4v3"] == ["Teal Tern 3", "Teal Tern 2"]
    assert list(games) == sorted(games)


def test_another_key_file(directory: Path, tmp_path: Path) -> None:
    made(directory, "--anonymous", "--key", tmp_path / "mine.csv")
    assert (tmp_path / "mine.csv").is_file()
    assert not (directory / KEY_FILE).exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--anonymous", "--key", "report-anonymous/key.csv"], "reveal the names"),
        (["--anonymous", "--key", "report-anonymous/games/key.csv"], "reveal the names"),
        (["--key", "key.csv"], "--anonymous"),
        (["--anonymous"], "no list of pseudonyms"),
    ],
)
def test_key_files_that_cannot_be_used(directory: Path, options: list[str], message: str) -> None:
    """The key is never in the report, is of no use for another report, and may be damaged."""
    (directory / KEY_FILE).write_text("nothing\n", encoding="utf-8")
    result = report(directory, *(directory / one if one.endswith("csv") else one for one in options))
    assert result.exit_code == 2
    assert message in result.stderr
    assert not (directory / "report-anonymous").exists()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("al won against albert", "Teal Tern won against Azure Crane"),
        ("ALBERT, Albert", "Azure Crane, Azure Crane"),
        ("all of also: it is final", "all of also: it is final"),
        ("xalbertx", "xAzure Cranex"),
    ],
)
def test_names_in_texts(text: str, expected: str) -> None:
    anonymizer = Anonymizer({"al": "Teal Tern", "albert": "Azure Crane"}, ["al", "albert"])
    assert anonymizer.text(text) == expected


def plain_pattern(names: Iterable[str]) -> re.Pattern[str]:
    """Return the pattern of all names in its simplest form."""
    longest_first = sorted(names, key=len, reverse=True)
    short = [rf"(?<!\w){re.escape(name)}(?!\w)" for name in longest_first if len(name) <= SHORT_NAME]
    return re.compile(
        "|".join([*map(re.escape, longest_first[: -len(short) or None]), *short]), re.IGNORECASE
    )


LETTERS = "aAbBsS\u017f\xdf\u1e9e\u03c2\u03c3\u03a3iI\u0130\u0131k\u212a.-]^ \n"


@settings(max_examples=100)
@given(st.sets(st.text(LETTERS, min_size=1, max_size=6), min_size=1, max_size=12), st.data())
def test_names_are_found_as_if_they_were_compared_one_by_one(names: set[str], data: st.DataObject) -> None:
    part = st.sampled_from(sorted(names)).flatmap(lambda name: st.sampled_from([name, name.swapcase()]))
    text = "".join(data.draw(st.lists(part | st.text(LETTERS, max_size=3), max_size=8)))
    found = [match.span() for match in name_pattern(names).finditer(text)]
    assert found == [match.span() for match in plain_pattern(names).finditer(text)]


def test_letters_that_match_one_another_are_of_one_class() -> None:
    cased = "".join(one for one in map(chr, range(sys.maxunicode + 1)) if {one} != {one.lower(), one.upper()})
    for letter in cased:
        alike = re.findall(re.escape(letter), cased, re.IGNORECASE)
        assert {case_class(one) for one in alike} == {case_class(letter)}


@pytest.mark.parametrize("prefix", ["Team ", ""])
def test_many_names_are_found_quickly(prefix: str) -> None:
    dice = random.Random(1)
    names = [f"{prefix}{''.join(dice.choices(ascii_lowercase, k=8))} v{number}" for number in range(300)]
    texts = [f"{name} took longer than 10 s against {dice.choice(names)}" for name in names]
    spellings = {*names, *map(str.upper, names), *map(str.lower, names)}
    took = []
    for pattern in (name_pattern(spellings), plain_pattern(spellings)):
        began = time.process_time()
        assert all(len(pattern.findall(text)) == 2 for text in texts)
        took.append(time.process_time() - began)
    assert took[0] < took[1] / 3


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("r001-1v2", "r001-2v1"),
        ("r012-2v1.3~2", "r012-1v2.3~2"),
        ("r001-1+2", "r001-1+2"),
        ("something else", "something else"),
    ],
)
def test_keys(key: str, expected: str) -> None:
    assert Anonymizer({"b": "Teal Tern", "a": "Azure Crane"}, ["a", "b"]).key(key) == expected
    assert Anonymizer().key(key) == key


# The file of pseudonyms


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "key.csv"


def rows(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def test_a_new_bot_changes_no_pseudonym(path: Path) -> None:
    known = pseudonyms_for(path, NAMES)
    before = path.read_bytes()
    assert rows(path) == [HEAD, *([pseudonym, name] for name, pseudonym in known.items())]
    assert pseudonyms_for(path, NAMES[1:2]) == known
    more = pseudonyms_for(path, [*NAMES, "late"])
    assert list(more) == [*known, "late"]
    assert {name: more[name] for name in NAMES} == known
    assert path.read_bytes().startswith(before)
    path.chmod(0o400)  # nothing is to be written
    assert pseudonyms_for(path, NAMES) == more


def test_drawing_pseudonyms() -> None:
    """They say nothing of the names, neither by their order nor by their words."""
    assert len({f"{colour} {bird}" for colour in COLOURS for bird in BIRDS}) >= 200
    names = [f"bot {number}" for number in range(900)]
    orders = {tuple(draw(names[:40], {}, random.Random(seed))) for seed in range(5)}
    assert len(orders | {tuple(names[:40])}) == 6
    assert len(set(draw(names, {}, random.Random(1)).values())) == 900  # more bots than words
    drawn = draw(["Heron", "teal", *names[:300]], {"amber": "Azure Crane"}, random.Random(1)).values()
    assert not any(word in name for word in ("Heron", "Teal", "Azure Crane") for name in drawn)


@settings(max_examples=50)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), unique=True, max_size=6))
def test_any_names_are_read_back(tmp_path_factory: pytest.TempPathFactory, names: list[str]) -> None:
    path = tmp_path_factory.mktemp("key") / "key.csv"
    known = pseudonyms_for(path, names, random.Random(1))
    assert pseudonyms_for(path, names, random.Random(2)) == known
    assert (set(known), len(set(known.values()))) == (set(names), len(names))


def test_names_are_no_formulas_of_spreadsheets(path: Path) -> None:
    pseudonyms_for(path, ["=1+1", "'@x"])
    assert sorted(name for _, name in rows(path)[1:]) == ["''@x", "'=1+1"]


def test_a_last_line_without_an_end(path: Path) -> None:
    path.write_text("pseudonym,name\nTeal Tern,bob", encoding="utf-8")
    known = pseudonyms_for(path, ["bob", "eve"])
    assert known["bob"] == "Teal Tern"
    assert pseudonyms_for(path, ["eve"]) == known


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name,mark\nbob,1\n", "no list of pseudonyms"),
        ("pseudonym,name\nTeal Tern\n", "row 2"),
        ("pseudonym,name\nTeal Tern,\n", "row 2"),
        ("pseudonym,name\nTeal Tern,bob\nTeal Tern,eve\n", "twice"),
        ("pseudonym,name\nTeal Tern,bob\nTeal Owl,bob\n", "twice"),
        ('pseudonym,name\nTeal Tern,"bo\n', "cannot be read"),
    ],
)
def test_a_damaged_file_is_left_alone(path: Path, text: str, message: str) -> None:
    path.write_text(text, encoding="utf-8")
    with pytest.raises(PseudonymError, match=message):
        pseudonyms_for(path, NAMES)
    assert path.read_text(encoding="utf-8") == text


def test_files_that_cannot_be_written(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(PseudonymError, match="cannot be kept here"):
        pseudonyms_for(path.parent / "missing" / "key.csv", NAMES)
    with pytest.raises(PseudonymError, match="cannot be read"):
        pseudonyms_for(path.parent, NAMES)
    pseudonyms_for(path, NAMES)
    before = path.read_bytes()

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(PseudonymError, match="No space left"):
        pseudonyms_for(path, ["late"])
    assert path.read_bytes() == before


KILLED = """
import pathlib, resource, signal, sys
from tournaments.reporting.pseudonyms import pseudonyms_for
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
pseudonyms_for(pathlib.Path(sys.argv[1]), ["late"])
"""
"""Adds a pseudonym, and is killed when the file has so many bytes."""


def test_a_kill_leaves_no_half_row(path: Path) -> None:
    known = pseudonyms_for(path, NAMES)
    size = path.stat().st_size + len('"Teal')
    done = subprocess.run([sys.executable, "-c", KILLED, str(path), str(size)], check=False)
    assert done.returncode == -signal.SIGXFSZ
    assert pseudonyms_for(path, NAMES) == known
    assert "late" in pseudonyms_for(path, ["late"])


def test_a_link_to_the_file_and_its_mode_stay(path: Path) -> None:
    pseudonyms_for(path, NAMES)
    path.chmod(0o640)
    link = path.with_name("link.csv")
    link.symlink_to(path)
    pseudonyms_for(link, ["late"])
    assert (link.is_symlink(), path.stat().st_mode & 0o777) == (True, 0o640)
    assert "late" in pseudonyms_for(path, NAMES)
