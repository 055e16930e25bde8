"""Appeals and late bots end to end: real processes, tiny games, and what each command says."""

import json
import shutil
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from tests.builders import invoke, kalarena, write_tournament
from tests.ruling import do, is_clean, kept, keys_of, line_of, results, run
from tournaments.reporting.tournament_directory import TournamentDirectory
from tournaments.results.journal import Action, Entry
from tournaments.results.store import Store

AT = "2026-01-02T03:04:05+00:00"
CUP = 'name = "Cup"\ngame = "kalah(3,2)"\nbots = ["first_legal", "greedy", "random:1"]\n'
SWISS = CUP + 'format = "swiss"\nrounds = 3\n'
FORMATS = {
    "gauntlet": '{kind = "gauntlet", challengers = ["greedy"]}',
    "swiss": '"swiss"',
    "ladder": '"ladder"',
    "knockout": '"knockout"',
    "groups": '{kind = "groups", groups = 1}',
}
KEY = "r001-1v2"
AGAIN = f"{KEY}~2"


@pytest.fixture(scope="module")
def cups(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders with a tournament that was played each; nobody changes them."""
    folder = tmp_path_factory.mktemp("cups")
    texts = {"round-robin": CUP} | {name: f"{CUP}format = {text}\n" for name, text in FORMATS.items()}
    texts["swiss"] = SWISS
    for name, text in texts.items():
        file = write_tournament(folder / name, text)
        result = invoke("tournament", "run", file, "--out", folder / name / "out")
        assert result.exit_code == 0, result.output
    return folder


def copy_of(cups: Path, name: str, target: Path) -> Path:
    """The directory of a tournament that may be changed; its file is beside it."""
    return Path(shutil.copytree(cups / name, target / "cup")) / "out"


@pytest.fixture
def out(cups: Path, tmp_path: Path) -> Path:
    """That of a round robin."""
    return copy_of(cups, "round-robin", tmp_path)


# Void and replay


def test_a_void_game(out: Path) -> None:
    assert do("void", out, KEY, "--why", " the power went out ") == f"noted: void {KEY}: the power went out\n"
    assert KEY not in keys_of(out)
    assert (results(out)["games"], results(out)["games_total"]) == (5, 6)
    assert "5 of 6" not in do("table", out)
    assert "6 of 6 games (1 set aside)" in do("table", out)
    is_clean(out)
    run(out)
    assert len(kept(out)) == 6
    assert (out / "games" / KEY / "wire.txt").is_file()
    is_clean(out)
    assert "counts for nobody already (void" in do("void", out, KEY, "--why", "x", fails=True)


def test_a_game_that_is_played_again(out: Path) -> None:
    said = do("replay", out, KEY, "--why", "the appeal of first_legal")
    assert said == (
        f"noted: replay {KEY}: the appeal of first_legal\n"
        f"1 game is due now: kalarena tournament run FILE --out {out}\n"
    )
    assert "5 of 6 games (1 set aside)" in do("table", out)
    is_clean(out)
    run(out)
    assert AGAIN in kept(out)
    assert keys_of(out) == sorted(AGAIN if key == KEY else key for key in kept(out) if key != AGAIN)
    for key in (KEY, AGAIN):
        assert json.loads((out / "games" / key / "game.json").read_text())["key"] == key
    assert "6 of 6 games (1 set aside)" in do("table", out)
    is_clean(out)
    assert "was set aside already, and is played again as" in do("void", out, KEY, "--why", "x", fails=True)
    do("replay", out, AGAIN, "--why", "and again")
    run(out)
    assert f"{KEY}~3" in keys_of(out)
    is_clean(out)


def test_a_replay_in_a_swiss_changes_no_round_that_was_paired(cups: Path, tmp_path: Path) -> None:
    out = copy_of(cups, "swiss", tmp_path)
    before = kept(out)
    first = before[0]
    do("replay", out, first, "--why", "x")
    run(out)
    assert kept(out) == sorted([*before, f"{first}~2"])
    is_clean(out)


# Withdrawing


@pytest.mark.parametrize(
    ("name", "annuls"),
    [
        *(("round-robin", True), ("gauntlet", True), ("swiss", False)),
        *(("ladder", False), ("knockout", False), ("groups", False)),
    ],
)
def test_whose_games_count_when_a_bot_withdraws(cups: Path, tmp_path: Path, name: str, annuls: bool) -> None:
    out = copy_of(cups, name, tmp_path)
    before = set(keys_of(out))
    said = do("withdraw", out, "greedy", "--why", "it was copied")
    count = "count for nobody" if annuls else "still count"
    assert f"noted: withdraw greedy (its games {count}): it was copied\n" in said
    played = {key for key in before if "2" in key.partition("-")[2]}
    assert played
    assert set(keys_of(out)) == (before - played if annuls else before)
    assert line_of(out, "greedy")["withdrawn"] is True
    assert "greedy (withdrawn)" in do("table", out)
    is_clean(out)
    run(out)
    is_clean(out)
    assert do("withdraw", out, "greedy", "--why", "x", fails=True) == "'greedy' has withdrawn already"


@pytest.mark.parametrize("name", ["round-robin", "swiss"])
def test_what_the_format_does_may_be_overruled(cups: Path, tmp_path: Path, name: str) -> None:
    out = copy_of(cups, name, tmp_path)
    before = keys_of(out)
    option = "--keep" if name == "round-robin" else "--annul"
    do("withdraw", out, "greedy", "--why", "x", option)
    assert (keys_of(out) == before) is (name == "round-robin")
    is_clean(out)


# Late bots


def test_a_late_bot_plays_all_games_of_a_round_robin(out: Path) -> None:
    said = do("add", out, "minimax:1", "--name", "late one")
    assert said == (
        f"noted: add late one: joined late\n6 games are due now: kalarena tournament run FILE --out {out}\n"
    )
    assert line_of(out, "late one")["played"] == 0
    is_clean(out)
    run(out)
    assert line_of(out, "late one")["played"] == 6
    assert results(out)["games"] == 12
    assert {"r001-1v4", "r001-4v1"} < set(kept(out))
    is_clean(out)


def test_a_late_bot_meets_the_challengers_of_a_gauntlet(cups: Path, tmp_path: Path) -> None:
    out = copy_of(cups, "gauntlet", tmp_path)
    assert "2 games are due now" in do("add", out, "minimax:1")
    run(out)
    assert line_of(out, "minimax:1")["played"] == 2
    is_clean(out)


@pytest.mark.parametrize("name", ["swiss", "ladder"])
def test_a_late_bot_is_paired_from_the_next_round_on(cups: Path, tmp_path: Path, name: str) -> None:
    """All three rounds were paired: it waits for a fourth, and changes none of them."""
    out = copy_of(cups, name, tmp_path)
    before = kept(out)
    assert do("add", out, "minimax:1") == "noted: add minimax:1: joined late\n"
    run(out)
    assert kept(out) == before
    file = out.parent / "cup.toml"
    file.write_text(file.read_text().replace("rounds = 3\n", "") + "rounds = 4\n")
    run(out)
    assert set(before) < set(kept(out))
    assert all(key.startswith("r004-") for key in set(kept(out)) - set(before))
    assert line_of(out, "minimax:1")["played"] != 0
    is_clean(out)


def test_a_new_version_takes_the_place_of_the_old_one(cups: Path, tmp_path: Path) -> None:
    out = copy_of(cups, "round-robin", tmp_path)
    said = do("add", out, "minimax:1", "--replaces", "greedy", "--why", "a bug was fixed")
    assert "noted: withdraw greedy (its games count for nobody): a bug was fixed\n" in said
    assert "noted: add minimax:1 (in the place of greedy): a bug was fixed\n" in said
    run(out)
    assert line_of(out, "minimax:1")["played"] == 4
    assert line_of(out, "greedy")["played"] == 0
    last = json.loads(do("table", out, "--format", "json"))["standings"][-1]
    assert (last["name"], last["withdrawn"]) == ("greedy", True)
    is_clean(out)


def test_games_of_the_old_version_may_be_kept(cups: Path, tmp_path: Path) -> None:
    out = copy_of(cups, "round-robin", tmp_path)
    said = do("add", out, "minimax:1", "--replaces", "greedy", "--keep")
    assert "noted: withdraw greedy (its games still count): joined late\n" in said
    assert line_of(out, "greedy")["played"] == 4


def test_a_ruling_is_taken_back(out: Path) -> None:
    before = do("table", out, "--format", "csv")
    do("void", out, KEY, "--why", "the wrong game")
    do("withdraw", out, "greedy", "--why", "the wrong bot")
    assert do("table", out, "--format", "csv") != before
    do("restore", out, "greedy", "--why", "a slip of the pen")
    assert "noted: restore" in do("restore", out, KEY, "--why", "another slip")
    assert do("table", out, "--format", "csv") == before
    is_clean(out)


def test_a_bot_that_others_were_paired_without_does_not_come_back(cups: Path, tmp_path: Path) -> None:
    out = copy_of(cups, "swiss", tmp_path)
    write_tournament(out.parent, SWISS.replace("rounds = 3", "rounds = 5"))
    do("withdraw", out, "greedy", "--why", "x")
    run(out)
    assert "rounds were paired without it since" in do("restore", out, "greedy", "--why", "y", fails=True)


def test_what_a_late_replay_does_not_change_is_said(cups: Path, tmp_path: Path) -> None:
    out = copy_of(cups, "swiss", tmp_path)
    first = sorted(path.name for path in (out / "games").iterdir())[0]
    assert "followed by rounds that are paired" in do("replay", out, first, "--why", "x")


def test_a_new_version_may_come_after_the_old_one_has_left(out: Path) -> None:
    do("withdraw", out, "greedy", "--why", "it crashed")
    do("add", out, "minimax:1", "--replaces", "greedy")
    assert [one["action"] for one in json.loads(do("journal", out, "--json"))] == ["withdraw", "add"]
    run(out)
    assert line_of(out, "minimax:1")["played"] == 4
    is_clean(out)


def test_a_bot_that_was_replaced_leaves_when_its_successor_comes(cups: Path, tmp_path: Path) -> None:
    """Both in the same round of a Swiss, though its withdrawal alone may end that round."""
    out = copy_of(cups, "swiss", tmp_path)
    write_tournament(out.parent, SWISS.replace("rounds = 3", "rounds = 5"))
    do("add", out, "minimax:1", "--replaces", "greedy")
    withdraw, add = json.loads(do("journal", out, "--json"))
    assert withdraw["round"] == add["round"]
    assert withdraw["at"] == add["at"]
    run(out)
    assert line_of(out, "minimax:1")["played"] != 0
    is_clean(out)


def own_bot(folder: Path) -> Path:
    """A bot of one file: a sample bot's text."""
    import sample_bots.first_legal as sample

    folder.mkdir(exist_ok=True)
    return Path(shutil.copy(Path(sample.__file__), folder / "mine.py"))


def test_a_late_bot_that_was_changed_is_refused(out: Path, tmp_path: Path) -> None:
    bot = own_bot(tmp_path / "late")
    do("add", out, str(bot))
    bot.write_text(bot.read_text() + "\n# better\n")
    line = do("run", out.parent / "cup.toml", "--out", out, fails=True)
    assert line.startswith("the files of mine have changed since it was added, ")
    assert "withdraw it and add the changed bot under another name" in line
    do("withdraw", out, "mine", "--why", "changed")
    bot.unlink()
    line = do("run", out.parent / "cup.toml", "--out", out, fails=True)
    assert line.startswith("mine, added ")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("greedy",), "the name 'greedy' is taken already: give it another with --name"),
        (("minimax", "--name", "first legal"), "is too like 'first_legal'"),
        (("minimax", "--name", "=1+1"), "'=1+1' cannot be the name of a bot: give it one with --name"),
        (("gredy",), "did you mean 'greedy'?"),
        (("minimax", "--replaces", "bob"), "there is no bot 'bob' here; there are first_legal, greedy, rand"),
        (("greedy", "--replaces", "greedy"), "the name 'greedy' is taken already"),
        (("minimax", "--why", " "), "say why: a ruling without a reason cannot be defended"),
    ],
)
def test_late_bots_that_are_refused(out: Path, arguments: tuple[str, ...], complaint: str) -> None:
    assert complaint in do("add", out, *arguments, fails=True)
    assert do("journal", out) == "nothing was ruled\n"


@pytest.mark.parametrize("name", ["knockout", "groups"])
def test_formats_that_take_no_late_bot(cups: Path, tmp_path: Path, name: str) -> None:
    out = copy_of(cups, name, tmp_path)
    assert do("add", out, "minimax", fails=True).startswith(
        f"a tournament of format '{name}' takes no bot once it has begun: put it into the tournament file"
    )


def test_a_late_bot_must_take_openings_where_there_are_some(tmp_path: Path) -> None:
    text = CUP.replace('"random:1"', '"random:1"') + "openings = {random = {plies = 1, seed = 1}}\n"
    file = write_tournament(tmp_path, text)
    out = tmp_path / "out"
    run_it = invoke("tournament", "run", file, "--out", out)
    assert run_it.exit_code == 0, run_it.output
    line = do("add", out, str(own_bot(tmp_path / "late")), fails=True)
    assert (
        line == 'mine cannot take openings: it does not declare capabilities = ["openings"] in its bot.toml'
    )
    do("add", out, "minimax:1")


# What is the same for all


def test_the_journal(out: Path) -> None:
    assert do("journal", out) == "nothing was ruled\n"
    assert json.loads(do("journal", out, "--json")) == []
    do("void", out, KEY, "--why", " Größe,\n seen   twice\n")
    do("withdraw", out, "greedy", "--why", "two")
    entries = json.loads(do("journal", out, "--json"))
    assert [(one["number"], one["action"], one["subject"], one["why"], one["round"]) for one in entries] == [
        (1, "void", KEY, "Größe, seen twice", 1),
        (2, "withdraw", "greedy", "two", 1),
    ]
    assert entries[1]["data"]["annul"] is True
    assert KEY not in entries[1]["data"]["games"]
    assert datetime.fromisoformat(entries[0]["at"]).utcoffset() is not None
    assert do("journal", out).splitlines() == [
        f"1  {entries[0]['at']}  round 1  void {KEY}: Größe, seen twice",
        f"2  {entries[1]['at']}  round 1  withdraw greedy (its games count for nobody): two",
    ]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("void", "OUT", "r009-1v2", "--why", "x"), "there is no game 'r009-1v2' here"),
        (("replay", "OUT", AGAIN, "--why", "x"), f"there is no game '{AGAIN}' here"),
        (("withdraw", "OUT", "bob", "--why", "x"), "there is no bot 'bob' here; there are first_legal, gree"),
        (("void", "OUT", KEY, "--why", " \n"), "say why: a ruling without a reason cannot be defended"),
        (("void", "/nowhere/at/all", KEY, "--why", "x"), "/nowhere/at/all holds no results.db"),
        (("replay", "/nowhere/at/all", KEY, "--why", "x"), "/nowhere/at/all holds no results.db"),
        (("withdraw", "/nowhere/at/all", "greedy", "--why", "x"), "/nowhere/at/all holds no results.db"),
        (("add", "/nowhere/at/all", "greedy"), "/nowhere/at/all holds no results.db"),
        (("journal", "/nowhere/at/all"), "/nowhere/at/all holds no results.db"),
    ],
)
def test_what_is_refused_changes_nothing(out: Path, arguments: tuple[str, ...], complaint: str) -> None:
    before = {path: path.read_bytes() for path in out.glob("*.*")}
    given = [str(out) if one == "OUT" else one for one in arguments]
    assert complaint in do(*given, fails=True)
    assert {path: path.read_bytes() for path in out.glob("*.*")} == before


def test_a_void_game_needs_a_reason(out: Path) -> None:
    result = invoke("tournament", "void", out, KEY)
    assert result.exit_code == 2
    assert "Missing option '--why'" in result.output


def test_other_rulings_need_none(out: Path) -> None:
    do("replay", out, KEY)
    do("withdraw", out, "greedy")
    do("restore", out, "greedy")
    assert {one["why"] for one in json.loads(do("journal", out, "--json"))} == {"no reason given"}


def test_nothing_is_ruled_while_a_run_is_at_work(out: Path) -> None:
    with TournamentDirectory(out).locked():
        for arguments in (
            ("void", out, KEY, "--why", "x"),
            ("replay", out, KEY, "--why", "x"),
            ("withdraw", out, "greedy", "--why", "x"),
            ("add", out, "minimax"),
        ):
            assert do(*arguments, fails=True).startswith(f"another run is at work in {out}")
        assert do("journal", out) == "nothing was ruled\n"  # looking disturbs nobody


def test_killed_between_the_note_and_the_report(out: Path) -> None:
    with Store(out / "results.db") as store:
        store.note(Entry(Action.VOID, KEY, "x", 1, AT))
    assert invoke("verify", out).exit_code == 1
    run(out)
    assert KEY not in keys_of(out)
    is_clean(out)


def damaged() -> Iterator[Entry]:
    yield Entry(Action.VOID, "r077-1v2", "x", 1, AT)
    yield Entry(Action.WITHDRAW, "nobody", "x", 1, AT, {"annul": True})
    yield Entry(Action.ADD, "eve", "x", 1, AT, {"replaces": "nobody"})
    yield Entry(Action.ADD, "eve", "x", 1, AT, {})


@pytest.mark.parametrize("entry", list(damaged()), ids=str)
def test_a_damaged_journal_is_one_clear_message_everywhere(out: Path, entry: Entry) -> None:
    with Store(out / "results.db") as store:
        store.note(entry)
    about = "entry 1 of the journal "
    if entry.data.get("replaces") or entry.action is not Action.ADD:
        assert about in do("table", out, fails=True)
        assert about in do("journal", out, fails=True)
        assert about in do("void", out, KEY, "--why", "x", fails=True)
        result = invoke("verify", out)
        assert result.exit_code == 1
        assert about in result.output
    done = kalarena(out.parent, "tournament", "run", "cup.toml", "--out", "out")
    assert done.returncode == 2
    assert about in done.stderr
    assert "Traceback" not in done.stderr


def test_as_processes_from_the_first_to_the_last(tmp_path: Path) -> None:
    """What the tests above do within one process, once as people do it."""
    write_tournament(tmp_path, CUP)
    for arguments in (
        ("tournament", "run", "cup.toml", "--out", "out"),
        ("tournament", "void", "out", KEY, "--why", "x"),
        ("tournament", "replay", "out", "r001-2v1", "--why", "y"),
        ("tournament", "add", "out", "minimax:1"),
        ("tournament", "withdraw", "out", "random:1", "--why", "z"),
        ("tournament", "run", "cup.toml", "--out", "out"),
        ("tournament", "journal", "out"),
        ("verify", "out"),
    ):
        done = kalarena(tmp_path, *arguments)
        assert done.returncode == 0, done.stderr
    assert done.stdout == "11 games verified, nothing wrong\n"
    value = results(tmp_path / "out")
    # Of the six games of the three that play: one is void, one was played again.
    assert (value["games"], value["games_total"]) == (5, 10)
