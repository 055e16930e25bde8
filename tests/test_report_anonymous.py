"""Reports in which bots have pseudonyms: nothing tells who is who."""

import stat
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from referee.judge.results import GameRecord, WireLine
from tests.reports import Page, broken_links, pages_in, write_store
from tests.test_report import files_of, made, report, some
from tournaments.reporting.pseudonyms import KEY_FILE, pseudonyms_for
from tournaments.reporting.site.anonymizer import Anonymizer
from tournaments.results.journal import Action, Entry

NAMES = ("Quixotic-7", "zyzzyva bot", "Ümläut<&>", 'it\'s "me"')
PRIVATE = ("private words", "the-lecturers-machine", "/home/", "/opt/python", "a note for", "d1g3st")


def telling(record: GameRecord) -> GameRecord:
    """A game in which everything says who played."""
    players = [replace(player, digest="d1g3st" * 5, how=f"found {player.name}") for player in record.players]
    names = [player.name for player in players]
    lines = [
        *record.wire,
        WireLine(1, "from", f"MOVE;1 by {names[1]}", 2600),
        WireLine(0, "from", f"{names[0].upper()}!{names[0].lower()}!", 2700),
    ]
    versions = {"built by": names[0]}
    return replace(record, players=(players[0], players[1]), wire=lines, versions=versions)


def telling_store(path: Path, names: tuple[str, ...] = NAMES) -> Path:
    withdraw = {"annul": False}
    add = {"bot": names[0], "base": "/home/x", "digest": "d1g3st", "replaces": names[1]}
    at = "2026-02-03T04:05:06+00:00"
    journal = [
        Entry(Action.VOID, "r001-1v2", f"{names[0]} complained", 1, at),
        Entry(Action.WITHDRAW, names[1], f"{names[1]} gave up", 1, at, withdraw),
        Entry(Action.ADD, "late " + names[0], "joined", 1, at, add),
        Entry(Action.PAIR, names[0], "x", 1, at, {"opponent": "late " + names[0], "for_round": 2}),
    ]
    return write_store(
        path, names, some, journal=journal, changed=telling, name=f"Cup of {names[0]}", rounds=2
    )


def everything(site: Path) -> str:
    """All names and contents of files, without what is ours whatever the tournament."""
    pages = [path for path in site.rglob("*") if "assets" not in path.parts]
    texts = [path.read_text(encoding="utf-8") for path in pages if path.is_file()]
    return "\n".join([*(str(path.relative_to(site)) for path in pages), *texts])


def written(name: str) -> set[str]:
    """The ways in which a name can stand in a file."""
    escaped = name.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    json = name.encode("unicode_escape").decode()
    quoted = escaped.replace('"', "&#34;").replace("'", "&#39;")
    return {name, escaped, quoted, json, quoted.replace("&#34;", "&quot;").replace("&#39;", "&#x27;")}


def check_nothing_tells(directory: Path, names: tuple[str, ...]) -> None:
    text = everything(made(directory, "--anonymous")).casefold()
    for name in names:
        for form in written(name):
            assert form.casefold() not in text, form
    for private in PRIVATE:
        assert private not in text


def test_nothing_tells_who_is_who(tmp_path: Path) -> None:
    directory = telling_store(tmp_path / "cup")
    check_nothing_tells(directory, NAMES)
    assert broken_links(pages_in(directory / "report")) == []
    assert KEY_FILE not in files_of(directory / "report")


def test_a_report_with_names_has_them(tmp_path: Path) -> None:
    """That the tests here look for the right things."""
    text = everything(made(telling_store(tmp_path / "cup")))
    assert all(any(form in text for form in written(name)) for name in NAMES)
    assert all(private in text for private in ("private words", "the-lecturers-machine", "/home/"))


@settings(max_examples=8)
@given(
    st.lists(
        st.text("abcXYZ<>&\"'ß .-", min_size=1, max_size=12).map(lambda text: f"qjx{text.strip()}xjq"),
        min_size=2,
        max_size=4,
        unique_by=str.casefold,
    )
)
def test_no_name_is_told_whatever_it_is(names: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        check_nothing_tells(telling_store(Path(folder) / "cup", tuple(names)), tuple(names))


def test_pseudonyms_stay(tmp_path: Path) -> None:
    directory = telling_store(tmp_path / "cup")
    first = files_of(made(directory, "--anonymous"))
    key = directory / KEY_FILE
    before = key.read_bytes()
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert files_of(made(directory, "--anonymous")) == first
    assert key.read_bytes() == before
    pseudonyms = pseudonyms_for(key, NAMES).values()
    index = Page((directory / "report-anonymous" / "index.html").read_text(encoding="utf-8"))
    shown = {row.cells[1].removesuffix("withdrawn").strip() for row in index.rows("standings")}
    assert shown == set(pseudonyms)


def test_the_order_of_the_file_is_not_told(tmp_path: Path) -> None:
    """Keys have numbers of bots in them: they are those of the pseudonyms."""
    directory = write_store(tmp_path / "cup", [f"qjx{number}" for number in range(4)], some)
    rows = ["pseudonym,name", *(f"Teal Tern {number},qjx{3 - number}" for number in range(4))]
    (directory / KEY_FILE).write_text("\n".join(rows) + "\n", encoding="utf-8")
    site = made(directory, "--anonymous")
    games = {
        row.cells[0]: row.cells[1:3]
        for row in Page((site / "games.html").read_text(encoding="utf-8")).rows("games")
    }
    assert games["r001-1v2"] == ["Teal Tern 0", "Teal Tern 1"]
    assert games["r001-4v3"] == ["Teal Tern 3", "Teal Tern 2"]
    assert list(games) == sorted(games)


def test_another_key_file(tmp_path: Path) -> None:
    directory = telling_store(tmp_path / "cup")
    made(directory, "--anonymous", "--key", str(tmp_path / "mine.csv"))
    assert (tmp_path / "mine.csv").is_file()
    assert not (directory / KEY_FILE).exists()


@pytest.mark.parametrize("inside", ["report-anonymous/key.csv", "report-anonymous/games/key.csv"])
def test_the_key_is_never_in_the_report(tmp_path: Path, inside: str) -> None:
    directory = telling_store(tmp_path / "cup")
    result = report(directory, "--anonymous", "--key", str(directory / inside))
    assert result.exit_code == 2
    assert "tell who is who" in result.stderr
    assert not (directory / "report-anonymous").exists()


def test_a_key_needs_an_anonymous_report(tmp_path: Path) -> None:
    result = report(telling_store(tmp_path / "cup"), "--key", "key.csv")
    assert result.exit_code == 2
    assert "--anonymous" in result.stderr


def test_a_broken_key_file(tmp_path: Path) -> None:
    directory = telling_store(tmp_path / "cup")
    (directory / KEY_FILE).write_text("nothing\n", encoding="utf-8")
    result = report(directory, "--anonymous")
    assert result.exit_code == 2
    assert "no list of pseudonyms" in result.stderr
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
    disguise = Anonymizer({"al": "Teal Tern", "albert": "Azure Crane"}, ["al", "albert"])
    assert disguise.text(text) == expected


def test_numbers_in_keys() -> None:
    disguise = Anonymizer({"b": "Teal Tern", "a": "Azure Crane"}, ["a", "b"])
    assert disguise.key("r001-1v2") == "r001-2v1"
    assert disguise.key("r012-2v1.3~2") == "r012-1v2.3~2"
    assert disguise.key("r001-1+2") == "r001-1+2"
    assert disguise.key("something else") == "something else"
    assert Anonymizer().key("r001-1v2") == "r001-1v2"
