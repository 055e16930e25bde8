"""`kalarena duel`: decisions, notes, faults, going on, bad input."""

import shlex
import signal
import subprocess
from pathlib import Path

import pytest

from tests.builders import KALARENA, RUN_LIMIT_S, invoke, kalarena, one_object

QUICK = ("--game", "kalah(4,3)", "--sandbox", "off")


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def bot(folder: Path, name: str, text: str = "import sys\nsys.exit('sorry')\n") -> Path:
    """A bot in a directory of its own, that takes openings."""
    path = folder / name
    path.mkdir(parents=True)
    (path / "bot.py").write_text(text)
    (path / "bot.toml").write_text('command = ["python3", "bot.py"]\ncapabilities = ["openings"]\n')
    return path


@pytest.mark.slow
def test_it_stops_when_it_knows(tmp_path: Path) -> None:
    done = kalarena(tmp_path, "duel", "first_legal", "greedy", "--sprt", "0,200", "--out", "out", *QUICK)
    assert done.returncode == 0, done.stderr
    assert "greedy is stronger than first_legal." in done.stdout
    assert "If the difference were 0 Elo, about 5 % of such duels would end so." in done.stdout
    assert "likelihood of superiority" in done.stdout
    assert "bounds -2.94 and 2.94 (0 against 200 Elo, alpha 0.05, beta 0.05)" in done.stdout
    again = invoke("duel", "first_legal", "greedy", "--sprt", "0,200", "--out", "out", "--json", *QUICK)
    assert (again.exit_code, again.stderr) == (0, "")
    value = one_object(again.stdout)
    assert (value["kind"], value["new"], value["old"]) == ("duel", "greedy", "first_legal")
    assert (value["decision"], value["finished"]) == ("stronger", True)
    assert value["sprt"]["accepted"] == 1
    assert value["sprt"]["llr"] >= value["sprt"]["upper"]
    assert value["games"] < 1000
    assert value["openings_source"].startswith("random, ")
    assert value["comparison"]["one"] == "greedy"


def test_no_improvement() -> None:
    done = invoke("duel", "greedy", "random:1", "--sprt", "0,200", "--out", "out", "--quiet", *QUICK)
    assert (done.exit_code, done.stderr) == (0, "")
    assert "\nNo improvement of 200 Elo was found.\n" in done.stdout
    assert "random:1 is taken to be less than 200 Elo stronger than greedy" in done.stdout


def test_not_to_be_weaker() -> None:
    done = invoke("duel", "greedy", "random:1", "--sprt", "-200,0", "--out", "out", "--quiet", *QUICK)
    assert done.exit_code == 0
    assert "\nrandom:1 is weaker than greedy.\n" in done.stdout


def test_a_fixed_number_of_games() -> None:
    done = invoke("duel", "first_legal", "greedy", "--games", "20", "--out", "out", "--json", *QUICK)
    assert done.exit_code == 0
    value = one_object(done.stdout)
    assert (value["games"], value["sprt"], value["finished"]) == (20, None, True)
    found = value["comparison"]
    assert found["wins"] + found["draws"] + found["losses"] == 20
    assert value["decision"] in ("stronger", "undecided")
    more = invoke("duel", "first_legal", "greedy", "--games", "24", "--out", "out", "--quiet", *QUICK)
    assert more.exit_code == 0
    assert "% of 24 games" in more.stdout


def test_max_games() -> None:
    arguments = ("duel", "greedy", "minimax:1", "--sprt", "0,2", "--out", "out", "--quiet", *QUICK)
    done = invoke(*arguments, "--max-games", "16")
    assert done.exit_code == 0
    assert "\nUndecided after 16 games.\n" in done.stdout
    assert "a higher --max-games goes on with the same --out" in done.stdout
    more = invoke(*arguments, "--max-games", "20")
    assert more.exit_code == 0
    assert "\nUndecided after 20 games.\n" in more.stdout


def test_the_same_files_and_no_openings(tmp_path: Path) -> None:
    """Two bots of one name are told apart; copies of a game end the test soon."""
    text = (Path(__file__).parent.parent / "sample_bots" / "first_legal.py").read_text()
    for folder in ("one", "two"):
        path = bot(tmp_path / folder, "mybot", text)
        (path / "bot.toml").write_text('command = ["python3", "bot.py"]\n')
    done = kalarena(tmp_path, "duel", "one/mybot", "two/mybot", "--out", "out", *QUICK)
    assert done.returncode == 0
    assert "OLD and NEW are the same files" in done.stderr
    assert "cannot take openings, so all games begin at the start position" in done.stderr
    assert done.stdout.startswith("mybot (new) against mybot (old): sprt, ")
    assert "Undecided after " in done.stdout
    assert "The bots only repeat themselves: of 24 pairs of games 1 are different" in done.stdout
    assert "Note: OLD and NEW are the same files" in done.stdout


def test_faults_of_either_are_told(tmp_path: Path) -> None:
    bad = bot(tmp_path, "version2")
    done = invoke("duel", "greedy", bad, "--games", "4", "--out", "out", "--quiet", *QUICK)
    assert done.exit_code == 0
    assert "version2 lost 4 of 4 games by a fault:" in done.stdout.split("\n\n")[1]
    assert "what was said, and its standard error: out/games/r001-" in done.stdout
    value = one_object(
        invoke("duel", bad, "greedy", "--games", "2", "--out", "other", "--json", *QUICK).stdout
    )
    assert [fault["bot"] for fault in value["faults"]] == ["version2", "version2"]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("greedy", "nobody"), "no such bot: 'nobody'"),
        (("greedy", "random", "--sprt", "20"), "--sprt 20: takes two numbers with a comma between them"),
        (("greedy", "random", "--sprt", "20,0"), "the first number must be below the second"),
        (("greedy", "random", "--sprt", "nan,0"), "the first number must be below the second"),
        (("greedy", "random", "--alpha", "0.7"), "--alpha 0.7: must be above 0 and below 0.5"),
        (("greedy", "random", "--max-games", "1"), "--max-games 1: must be from 2"),
        (("greedy", "random", "--games", "5"), "--games 5: must be even"),
        (("greedy", "random", "--games", "4", "--sprt", "0,5"), "leave --sprt out"),
        (("greedy", "random", "--games", "4", "--max-games", "8"), "leave --max-games out"),
        (("greedy", "random", "--game", "chess"), "chess"),
    ],
)
def test_bad_input(arguments: tuple[str, ...], complaint: str, tmp_path: Path) -> None:
    done = invoke("duel", *arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert complaint in done.stderr
    assert done.stderr.startswith("Error: ")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_stopped_and_gone_on_with(tmp_path: Path) -> None:
    given = ["duel", "greedy", "minimax:1", "--games", "40", *QUICK]
    process = subprocess.Popen(
        [KALARENA, *given], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    assert "the games go to results/duel-minimax_1-greedy-" in process.stderr.readline()
    assert process.stderr.readline() == "minimax:1 against greedy: 4 of 40 games\n"
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=RUN_LIMIT_S)
    assert process.returncode == 130
    assert "minimax:1 against greedy: not all games are played yet." in out
    *_, said, printed = errors.rstrip("\n").split("\n")
    assert "of 40 games to play; this goes on:" in said
    again = kalarena(tmp_path, *shlex.split(printed)[1:], "--json")
    calm = kalarena(tmp_path, *given, "--json")
    assert again.returncode == calm.returncode == 0
    one, other = one_object(again.stdout), one_object(calm.stdout)
    for value in (one, other):
        del value["directory"]
    assert one == other
