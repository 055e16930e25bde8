"""`kalarena gauntlet`: levels, places, faults, going on, bad input."""

import shlex
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sample_bots.options import PURE_VARIABLE
from tests.builders import KALARENA, RUN_LIMIT_S, invoke, kalarena, one_object
from tournaments.analysis.ladder_position import LevelResult
from tournaments.analysis.standing import Estimate
from tournaments.cli.gauntlet import BAR, GauntletResults, table
from tournaments.results.store import Store

QUICK = ("--game", "kalah(4,3)", "--sandbox", "off")
"""The lower levels play this in a few hundredths of a second."""


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def bad_bot(folder: Path) -> Path:
    """A bot that ends at once, and takes openings."""
    bot = folder / "mybot"
    bot.mkdir()
    (bot / "bot.py").write_text("import sys\nsys.exit('sorry')\n")
    (bot / "bot.toml").write_text('command = ["python3", "bot.py"]\ncapabilities = ["openings"]\n')
    return bot


def without_directory(value: dict[str, Any]) -> dict[str, Any]:
    return {name: field for name, field in value.items() if name != "directory"}


def test_chosen_levels(tmp_path: Path) -> None:
    done = kalarena(tmp_path, "gauntlet", "greedy", "--levels", "1,3", "--games", "4", "--out", "out", *QUICK)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("greedy on the ladder: gauntlet, kalah(4,3), 10 s per move")
    assert lines[2].split()[:4] == ["level", "games", "unique", "won"]
    assert [line.split()[:2] for line in lines[3:5]] == [["1", "4"], ["3", "4"]]
    assert any(line.startswith("greedy stands ") for line in lines)
    assert lines[-2].split() == ["games", "out"]
    assert lines[-1].startswith("replays ")
    assert lines[-1].endswith("tournament report out")
    assert "greedy on the ladder: 8 of 8 games" in done.stderr.splitlines()
    assert kalarena(tmp_path, "verify", "out").returncode == 0
    again = kalarena(
        tmp_path, "gauntlet", "greedy", "--levels", "1,3", "--games", "4", "--out", "out", *QUICK
    )
    assert (again.returncode, again.stdout) == (0, done.stdout), again.stderr
    assert "all of 8 games are in out already" in again.stderr


def test_more_games_later_and_json() -> None:
    first = invoke(
        "gauntlet", "random:3", "--levels", "1-2", "--games", "2", "--out", "out", "--json", *QUICK
    )
    assert (first.exit_code, first.stderr) == (0, "")
    value = one_object(first.stdout)
    assert (value["kind"], value["bot"], value["format"]) == ("gauntlet", "random:3", "gauntlet")
    assert (value["games"], value["games_total"], value["finished"]) == (4, 4, True)
    assert [level["level"] for level in value["levels"]] == [1, 2]
    assert set(value["place"]) == {
        *("position", "level", "level_low", "level_high", "relative_to", "difference", "against_order")
    }
    assert value["faults"] == []
    more = invoke("gauntlet", "random:3", "--levels", "1-2", "--games", "4", "--out", "out", "--json", *QUICK)
    assert more.exit_code == 0
    assert one_object(more.stdout)["games"] == 8
    fewer = invoke("gauntlet", "random:3", "--levels", "1-2", "--games", "2", "--out", "out", *QUICK)
    assert (fewer.exit_code, fewer.stdout) == (2, "")
    other = invoke("gauntlet", "random:3", "--levels", "1-3", "--games", "4", "--out", "out", *QUICK)
    assert (other.exit_code, other.stdout) == (2, "")
    assert "holds another tournament" in other.stderr


def test_without_levels_it_climbs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bot that loses everything meets lower and lower levels."""
    monkeypatch.setenv(PURE_VARIABLE, "1")  # nothing is compiled for levels that it does not meet
    bad = bad_bot(tmp_path)
    done = invoke("gauntlet", bad, "--games", "16", "--out", "out", "--json", *QUICK)
    assert done.exit_code == 0
    value = one_object(done.stdout)
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


def test_faults_come_first(tmp_path: Path) -> None:
    done = invoke(
        "gauntlet", bad_bot(tmp_path), "--levels", "1", "--games", "8", "--out", "out", "--quiet", *QUICK
    )
    assert (done.exit_code, done.stderr) == (0, "")
    head, faults, *_ = done.stdout.split("\n\n")
    assert head.startswith("mybot on the ladder")
    told = faults.splitlines()
    assert told[0] == "mybot lost 8 of 8 games by a fault:"
    (words,) = Path(told[-1].rpartition(" ")[2]).glob("stderr-*-mybot.txt")
    assert "sorry" in words.read_text()
    assert "  and 3 more, all in out/report.html" in told
    assert "stands below level 1, the only one that it met" in done.stdout


def test_a_bot_without_openings(tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text("import sys\nsys.exit(1)\n")
    done = invoke("gauntlet", "plain.py", "--levels", "1", "--games", "2", "--out", "out", *QUICK)
    assert done.exit_code == 0
    assert done.stderr.count("plain cannot take openings, so all games begin at the start position") == 1
    assert "Note: plain cannot take openings" in done.stdout
    (tmp_path / "openings.txt").write_text("1 2\n")
    done = invoke("gauntlet", "plain.py", "--levels", "1", "--openings", "openings.txt", *QUICK)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "Error: --openings: plain cannot take openings" in done.stderr


def test_a_level_against_its_like() -> None:
    done = invoke("gauntlet", "ladder:1", "--levels", "1", "--games", "2", "--out", "out", "--quiet", *QUICK)
    assert done.exit_code == 0
    assert "ladder:1 (tested) stands" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("nobody",), "no such bot: 'nobody'"),
        (("greedy", "--levels", "0-3"), "--levels 0-3: '0-3' names no levels; they go from 1 to 10"),
        (("greedy", "--levels", "3-1"), "names no levels"),
        (("greedy", "--levels", "1,,2"), "'' names no levels"),
        (("greedy", "--levels", "11"), "names no levels"),
        (("greedy", "--levels", "1", "--games", "3"), "--games 3: must be even"),
        (("greedy", "--game", "chess"), "chess"),
        (("greedy", "--move-time", "0"), "move_s must be more than 0 seconds"),
        (("greedy", "--openings", "nowhere.txt"), "nowhere.txt cannot be read"),
    ],
)
def test_bad_input(arguments: tuple[str, ...], complaint: str, tmp_path: Path) -> None:
    done = invoke("gauntlet", *arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert complaint in done.stderr
    assert done.stderr.startswith("Error: ")
    assert list(tmp_path.iterdir()) == []


def test_default_directories_are_new_ones(tmp_path: Path) -> None:
    for _ in range(2):
        assert invoke("gauntlet", "greedy", "--levels", "1", "--games", "2", *QUICK).exit_code == 0
    made = list((tmp_path / "results").iterdir())
    assert len(made) == 2
    assert all(path.name.startswith("gauntlet-greedy-") for path in made)


@pytest.mark.slow
def test_stopped_and_gone_on_with(tmp_path: Path) -> None:
    """The command that it prints ends with the same result as a run that nobody stopped."""
    given = ["gauntlet", "greedy", "--levels", "1-2", "--games", "20", *QUICK]
    process = subprocess.Popen(
        [KALARENA, *given], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    assert "the games go to results/gauntlet-greedy-" in process.stderr.readline()
    assert process.stderr.readline() == "greedy on the ladder: 4 of 40 games\n"
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=RUN_LIMIT_S)
    assert process.returncode == 130
    assert "Traceback" not in errors
    *_, said, printed = errors.rstrip("\n").split("\n")
    assert "of 40 games to play; this goes on:" in said
    assert out.startswith("greedy on the ladder: ")
    words = shlex.split(printed)[1:]
    assert words[:2] == ["gauntlet", "greedy"]
    assert words[words.index("--out") + 1].startswith("results/gauntlet-greedy-")
    again = kalarena(tmp_path, *words, "--json")
    calm = kalarena(tmp_path, *given, "--json")
    assert again.returncode == calm.returncode == 0
    assert without_directory(one_object(again.stdout)) == without_directory(one_object(calm.stdout))


def test_the_live_conclusion_is_the_place(tmp_path: Path) -> None:
    assert (
        invoke("gauntlet", "greedy", "--levels", "1", "--games", "2", "--out", "out", *QUICK).exit_code == 0
    )
    with Store(tmp_path / "out" / "results.db", read_only=True) as store:
        summary = GauntletResults.load(store)
    assert isinstance(summary, GauntletResults)
    assert summary.levels == {1: "ladder:1"}
    assert summary.conclusion == summary.place.sentences()[0]


def test_table() -> None:
    results = [
        LevelResult(3, "ladder:3", 3, 0, 1, 4, Estimate(190.84, 10.0, 410.0)),
        LevelResult(10, "ladder:10", 0, 0, 2, 1, None),
    ]
    head, three, ten = table(results, with_bars=False).split("\n")
    assert head.split() == [
        *("level", "games", "unique", "won", "drawn", "lost", "score", "Elo", "95", "%", "interval")
    ]
    assert three.split() == ["3", "4", "4", "3", "0", "1", "75", "%", "+191", "+10", "to", "+410"]
    assert ten.split() == ["10", "2", "1", "0", "0", "2", "0", "%"]
    assert len(head) == len(three) <= 80
    bars = [line.rpartition(" ")[2] for line in table(results, with_bars=True).split("\n")[1:]]
    assert bars == ["#" * (BAR * 3 // 4) + "." * (BAR // 4), "." * BAR]


def test_a_directory_of_other_things_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "bot").mkdir()
    (tmp_path / "bot" / "bot.py").write_text("")
    refused = kalarena(tmp_path, "gauntlet", "greedy", "--levels", "1", "--out", "bot", *QUICK)
    assert refused.returncode == 2
    assert refused.stderr.startswith("Error: --out: bot holds other files")
    assert [path.name for path in (tmp_path / "bot").iterdir()] == ["bot.py"]
