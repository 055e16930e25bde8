"""Rulings and late bots end to end: small games, the tables after them, and the messages of each command."""

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from functools import cache
from pathlib import Path

import pytest

import sample_bots.first_legal
from tests.results.ruling_helpers import do, is_clean, kept, keys_of, line_of, results, run
from tests.support.builders import invoke, write_tournament
from tests.support.confinement import needs_sandbox
from tests.support.tiers import slow
from tournaments.reporting.ruling_requests import unexpected
from tournaments.reporting.tournament_directory import TournamentDirectory
from tournaments.reporting.tournament_results import TournamentResults
from tournaments.results.journal import Action, Entry
from tournaments.results.store import Store

AT = "2026-01-02T03:04:05+00:00"
CUP = (
    'name = "Cup"\ngame = "kalah(2,2)"\nbots = ["first_legal", "greedy", "random:1"]\n'
    'sandbox = { mode = "off" }\nconcurrency = 1\n'
)
SWISS = CUP + 'format = "swiss"\nrounds = 3\n'
TEXTS = {
    "round-robin": CUP,
    "gauntlet": CUP + 'format = {kind = "gauntlet", challengers = ["greedy"]}\n',
    "swiss": SWISS,
    "ladder": CUP + 'format = "ladder"\n',
    "knockout": CUP + 'format = "knockout"\n',
    "groups": CUP + 'format = {kind = "groups", groups = 1}\n',
}
KEY = "r001-1v2"
AGAIN = f"{KEY}~2"


@pytest.fixture(scope="module")
def cups(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A function that returns a tournament's folder and plays it at the first call; no test changes it."""
    folder = tmp_path_factory.mktemp("cups")

    @cache
    def played(name: str) -> Path:
        write_tournament(folder / name, TEXTS[name])
        run(folder / name / "out")
        return folder / name

    return played


@pytest.fixture
def out(cups: Callable[[str], Path], tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A directory that may be changed, with its file beside it; of a round robin unless parametrized."""
    name = getattr(request, "param", "round-robin")
    return Path(shutil.copytree(cups(name), tmp_path / "cup")) / "out"


def of(*names: object) -> pytest.MarkDecorator:
    """Run a test with the directories of tournaments of these formats."""
    return pytest.mark.parametrize("out", names, indirect=True)


def journal(out: Path) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(do("journal", out, "--json"))
    return found


# Void games, and games that are played again


def test_a_void_game(out: Path) -> None:
    assert do("void", out, KEY, "--why", " the power went out ") == f"noted: void {KEY}: the power went out\n"
    assert KEY not in keys_of(out)
    assert (results(out)["games"], results(out)["games_total"]) == (5, 6)
    assert "6 of 6 games (1 set aside)" in do("table", out)
    is_clean(out)
    run(out)
    assert len(kept(out)) == 6
    assert (out / "games" / KEY / "wire.txt").is_file()
    is_clean(out)
    assert "counts for nobody already (void" in do("void", out, KEY, "--why", "x", fails=True)


@pytest.mark.slow
def test_a_game_that_is_played_again_twice(out: Path) -> None:
    assert do("replay", out, KEY, "--why", "the appeal of first_legal") == (
        f"noted: replay {KEY}: the appeal of first_legal\n"
        f"1 game is due now: kalarena tournament run FILE --out {out}\n"
    )
    assert "5 of 6 games (1 set aside)" in do("table", out)
    is_clean(out)
    run(out)
    assert keys_of(out) == sorted(AGAIN if key == KEY else key for key in kept(out) if key != AGAIN)
    for key in (KEY, AGAIN):
        assert json.loads((out / "games" / key / "game.json").read_text())["key"] == key
    assert "6 of 6 games (1 set aside)" in do("table", out)
    assert "was set aside already, and is played again as" in do("void", out, KEY, "--why", "x", fails=True)
    do("replay", out, AGAIN, "--why", "and again")
    run(out)
    assert f"{KEY}~3" in keys_of(out)
    is_clean(out)


@of("swiss")
def test_a_replay_in_a_swiss_changes_no_round_that_was_paired(out: Path) -> None:
    before = kept(out)
    assert "followed by rounds that are paired" in do("replay", out, before[0], "--why", "x")
    run(out)
    assert kept(out) == sorted([*before, f"{before[0]}~2"])
    is_clean(out)


def test_a_kill_between_the_entry_and_the_report(out: Path) -> None:
    with Store(out / "results.db") as store:
        store.note(Entry(Action.VOID, KEY, "x", 1, AT))
    verified = invoke("verify", out)
    assert verified.exit_code == 0
    assert "made before the last entry of the journal" in verified.output
    run(out)
    assert KEY not in keys_of(out)
    is_clean(out)


# Withdrawals


@pytest.mark.parametrize(
    ("out", "option", "annuls"),
    [
        *(("round-robin", "", True), ("swiss", "", False), ("swiss", "--annul", True)),
        *slow(("gauntlet", "", True), ("ladder", "", False), ("knockout", "", False), ("groups", "", False)),
        *slow(("round-robin", "--keep", False), ("groups", "--annul", True)),
    ],
    indirect=["out"],
)
def test_games_of_a_bot_that_withdraws(out: Path, option: str, annuls: bool) -> None:
    before = set(keys_of(out))
    said = do("withdraw", out, "greedy", "--why", "it was copied", *option.split())
    count = "count for nobody" if annuls else "still count"
    assert f"noted: withdraw greedy (its games {count}): it was copied\n" in said
    played = {key for key in before if "2" in key.partition("-")[2]}
    assert played
    assert set(keys_of(out)) == (before - played if annuls else before)
    assert line_of(out, "greedy")["withdrawn"] is True
    assert "greedy (withdrawn)" in do("table", out)
    run(out)
    is_clean(out)
    assert do("withdraw", out, "greedy", "--why", "x", fails=True) == "'greedy' has withdrawn already"


def test_rulings_are_taken_back(out: Path) -> None:
    before = do("table", out, "--format", "csv")
    do("void", out, KEY, "--why", "the wrong game")
    do("withdraw", out, "greedy", "--why", "the wrong bot")
    assert do("table", out, "--format", "csv") != before
    do("restore", out, "greedy", "--why", "a slip of the pen")
    assert "noted: restore" in do("restore", out, KEY, "--why", "another slip")
    assert do("table", out, "--format", "csv") == before
    is_clean(out)


@of("swiss")
def test_a_bot_does_not_return_after_rounds_were_paired_without_it(out: Path) -> None:
    write_tournament(out.parent, SWISS.replace("rounds = 3", "rounds = 5"))
    do("withdraw", out, "greedy", "--why", "x")
    run(out)
    assert "rounds were paired without it since" in do("restore", out, "greedy", "--why", "y", fails=True)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["swiss", "knockout"])
@pytest.mark.parametrize("option", ["--keep", "--annul"])
def test_a_withdrawal_that_ends_a_round_is_taken_back(tmp_path: Path, kind: str, option: str) -> None:
    """Nothing was played since: the next round is paired anew, from all results."""
    text = CUP.replace('"random:1"', '"minimax:2", "random:1"') + f'format = "{kind}"\n'
    for name in ("whole", "stopped"):
        write_tournament(tmp_path / name, text)
    whole, stopped = tmp_path / "whole" / "out", tmp_path / "stopped" / "out"
    run(whole)
    *others, last = [key for key in kept(whole) if key.startswith("r001")]
    stopped.mkdir()
    with Store(whole / "results.db", read_only=True) as store, Store(stopped / "results.db") as copy:
        config = store.config()
        copy.claim(config.pop("name"), config, store.identity() or {})
        for key in others:
            game = next(game for game in store.games() if game.key == key)
            copy.add(store.record(key), game.round, game.pair)
        gone = next(game for game in store.games() if game.key == last).first
    do("withdraw", stopped, gone, option)
    do("restore", stopped, gone)
    with Store(stopped / "results.db", read_only=True) as store:
        history = TournamentResults.load(store).history
    assert history.at(2) == history.results
    run(stopped)
    assert keys_of(stopped) == keys_of(whole)
    is_clean(stopped)


# Late bots


@pytest.mark.parametrize(("out", "games"), [("round-robin", 6), ("gauntlet", 2)], indirect=["out"])
def test_a_late_bot_plays_all_its_games(out: Path, games: int) -> None:
    """Those of all rounds in a round robin, those with the challengers in a gauntlet."""
    before = set(kept(out))
    assert do("add", out, "minimax:1", "--name", "late one") == (
        f"noted: add late one: joined late\n"
        f"{games} games are due now: kalarena tournament run FILE --out {out}\n"
    )
    assert line_of(out, "late one")["played"] == 0
    run(out)
    assert line_of(out, "late one")["played"] == games
    assert all("4" in key for key in set(kept(out)) - before)
    is_clean(out)


@of("swiss", *slow("ladder"))
def test_a_late_bot_is_paired_from_the_next_round_on(out: Path) -> None:
    """All three rounds were paired: it waits for a fourth, and changes none of them."""
    before = kept(out)
    assert do("add", out, "minimax:1") == (
        "noted: add minimax:1: joined late\n"
        "round 3, the last one, is paired already: "
        "minimax:1 plays only if the tournament's rounds are raised\n"
    )
    run(out)
    assert kept(out) == before
    file = out.parent / "cup.toml"
    file.write_text(file.read_text().replace("rounds = 3\n", "") + "rounds = 4\n")
    run(out)
    assert set(before) < set(kept(out))
    assert all(key.startswith("r004-") for key in set(kept(out)) - set(before))
    assert line_of(out, "minimax:1")["played"] != 0
    is_clean(out)


def test_a_late_bot_that_plays_in_the_last_round_is_nothing_unexpected(cups: Callable[[str], Path]) -> None:
    with Store(cups("swiss") / "out" / "results.db", read_only=True) as store:
        tournament = TournamentResults.load(store).with_rounds(5)
    late = Entry(Action.ADD, "eve", "x", 4, AT, {"replaces": None})
    assert list(unexpected(tournament, [late])) == []
    assert len(list(unexpected(tournament, [replace(late, round=5)]))) == 1


@pytest.mark.parametrize(("option", "played"), [*slow(("--annul", 0)), ("--keep", 4)])
def test_a_new_version_takes_the_place_of_the_old_one(out: Path, option: str, played: int) -> None:
    said = do("add", out, "minimax:1", "--replaces", "greedy", option, "--why", "a bug was fixed")
    count = "still count" if played else "count for nobody"
    assert f"noted: withdraw greedy (its games {count}): a bug was fixed\n" in said
    assert "noted: add minimax:1 (in the place of greedy): a bug was fixed\n" in said
    assert line_of(out, "greedy")["played"] == played
    run(out)
    assert line_of(out, "minimax:1")["played"] == 4
    last = json.loads(do("table", out, "--format", "json"))["standings"][-1]
    assert last["withdrawn"] is (last["name"] == "greedy")
    is_clean(out)


def test_a_new_version_may_come_after_the_old_one_has_withdrawn(out: Path) -> None:
    do("withdraw", out, "greedy", "--why", "it crashed")
    do("add", out, "minimax:1", "--replaces", "greedy")
    assert [entry["action"] for entry in journal(out)] == ["withdraw", "add"]
    run(out)
    assert line_of(out, "minimax:1")["played"] == 4


@pytest.mark.slow
@of("round-robin", "gauntlet", "swiss", "ladder")
def test_a_replacement_by_mistake_is_taken_back(out: Path) -> None:
    fields = ("rank", "points", "played", "withdrawn")
    before, standing = keys_of(out), [line_of(out, "greedy")[name] for name in fields]
    do("add", out, "minimax:1", "--replaces", "greedy")
    assert do("restore", out, "greedy", fails=True) == (
        "'minimax:1' replaces 'greedy': withdraw 'minimax:1' first"
    )
    do("withdraw", out, "minimax:1", "--why", "the wrong bot")
    do("restore", out, "greedy", "--why", "it was not to be replaced")
    run(out)
    assert keys_of(out) == before
    assert [line_of(out, "greedy")[name] for name in fields] == standing
    is_clean(out)
    rounds = 1 + max(int(key[1:4]) for key in before)
    file = out.parent / "cup.toml"
    file.write_text(re.sub("(?m)^rounds = .*\n", "", file.read_text()) + f"rounds = {rounds}\n")
    run(out)
    new = [key for key in keys_of(out) if key.startswith(f"r{rounds:03d}")]
    assert new
    assert not any("4" in key.partition("-")[2] for key in new)
    is_clean(out)


@of("swiss")
def test_a_replaced_bot_withdraws_in_the_round_in_which_its_successor_joins(out: Path) -> None:
    """Although its withdrawal alone may end that round."""
    write_tournament(out.parent, SWISS.replace("rounds = 3", "rounds = 5"))
    do("add", out, "minimax:1", "--replaces", "greedy")
    withdraw, add = journal(out)
    assert (withdraw["round"], withdraw["at"]) == (add["round"], add["at"])
    run(out)
    assert line_of(out, "minimax:1")["played"] != 0
    is_clean(out)


def own_bot(folder: Path) -> Path:
    """A bot of one file: a sample bot's text."""
    folder.mkdir(exist_ok=True)
    return Path(shutil.copy(Path(sample_bots.first_legal.__file__), folder / "mine.py"))


def test_a_late_bot_that_was_changed_or_removed_is_refused(out: Path, tmp_path: Path) -> None:
    bot = own_bot(tmp_path / "late")
    do("add", out, str(bot))
    bot.write_text(bot.read_text() + "\n# better\n")
    line = do("run", out.parent / "cup.toml", "--out", out, fails=True)
    assert line.startswith("the files of mine have changed since it was added, ")
    bot.unlink()
    assert do("run", out.parent / "cup.toml", "--out", out, fails=True).startswith("mine, added ")


def test_a_late_bot_that_could_read_other_files_is_refused_if_the_sandbox_is_required(
    out: Path, tmp_path: Path
) -> None:
    needs_sandbox()
    bot = own_bot(tmp_path / "late")
    do("add", out, str(bot))
    do("add", out, str(bot.parent), "--name", "wide")
    line = do("run", out.parent / "cup.toml", "--out", out, "--sandbox", "required", fails=True)
    assert line.startswith(f"wide could read all of {bot.parent}, and with it mine: ")


@pytest.mark.slow
def test_a_bot_that_could_read_other_files_is_not_added_if_the_sandbox_is_required(tmp_path: Path) -> None:
    """The next run would be refused."""
    needs_sandbox()
    file, late = own_bot(tmp_path / "bots"), own_bot(tmp_path / "late")
    text = CUP.replace('"off"', '"required"').replace('"random:1"', f'"{file}"')
    cup, out = write_tournament(tmp_path / "cup", text), tmp_path / "cup" / "out"
    run(out)
    refused = do("add", out, str(file.parent), "--name", "wide", fails=True)
    assert refused.startswith(f"wide could read all of {file.parent}, and with it mine: ")
    refused = do("add", out, str(own_bot(cup.parent).parent), "--name", "wide", fails=True)
    assert refused.startswith(f"wide could read all of {cup.parent}: ")
    do("add", out, str(late), "--name", "late")
    refused = do("add", out, str(late.parent), "--name", "wide", fails=True)
    assert refused.startswith(f"wide could read all of {late.parent}, and with it late: ")
    do("add", out, str(file.parent), "--name", "wide", "--replaces", "mine")  # which plays no more
    run(out)
    is_clean(out)


@pytest.mark.slow
def test_a_changed_late_bot_withdraws_and_joins_under_another_name(out: Path, tmp_path: Path) -> None:
    """The advice of the refusal."""
    bot = own_bot(tmp_path / "late")
    do("add", out, str(bot))
    bot.write_text(bot.read_text() + "\n# better\n")
    line = do("run", out.parent / "cup.toml", "--out", out, fails=True)
    assert "withdraw it and add the changed bot under another name" in line
    do("withdraw", out, "mine", "--why", "changed")
    do("add", out, str(bot), "--name", "mine again")
    run(out)
    assert line_of(out, "mine again")["played"] == 6
    assert line_of(out, "mine")["played"] == 0
    is_clean(out)
    do("restore", out, "mine", "--why", "its first files are needed again")
    refused = do("run", out.parent / "cup.toml", "--out", out, fails=True)
    assert refused.startswith("the files of mine have changed since it was added, ")


@pytest.mark.slow
@pytest.mark.parametrize("text", ['"mine.py"', '{bot = "mine.py", name = "ann (monday)"}'])
def test_a_bot_of_the_file_that_has_withdrawn_needs_no_files(tmp_path: Path, text: str) -> None:
    """Its files change when its author goes on, and may be gone later."""
    bot, out = own_bot(tmp_path), tmp_path / "out"
    file = write_tournament(tmp_path, CUP.replace('"random:1"', text))
    name = "ann (monday)" if "monday" in text else "mine"
    run(out)
    bot.write_text(bot.read_text() + "\n# better\n")
    do("add", out, str(bot), "--replaces", name, "--name", "ann (friday)")
    run(out)
    assert line_of(out, "ann (friday)")["played"] == 4
    do("withdraw", out, "ann (friday)")
    bot.unlink()
    do("replay", out, KEY)
    run(out)
    assert AGAIN in keys_of(out)
    assert line_of(out, name)["withdrawn"] is True
    is_clean(out)
    do("restore", out, name)
    assert "mine.py" in do("run", file, "--out", out, fails=True)
    own_bot(tmp_path)
    run(out)
    is_clean(out)


@pytest.mark.slow
def test_a_late_bot_that_has_withdrawn_needs_no_files(out: Path, tmp_path: Path) -> None:
    bot = own_bot(tmp_path / "late")
    do("add", out, str(bot))
    run(out)
    do("withdraw", out, "mine")
    bot.unlink()
    do("replay", out, KEY)
    run(out)
    assert AGAIN in keys_of(out)
    assert line_of(out, "mine")["withdrawn"] is True
    is_clean(out)
    do("restore", out, "mine")
    assert do("run", out.parent / "cup.toml", "--out", out, fails=True).startswith("mine, added ")


def test_a_game_that_is_replayed_by_nobody_is_no_wrong_one(out: Path) -> None:
    """The bot withdraws before the game is played again: the first attempt stays in the store."""
    do("replay", out, KEY)
    do("withdraw", out, "greedy")
    run(out)
    is_clean(out)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("greedy",), "the name 'greedy' is taken already: give it another with --name"),
        (("minimax", "--name", "first legal"), "is too like 'first_legal'"),
        (("minimax", "--name", "=1+1"), "'=1+1' cannot be the name of a bot: give it one with --name"),
        (("gredy",), "did you mean 'greedy'?"),
        (("minimax", "--replaces", "bob"), "there is no bot 'bob' here; there are first_legal, greedy, rand"),
        (("greedy", "--replaces", "greedy"), "the name 'greedy' is taken already"),
        (
            ("minimax:1", "--name", "first legal", "--replaces", "first_legal"),
            "the name 'first legal' is too like",
        ),
        (("minimax", "--why", " "), "say why: a ruling without a reason cannot be defended"),
    ],
)
def test_late_bots_that_are_refused(out: Path, arguments: tuple[str, ...], complaint: str) -> None:
    assert complaint in do("add", out, *arguments, fails=True)
    assert do("journal", out) == "There are no rulings.\n"


@of("knockout", "groups")
def test_formats_that_take_no_late_bot(out: Path) -> None:
    why = "takes no bot once it has begun: put it into the tournament file"
    assert why in do("add", out, "minimax", fails=True)


def test_a_late_bot_must_take_openings_where_there_are_some(tmp_path: Path) -> None:
    write_tournament(tmp_path, CUP + "openings = {random = {plies = 1, seed = 1}}\n")
    out = tmp_path / "out"
    run(out)
    assert do("add", out, str(own_bot(tmp_path / "late")), fails=True) == (
        'mine cannot take openings: it does not declare capabilities = ["openings"] in its bot.toml'
    )
    do("add", out, "minimax:1")


# All rulings


def test_the_journal(out: Path) -> None:
    assert do("journal", out) == "There are no rulings.\n"
    assert journal(out) == []
    do("void", out, KEY, "--why", " Größe,\n seen   twice\n")
    do("withdraw", out, "greedy", "--why", "two")
    entries = journal(out)
    fields = ("number", "action", "subject", "why", "round")
    assert [tuple(entry[name] for name in fields) for entry in entries] == [
        (1, "void", KEY, "Größe, seen twice", 1),
        (2, "withdraw", "greedy", "two", 1),
    ]
    data = entries[1]["data"]
    assert isinstance(data, dict)
    assert data["annul"] is True
    assert KEY not in data["games"]
    assert datetime.fromisoformat(str(entries[0]["at"])).utcoffset() is not None
    assert do("journal", out).splitlines() == [
        f"1  {entries[0]['at']}  during round 1  void {KEY}: Größe, seen twice",
        f"2  {entries[1]['at']}  during round 1  withdraw greedy (its games count for nobody): two",
    ]


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        ("void OUT r009-1v2 --why x", "there is no game 'r009-1v2' here"),
        (f"replay OUT {AGAIN} --why x", f"there is no game '{AGAIN}' here"),
        ("withdraw OUT bob --why x", "there is no bot 'bob' here; there are first_legal, gree"),
        (f"void OUT {KEY} --why ", "say why: a ruling without a reason cannot be defended"),
        (f"void /nowhere/at/all {KEY} --why x", "/nowhere/at/all holds no results.db"),
        ("add /nowhere/at/all greedy", "/nowhere/at/all holds no results.db"),
        ("journal /nowhere/at/all", "/nowhere/at/all holds no results.db"),
    ],
)
def test_a_refused_ruling_changes_nothing(out: Path, command: str, complaint: str) -> None:
    before = {path: path.read_bytes() for path in out.glob("*.*")}
    assert complaint in do(*command.replace("OUT", str(out)).split(" "), fails=True)
    assert {path: path.read_bytes() for path in out.glob("*.*")} == before


def test_a_void_game_needs_a_reason_and_other_rulings_do_not(out: Path) -> None:
    result = invoke("tournament", "void", out, KEY)
    assert result.exit_code == 2
    assert "Missing option '--why'" in result.output
    do("replay", out, KEY)
    do("withdraw", out, "greedy")
    do("restore", out, "greedy")
    assert {entry["why"] for entry in journal(out)} == {"no reason given"}


def test_nothing_is_ruled_while_a_run_is_at_work(out: Path) -> None:
    with TournamentDirectory(out).locked():
        for command, *arguments in (
            ("void", KEY, "--why", "x"),
            ("replay", KEY, "--why", "x"),
            ("withdraw", "greedy", "--why", "x"),
            ("add", "minimax"),
        ):
            assert do(command, out, *arguments, fails=True).startswith(f"another run is at work in {out}")
        assert do("journal", out) == "There are no rulings.\n"  # reading is possible


@pytest.mark.parametrize(
    "entry",
    [
        Entry(Action.VOID, "r077-1v2", "x", 1, AT),
        Entry(Action.WITHDRAW, "nobody", "x", 1, AT, {"annul": True}),
        Entry(Action.ADD, "eve", "x", 1, AT, {"replaces": "nobody"}),
        Entry(Action.ADD, "eve", "x", 1, AT, {}),
    ],
    ids=str,
)
def test_a_damaged_journal_is_one_message_everywhere(out: Path, entry: Entry) -> None:
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
    assert about in do("run", out.parent / "cup.toml", "--out", out, fails=True)
