"""`kalarena duel` and `kalarena gauntlet`: conclusions, notes, faults, resuming, bad input."""

import shlex
import signal
import subprocess
from pathlib import Path
from typing import Any, NoReturn

import pytest
from click.testing import Result

from referee.judge.results import Reason
from referee.sandbox.detection import SandboxError
from sample_bots.options import PURE_VARIABLE
from tests.adapters.bots import TURNS_PYTHON
from tests.support.builders import (
    KALARENA,
    RUN_LIMIT_S,
    invoke,
    kalarena,
    make_summary,
    one_object,
    run_command,
)
from tests.support.paths import REPOSITORY_ROOT
from tests.support.tiers import slow
from tournaments import Results
from tournaments.analysis.ladder_position import LevelResult
from tournaments.analysis.standing import Estimate
from tournaments.cli import duel as duel_module
from tournaments.cli import measuring
from tournaments.cli.gauntlet import BAR, GauntletResults, table
from tournaments.cli.main import Fault
from tournaments.cli.tournament.outcome import Outcome
from tournaments.reporting.tournament_directory import TournamentDirectory
from tournaments.reporting.tournament_results import TournamentResults
from tournaments.results.store import Store
from tournaments.running.runner import RunReport

SORRY = "import sys\nsys.exit('sorry')\n"
QUICK = ("--game", "kalah(3,2)", "--sandbox", "off", "--concurrency", "1")
"""Weak players play this in a few hundredths of a second."""


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def bot(name: str, text: str = SORRY, capabilities: str = '["openings"]') -> str:
    """The path of a new bot directory."""
    path = Path(name)
    path.mkdir(parents=True)
    (path / "bot.py").write_text(text)
    (path / "bot.toml").write_text(f'command = ["python3", "bot.py"]\ncapabilities = {capabilities}\n')
    return name


def measured(*arguments: str, out: str = "out") -> Result:
    """The result of a command that plays; nothing but the result is shown."""
    shown = () if "--json" in arguments else ("--quiet",)
    # Openings for a decision by many different games need a larger board.
    game = ("--game", "kalah(4,3)") if "--sprt" in arguments else ()
    result = invoke(*arguments, "--out", out, *shown, *QUICK, *game)
    assert (result.exit_code, result.stderr) == (0, ""), result.output
    return result


def duel(old: str, new: str, *options: str, out: str = "out") -> str:
    return measured("duel", old, new, *options, out=out).stdout


def gauntlet(*arguments: str, out: str = "out") -> dict[str, Any]:
    return one_object(measured("gauntlet", *arguments, "--json", out=out).stdout)


# Both


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ("gauntlet nobody", "no such bot: 'nobody'"),
        ("gauntlet greedy --levels 0-3", "--levels 0-3: '0-3' names no levels; they go from 1 to 10"),
        ("gauntlet greedy --levels 3-1", "names no levels"),
        ("gauntlet greedy --levels 1,,2", "'' names no levels"),
        ("gauntlet greedy --levels 11", "names no levels"),
        ("gauntlet greedy --levels 1 --games 3", "--games 3: must be even"),
        ("gauntlet greedy --game chess", "chess"),
        ("gauntlet greedy --move-time 0", "--move-time must be more than 0 seconds"),
        ("gauntlet greedy --openings nowhere.txt", "nowhere.txt cannot be read"),
        ("duel greedy nobody", "no such bot: 'nobody'"),
        ("duel greedy random --sprt 20", "--sprt 20: takes two numbers with a comma between them"),
        ("duel greedy random --sprt 20,0", "the first number must be below the second"),
        ("duel greedy random --sprt nan,0", "the first number must be below the second"),
        ("duel greedy random --alpha 0.7", "--alpha 0.7: must be at least 1e-12 and below 0.5"),
        ("duel greedy random --alpha 1e-320", "--alpha 1e-320: must be at least 1e-12 and below 0.5"),
        ("duel greedy random --max-games 1", "--max-games 1: must be from 2"),
        ("duel greedy random --games 5", "--games 5: must be even"),
        ("duel greedy random --games 4 --sprt 0,5", "leave --sprt out"),
        ("duel greedy random --games 4 --max-games 8", "leave --max-games out"),
        ("duel greedy random --game chess", "chess"),
        (f"duel greedy random --out {'y' * 300}", "--out: yyy"),
    ],
)
def test_bad_input(arguments: str, complaint: str, tmp_path: Path) -> None:
    result = invoke(*arguments.split())
    assert (result.exit_code, result.stdout) == (2, "")
    assert complaint in result.stderr
    assert result.stderr.startswith("Error: ")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    ["duel greedy version2", *slow("gauntlet version2 --levels 1")],
)
@pytest.mark.parametrize("change", ["open('learned.txt', 'a').write('x')", "os.unlink('bot.toml')"])
def test_a_bot_whose_files_change_meanwhile_is_named(arguments: str, change: str) -> None:
    bot("version2", f"import contextlib, os\nwith contextlib.suppress(OSError):\n    {change}\n" + SORRY)
    result = invoke(*arguments.split(), "--games", "2", "--quiet", *QUICK)
    assert result.exit_code == 0
    assert "the files of version2 changed during the run" in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.slow
def test_the_result_is_printed_also_if_the_working_directory_is_gone(tmp_path: Path) -> None:
    Path("here").mkdir()
    leaver = bot("leaver", f"import shutil\nshutil.rmtree({str(tmp_path / 'here')!r}, True)\n" + SORRY)
    bots = ["greedy", str(tmp_path / leaver)]
    out = str(tmp_path / "out")
    done = run_command([KALARENA, "duel", *bots, "--games", "2", "--out", out, *QUICK], tmp_path / "here")
    assert done.returncode == 0, done.stderr
    assert "2 of 2 games" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "kept_in", "head", "games"),
    [
        (
            "duel greedy minimax:1 --games 20",
            "results/duel-minimax_1-greedy-",
            "minimax:1 against greedy",
            20,
        ),
        (
            "gauntlet greedy --levels 1 --games 20",
            "results/gauntlet-greedy-",
            "greedy on the ladder",
            20,
        ),
    ],
)
def test_the_printed_command_continues_an_interrupted_run_to_the_same_result(
    tmp_path: Path, given: str, kept_in: str, head: str, games: int
) -> None:
    command = [*given.split(), "--game", "kalah(4,3)", "--sandbox", "off"]
    process = subprocess.Popen(
        [KALARENA, *command], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    assert f"the games go to {kept_in}" in process.stderr.readline()
    assert process.stderr.readline() == f"{head}: {games // 10} of {games} games\n"
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=RUN_LIMIT_S)
    assert process.returncode == 130
    assert "Traceback" not in errors
    *_, said, printed = errors.rstrip("\n").split("\n")
    assert f"of {games} games to play; this goes on:" in said
    assert head in out
    assert ("not all games are played yet." in out) is (given.startswith("duel"))
    words = shlex.split(printed)[1:]
    assert words[: len(given.split()[:2])] == given.split()[:2]
    assert words[words.index("--out") + 1].startswith(kept_in)
    again, calm = (one_object(invoke(*which, "--json").stdout) for which in (words, command))
    assert {**again, "directory": ""} == {**calm, "directory": ""}


# Duels


@pytest.mark.slow
def test_a_duel_ends_when_it_is_decided() -> None:
    text = duel("first_legal", "greedy", "--sprt", "0,200")
    assert "greedy is stronger than first_legal." in text
    assert "If the difference were 0 Elo, about 5 % of such duels would end so." in text
    assert "likelihood of superiority" in text
    assert "bounds -2.94 and 2.94 (0 against 200 Elo, alpha 0.05, beta 0.05)" in text
    value = one_object(duel("first_legal", "greedy", "--sprt", "0,200", "--json"))
    assert (value["kind"], value["new"], value["old"]) == ("duel", "greedy", "first_legal")
    assert (value["decision"], value["finished"]) == ("stronger", True)
    assert value["sprt"]["accepted"] == 1
    assert value["sprt"]["llr"] >= value["sprt"]["upper"]
    assert value["games"] < 1000
    assert value["openings_source"].startswith("random, ")
    assert value["comparison"]["one"] == "greedy"


@pytest.mark.slow
def test_a_duel_finds_no_improvement() -> None:
    text = duel("greedy", "random:1", "--sprt", "0,200")
    assert "\nNo improvement of 200 Elo was found.\n" in text
    assert "random:1 is taken to be less than 200 Elo stronger than greedy" in text


@pytest.mark.slow
def test_a_duel_finds_a_weaker_bot() -> None:
    assert "\nrandom:1 is weaker than greedy.\n" in duel("greedy", "random:1", "--sprt", "-200,0")


def test_a_fixed_number_of_games() -> None:
    value = one_object(duel("first_legal", "greedy", "--games", "4", "--json"))
    assert (value["games"], value["sprt"], value["finished"]) == (4, None, True)
    found = value["comparison"]
    assert found["wins"] + found["draws"] + found["losses"] == 4
    assert value["decision"] in ("stronger", "undecided")
    text = duel("first_legal", "greedy", "--games", "6")
    assert "% of 6 games" in text
    refused = invoke("duel", "first_legal", "greedy", "--games", "4", "--out", "out", *QUICK)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "rounds = 2 (--games of a duel or gauntlet) can be raised, not lowered" in refused.stderr
    assert text.splitlines()[0].endswith(", openings: random, 5 plies, seed 1")


def test_a_duel_with_a_reference_player_can_be_repeated() -> None:
    """The seed of the player is part of its name, as --help has it: --seed is that of the openings."""
    options = ("--games", "4", "--seed", "5")
    for out in ("first", "again"):
        duel("greedy", "ladder:1:7", *options, out=out)
    first, again = (Results.load(out).moves() for out in ("first", "again"))
    assert [move["position"] for move in first] == [move["position"] for move in again]
    text = " ".join(invoke("duel", "--help").stdout.split())
    assert "In a duel, a reference player's own seed is part of its name" in text


def test_the_openings_of_a_file_are_counted() -> None:
    Path("openings.txt").write_text("1\n2\n")
    text = duel("first_legal", "greedy", "--games", "4", "--openings", "openings.txt")
    assert text.splitlines()[0].endswith(", openings: 2 of openings.txt")


@pytest.mark.slow
def test_max_games_can_be_raised() -> None:
    text = duel("greedy", "minimax:1", "--sprt", "0,2", "--max-games", "4")
    assert "\nUndecided after 4 games.\n" in text
    assert "The limit, --max-games 4, is reached: the same command with this --out and a higher" in text
    more = duel("greedy", "minimax:1", "--sprt", "0,2", "--max-games", "6")
    assert "\nUndecided after 6 games.\n" in more
    less = ("--sprt", "0,2", "--max-games", "4", "--out", "out", *QUICK, "--game", "kalah(4,3)")
    refused = invoke("duel", "greedy", "minimax:1", *less)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "max_games = 4 (--max-games of a duel) can be raised, not lowered" in refused.stderr


@pytest.mark.slow
def test_two_bots_with_the_same_name_and_files() -> None:
    """The names get labels; copies of a game end the test early."""
    text = (REPOSITORY_ROOT / "sample_bots" / "first_legal.py").read_text()
    old, new = (bot(f"{folder}/mybot", text, "[]") for folder in ("one", "two"))
    result = invoke("duel", old, new, "--out", "out", *QUICK)
    assert result.exit_code == 0
    assert "OLD and NEW are the same files" in result.stderr
    assert "cannot take openings, so all games begin at the start position" in result.stderr
    assert result.stdout.startswith("mybot (new) against mybot (old): sprt, ")
    assert "Undecided after " in result.stdout
    assert "The bots only repeat themselves: of 24 pairs of games 1 are different" in result.stdout
    assert "Note: OLD and NEW are the same files" in result.stdout


@pytest.mark.slow
def test_faults_in_a_duel() -> None:
    bad = bot("version2")
    text = duel("greedy", bad, "--games", "4")
    assert "version2 lost 4 of 4 games by a fault:" in text.split("\n\n")[1]
    assert "its last words on standard error: 'sorry'" in text.split("\n\n")[1]
    assert "conversation and standard error: out/games/r001-" in text
    value = one_object(duel(bad, "greedy", "--games", "2", "--json", out="other"))
    assert [fault["bot"] for fault in value["faults"]] == ["version2", "version2"]


@pytest.mark.slow
def test_a_duel_in_which_neither_bot_starts_says_so() -> None:
    old, new = bot("version1"), bot("version2")
    text = duel(old, new, "--sprt", "0,400")
    head, faults, result, meaning, *_ = text.split("\n\n")
    assert head.startswith("version2 (new) against version1 (old): sprt, ")
    first, *listed = faults.splitlines()
    assert first == "Neither bot could be started in 16 of 16 games:"
    assert listed[0].startswith("  r001-1v2: neither bot could be started: version2 (South): ")
    assert listed[-2:] == [
        "  and 11 more, all in out/games.csv",
        "  conversation and standard error: out/games/r001-1v2/",
    ]
    assert Path("out/games.csv").read_text().count("neither bot could be started") == 16
    assert result.startswith("Neither version2 nor version1 could be started, so there is no result.\n")
    assert "taken to be" not in meaning
    value = one_object(duel(old, new, "--sprt", "0,400", "--json"))
    assert (value["decision"], value["sprt"]["accepted"], value["games"]) == ("undecided", 0, 16)
    assert {fault["bot"] for fault in value["faults"]} == {None}


# Gauntlets


@pytest.mark.slow
def test_chosen_levels(tmp_path: Path) -> None:
    command = ("gauntlet", "greedy", "--levels", "1,3", "--games", "4", "--out", "out", *QUICK)
    done = kalarena(tmp_path, *command)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("greedy on the ladder: gauntlet, kalah(3,2), 10 s per move")
    assert ", openings: random, " in lines[0]
    assert lines[2].split()[:4] == ["level", "games", "unique", "won"]
    assert [line.split()[:2] for line in lines[3:5]] == [["1", "4"], ["3", "4"]]
    assert any(line.startswith("greedy stands ") for line in lines)
    assert lines[-2].split() == ["games", "out"]
    assert lines[-1].startswith("replays ")
    assert lines[-1].endswith("tournament report out")
    assert "greedy on the ladder: 8 of 8 games" in done.stderr.splitlines()
    assert invoke("verify", "out").exit_code == 0
    again = invoke(*command)
    assert (again.exit_code, again.stdout.splitlines()[:-1]) == (0, lines[:-1]), again.stderr
    assert "all of 8 games are in out already" in again.stderr
    with Store(tmp_path / "out" / "results.db", read_only=True) as store:
        summary = GauntletResults.load(store)
    assert summary.levels == {1: "ladder:1", 3: "ladder:3"}
    assert summary.conclusion == summary.place.sentences()[0]


@pytest.mark.slow
def test_json_and_more_games_later() -> None:
    two = ("random:3", "--levels", "1-2", "--games")
    value = gauntlet(*two, "2")
    assert (value["kind"], value["bot"], value["format"]) == ("gauntlet", "random:3", "gauntlet")
    assert (value["games"], value["games_total"], value["finished"]) == (4, 4, True)
    assert [level["level"] for level in value["levels"]] == [1, 2]
    assert set(value["place"]) == {
        *("position", "level", "level_low", "level_high", "relative_to", "difference", "against_order")
    }
    assert value["faults"] == []
    assert gauntlet(*two, "4")["games"] == 8
    for others, why in (
        (("1-2", "2"), "(--games of a duel"),
        (("1-3", "4"), "holds another tournament"),
    ):
        levels, games = others
        refused = invoke("gauntlet", "random:3", "--levels", levels, "--games", games, "--out", "out", *QUICK)
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert why in refused.stderr


@pytest.mark.slow
def test_without_levels_a_losing_bot_meets_lower_and_lower_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PURE_VARIABLE, "1")  # nothing is compiled for levels that it does not meet
    value = gauntlet(bot("mybot"), "--games", "16")
    assert (value["format"], value["games"], value["finished"]) == ("placement", 16, True)
    met = {level["level"]: level["games"] for level in value["levels"] if level["games"]}
    assert sum(met.values()) == 16
    assert met[5] == met[6] == 4
    assert max(met) == 6
    assert min(met) < 4
    assert value["place"]["position"] == "below"
    assert len(value["faults"]) == 16
    assert {fault["bot"] for fault in value["faults"]} == {"mybot"}
    assert all(Path(fault["files"], "wire.txt").is_file() for fault in value["faults"])


@pytest.mark.slow
def test_faults_come_first_in_a_gauntlet() -> None:
    text = measured("gauntlet", bot("mybot"), "--levels", "1", "--games", "8").stdout
    head, faults, *_ = text.split("\n\n")
    assert head.startswith("mybot on the ladder")
    lines = faults.splitlines()
    assert lines[0] == "mybot lost 8 of 8 games by a fault:"
    (words,) = Path(lines[-1].rpartition(" ")[2]).glob("stderr-*-mybot.txt")
    assert "sorry" in words.read_text()
    assert "  and 3 more, all in out/report.html" in lines
    assert "stands below level 1, the only one that it met" in text


def test_a_bot_without_openings() -> None:
    Path("plain.py").write_text(SORRY)
    done = invoke("gauntlet", "plain.py", "--levels", "1", "--games", "2", "--out", "out", *QUICK)
    assert done.exit_code == 0
    assert done.stderr.count("plain cannot take openings, so all games begin at the start position") == 1
    assert "Note: plain cannot take openings" in done.stdout
    Path("openings.txt").write_text("1 2\n")
    done = invoke("gauntlet", "plain.py", "--levels", "1", "--openings", "openings.txt", *QUICK)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "Error: --openings: plain cannot take openings" in done.stderr


def test_each_run_without_out_gets_a_new_directory(tmp_path: Path) -> None:
    for _ in range(2):
        level = invoke("gauntlet", "ladder:1", "--levels", "1", "--games", "2", *QUICK)
        assert level.exit_code == 0
        assert "ladder:1 (tested) stands" in level.stdout
    made = list((tmp_path / "results").iterdir())
    assert len(made) == 2
    assert all(path.name.startswith("gauntlet-ladder_1") for path in made)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["gauntlet . --levels 1", "duel ../v1 .", "duel . v3"])
def test_games_that_are_measured_from_within_a_bots_directory_are_kept_beside_it(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Inside it they would be files of the bot: it would be another bot, which cannot go on."""
    for name in ("v1", "v2", "v2/v3"):
        bot(name)
    monkeypatch.chdir(tmp_path / "v2")
    result = invoke(*command.split(), "--games", "2", *QUICK)
    assert result.exit_code == 0
    kind = command.split()[0]
    assert f": the games go to ../results/{kind}-" in result.stderr
    assert "changed during the run" not in result.stderr
    (made,) = (tmp_path / "results").iterdir()
    again = invoke(*command.split(), "--games", "2", "--quiet", "--out", f"../results/{made.name}", *QUICK)
    assert (again.exit_code, again.stderr) == (0, "")
    assert not list((tmp_path / "v2").rglob("results"))


@pytest.mark.parametrize("command", ["gauntlet v1 --levels 1", "duel greedy v1", "duel v1 greedy"])
@pytest.mark.parametrize("out", ["v1/games", "v2/../v1/deep/games"])
def test_out_inside_a_bots_directory_is_refused(command: str, out: str, tmp_path: Path) -> None:
    bot("v1")
    bot("v2")
    refused = invoke(*command.split(), "--games", "2", "--out", out, *QUICK)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert f"Error: --out: {out} is inside {tmp_path / 'v1'}, the directory of v1, and" in refused.stderr
    assert "name a directory outside of it" in refused.stderr
    assert {path.name for path in (tmp_path / "v1").iterdir()} == {"bot.py", "bot.toml"}


@pytest.mark.parametrize("command", ["duel greedy random", "gauntlet greedy --levels 1"])
def test_a_host_without_the_sandbox_that_is_required(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def find_sandbox(_mode: str) -> NoReturn:
        raise SandboxError("there is no sandbox")

    monkeypatch.setattr(measuring, "find_sandbox", find_sandbox)
    refused = invoke(*command.split(), "--games", "2", "--sandbox", "required")
    assert (refused.exit_code, refused.stderr) == (2, "Error: there is no sandbox\n")


def test_a_bot_whose_directory_has_no_valid_name_of_a_bot() -> None:
    old = bot("[greedy]*")
    found = one_object(duel(old, "greedy", "--games", "2", "--json"))
    assert found["old"] == "bot _greedy__"


def test_a_board_that_is_too_small_for_openings() -> None:
    result = invoke("duel", "greedy", "first_legal", "--games", "2", *QUICK, "--game", "kalah(1,1)")
    assert result.exit_code == 0
    assert "the board is too small for openings, so all games begin at the start position" in " ".join(
        (result.stdout + result.stderr).split()
    )


def test_games_that_could_not_be_played_are_a_failure_with_the_command_that_plays_them() -> None:
    summary = TournamentResults("Duel", "kalah(6,4)", "2 s per move", ["one", "two"], "points")
    report = RunReport(4, 0, 3, {"r001-1v2": "no sandbox"})
    outcome = Outcome(summary, report, TournamentDirectory(Path("out")))
    command = duel_module.command
    with command.make_context("duel", ["one", "two"]) as context, pytest.raises(Fault) as failed:
        measuring.finish(context, outcome)
    message, again = str(failed.value).split("\n")
    assert message == "1 of 4 games have no result; the same command tries them again:"
    assert shlex.split(again)[1:] == ["duel", "one", "two", "--out", "out"]


def test_faults_without_a_readable_record_are_listed_within_bounds() -> None:
    games = [
        make_summary("one", "two", 0, reason=Reason.EXIT, key=f"g{number}", detail=f"two lost {number}")
        for number in range(measuring.FAULTS_TOLD + 2)
    ]
    assert list(measuring.fault_lines(["one", "two"], games, Path("out"))) == [
        "two lost 7 of 7 games by a fault:",
        *[f"  g{number}: two lost {number}" for number in range(measuring.FAULTS_TOLD)],
        "  and 2 more, all in out/report.html",
        "  conversation and standard error: out/games/g0/",
    ]


def test_lines_are_folded_for_a_narrow_terminal() -> None:
    lines = ["  one two three", "four"]
    assert measuring.wrapped(lines, None) == "  one two three\nfour"
    assert measuring.wrapped(lines, 10) == "  one two\n  three\nfour"


def test_a_directory_of_other_things_is_left_alone(tmp_path: Path) -> None:
    Path("bot").mkdir()
    Path("bot/bot.py").write_text("")
    refused = invoke("gauntlet", "greedy", "--levels", "1", "--out", "bot", *QUICK)
    assert refused.exit_code == 2
    assert refused.stderr.startswith("Error: --out: bot holds other files")
    assert [path.name for path in (tmp_path / "bot").iterdir()] == ["bot.py"]


def test_the_table_of_levels() -> None:
    results = [
        LevelResult(3, "ladder:3", 3, 0, 1, 4, Estimate(190.84, 10.0, 410.0)),
        LevelResult(10, "ladder:10", 0, 0, 2, 1, None),
    ]
    head, three, ten = table(results, with_bars=False).split("\n")
    words = "level games unique won drawn lost score Elo 95 % interval"
    assert " ".join(head.split()) == words
    assert " ".join(three.split()) == "3 4 4 3 0 1 75 % +191 +10 to +410"
    assert " ".join(ten.split()) == "10 2 1 0 0 2 0 %"
    assert len(head) == len(three) <= 80
    bars = [line.rpartition(" ")[2] for line in table(results, with_bars=True).split("\n")[1:]]
    assert bars == ["#" * (BAR * 3 // 4) + "." * (BAR // 4), "." * BAR]


@pytest.mark.slow
@pytest.mark.usefixtures("unhurried_check")
@pytest.mark.parametrize("command", ["play", "check", "duel", "gauntlet"])
def test_a_bot_without_a_manifest_speaks_the_protocol_of_the_command_line(command: str) -> None:
    Path("bot.py").write_text(TURNS_PYTHON)
    options = ("--game", "kalah(2,2)", "--sandbox", "off", "--protocol", "turns", "python3 bot.py")
    rest = {
        "check": ("--total-time", "600"),
        "duel": ("first_legal", "--games", "2", "--quiet"),
        "gauntlet": ("--levels", "1", "--games", "2", "--quiet"),
        "play": ("first_legal",),
    }[command]
    result = invoke(command, *options, *rest)
    assert result.exit_code == 0, result.output
    assert " lost: " not in result.output
    assert "by a fault" not in result.output
