"""The command `kalarena check`: its output, its files, its exit status."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import pytest
from click.testing import CliRunner, Result

from referee.errors import RefereeError
from tests.process.test_playing_process import deaf_bot, wait_for_bot
from tests.support.builders import RUN_LIMIT_S
from tests.support.paths import REPOSITORY_ROOT
from tests.support.processes import command_lines_with
from tournaments.checking import scenario_runner
from tournaments.checking.report import Report
from tournaments.checking.scenario_runner import play_scenario
from tournaments.checking.scenarios import Settings, scenarios
from tournaments.cli.check import command
from tournaments.reporting.verification import Verification, read_record

SMALL = ("--game", "kalah(3,2)", "--sandbox", "off", "--total-time", "600")
TALKATIVE = "import sys\nfor line in sys.stdin: print('hello', flush=True)\n"


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def check(*arguments: str) -> Result:
    return CliRunner().invoke(command, arguments)


@pytest.mark.usefixtures("unhurried_check")
def test_a_bot_that_passes() -> None:
    result = check("first_legal", *SMALL)
    assert (result.exit_code, result.stderr) == (0, "")
    detail = "as South against first_legal: "
    assert detail not in result.stdout
    assert detail in check("first_legal", *SMALL, "-v").stdout
    lines = result.stdout.splitlines()
    assert lines[0] == "Check of first_legal"
    assert lines[1].startswith("  kalah(3,2); 10 s per move")
    assert any(line.startswith("pass Starts ") for line in lines)
    assert any(line.startswith("skip Swap ") for line in lines)
    assert lines[-2].startswith("PASSED: ")
    assert lines[-1] == "Next: kalarena gauntlet first_legal --game 'kalah(3,2)'"
    assert max(map(len, lines)) <= 79


def test_a_bot_that_fails_and_what_is_written(tmp_path: Path) -> None:
    (tmp_path / "bot.py").write_text(TALKATIVE)
    times = ("--move-time", "2.5", "--clock", "wall")
    result = check("bot.py", *SMALL, *times, "--junit", "check.xml", "--keep", "games")
    assert result.exit_code == 1
    assert "FAIL Plays as South" in result.stdout
    assert "To do: print debug text to standard error" in result.stdout
    assert "-> hello" in result.stdout
    again = "Next: kalarena play bot.py first_legal --game 'kalah(3,2)' --move-time 2.5 --clock wall "
    assert again in result.stdout
    root = Xml.parse("check.xml").getroot()
    assert int(root.get("failures") or 0) == len(list(root.iter("failure"))) > 0
    records = sorted(Path("games").glob("*.msgpack"))
    # No more games are played then; in one of them END came before the bot could write anything.
    assert len(records) == scenario_runner.MAX_FAULTS + 1
    for path in records:
        verification = Verification()
        assert [str(found) for found in verification.of_record(read_record(path))] == []


@pytest.mark.slow
@pytest.mark.usefixtures("unhurried_check")
def test_files_that_cannot_be_written_hide_no_result() -> None:
    first = next(scenarios(Settings(games=(SMALL[1],)), ()))
    in_the_way = Path("games", f"{first.key}.msgpack")
    in_the_way.mkdir(parents=True)
    too_long = "x" * 300
    result = check("first_legal", *SMALL, "--json", "--junit", too_long, "--keep", "games")
    assert result.exit_code == 3
    view = json.loads(result.stdout)
    assert view["ok"]
    assert result.stderr.splitlines() == [
        f"Error: {in_the_way}: the record could not be written: Is a directory",
        f"Error: {too_long}: the report could not be written: File name too long",
    ]


@pytest.mark.usefixtures("unhurried_check")
def test_json_alone_on_standard_output_and_the_same_report_again() -> None:
    result = check("first_legal", *SMALL, "--json", "--seed", "3")
    assert (result.exit_code, result.stderr) == (0, "")
    view = json.loads(result.stdout)
    report = Report.from_json(view)
    found = (view["ok"], report.bot, report.games, report.sandbox)
    assert found == (True, "first_legal", ("kalah(3,2)",), "off")
    assert {item.id for item in report.items} >= {"found", "starts", "plays-first", "end-mid-game", "memory"}
    assert any(game.opponent == "random:3" for game in report.played)


@pytest.mark.parametrize(
    ("bot", "words"),
    [
        ("no_such_bot", "o such bot: 'no_such_bot'"),
        ("empty", "empty holds no bot"),
        ("unbuilt", "run the build command in the bot's directory"),
        ("locked.sh", "is not executable: chmod +x"),
    ],
)
def test_a_bot_that_is_not_found_fails_the_first_item(tmp_path: Path, bot: str, words: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "unbuilt").mkdir()
    (tmp_path / "unbuilt" / "bot.toml").write_text('command = ["./bot"]\nbuild = ["false"]\n')
    (tmp_path / "locked.sh").write_text("#!/bin/sh\n")
    result = check(bot, "--junit", "check.xml")
    assert result.exit_code == 1
    assert "FAIL Found" in result.stdout
    assert words in " ".join(result.stdout.split())
    assert Xml.parse("check.xml").getroot().get("failures") == "1"


@pytest.mark.slow
def test_a_manifest_says_which_games_are_checked(tmp_path: Path) -> None:
    (tmp_path / "bot").mkdir()
    (tmp_path / "bot" / "bot.py").write_text(TALKATIVE)
    (tmp_path / "bot" / "bot.toml").write_text('command = ["python3", "bot.py"]\ngames = ["bga", "kalah"]\n')
    view = json.loads(check("bot", "--json").stdout)
    assert view["games"] == ["bga", "kalah(6,4)"]
    game_of = {key: item["game"] for item in view["items"] for key in item["games"]}
    assert {game_of[game["key"]] for game in view["played"]} == set(view["games"])
    refused = check("bot", "--game", "kalamala")
    assert refused.exit_code == 1
    assert "does not play kalamala" in " ".join(refused.stdout.split())


BAD_USAGE = {
    "game": (("--game", "chess"), "chess"),
    "no time": (("--move-time", "0"), "--move-time must be more than 0 seconds, not 0"),
    "no games": (("--games", "0"), "at least 1"),
    "no total time": (("--total-time", "0"), "more than 0"),
    "endless time": (("--total-time", "nan"), "more than 0"),
    "seed": (("--seed", "-1"), "a seed is a whole number"),
    "junit": (("--junit", "nowhere/check.xml"), "there is no directory"),
    "keep": (("--keep", "/proc/nowhere"), "--keep"),
    "memory": (("--memory-mb", "1"), "Invalid value for '--memory-mb': 1 is not in the range x>=16"),
}


@pytest.mark.parametrize("case", BAD_USAGE)
def test_bad_usage(case: str) -> None:
    arguments, words = BAD_USAGE[case]
    result = check("first_legal", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert words in result.stderr


@pytest.mark.slow
@pytest.mark.usefixtures("unhurried_check")
@pytest.mark.parametrize("failures", [1, scenario_runner.TRIES])
def test_a_failure_of_our_host_is_tried_again_and_not_the_bots_failure(
    monkeypatch: pytest.MonkeyPatch, failures: int
) -> None:
    calls: list[object] = []

    def fail(*arguments: Any) -> object:
        calls.append(arguments)
        if len(calls) <= failures:
            raise RefereeError("no memory left")
        return play_scenario(*arguments)

    monkeypatch.setattr(scenario_runner, "play_scenario", fail)
    result = check("first_legal", *SMALL, "--junit", "check.xml")
    if failures < scenario_runner.TRIES:
        assert result.exit_code == 0
        return
    assert result.exit_code == 3
    assert "FAIL" not in result.stdout
    assert "PASSED" not in result.stdout
    assert "The check was not completed, which is not the bot's fault: no memory left" in result.stdout
    assert len(calls) == scenario_runner.TRIES
    root = Xml.parse("check.xml").getroot()
    assert (root.get("failures"), root.get("errors")) == ("0", "1")


def test_the_rest_is_left_out_when_the_time_is_used_up(tmp_path: Path) -> None:
    (tmp_path / "bot.py").write_text("import time\ntime.sleep(600)\n")
    result = check("bot.py", *SMALL, "--total-time", "0.3")
    assert result.exit_code == 1  # scripts of a course must not accept this bot
    assert "Not one game was played to its end" in " ".join(result.stdout.split())
    assert "the time for the whole check, 0.3 s, was used up" in " ".join(result.stdout.split())
    assert command_lines_with(str(tmp_path / "bot.py")) == []


@pytest.mark.slow
def test_a_bot_that_hangs_plays_two_games_only(tmp_path: Path) -> None:
    (tmp_path / "bot.py").write_text("import sys\nfor line in sys.stdin: pass\n")
    view = json.loads(check("bot.py", *SMALL, "--move-time", "0.2", "--json").stdout)
    assert len(view["played"]) == 2
    skipped = [item["sentence"] for item in view["items"] if item["status"] == "skipped"]
    assert any("left out after 2 games that were lost on time" in sentence for sentence in skipped)


@pytest.mark.slow
def test_a_signal_ends_the_check_and_the_bot(tmp_path: Path) -> None:
    mark = deaf_bot(tmp_path)
    code = "from tournaments.cli.check import command; command()"
    with subprocess.Popen(
        [sys.executable, "-c", code, f"{mark}.py", "--sandbox", "off"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY_ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        while not any("sandbox" not in line for line in command_lines_with(f"{mark}.py")):
            wait_for_bot(mark)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=RUN_LIMIT_S)
    assert process.returncode == 130
    assert "stopped: the check was not finished" in errors
    assert command_lines_with(f"{mark}.py") == []
