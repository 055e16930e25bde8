"""`kalarena check` passes the sample bots in each game, and bots that have to be built."""

import shutil
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from referee.conformance import game as conformance_game
from referee.judge.clock import TimeControl
from referee.judge.replay_check import check_replay
from referee.sandbox.bubblewrap import Sandbox
from referee.sandbox.detection import AUTO, find_sandbox
from tests.support.confinement import UNHURRIED, reading_bot
from tests.support.paths import REPOSITORY_ROOT
from tests.support.tiers import slow
from tournaments.bots.resolve import resolve_bot
from tournaments.checking import scenario_runner
from tournaments.checking.check import check_bot
from tournaments.checking.report import Item, Report, Status
from tournaments.checking.scenario_runner import play_scenario
from tournaments.checking.scenarios import Scenario, Settings, scenarios

if TYPE_CHECKING:
    from tournaments.checking.evidence import PlayedScenario

CONTROL = TimeControl(move_s=60.0)
SMALL = ("kalah(4,3)+pie", "kalah(3,2)")


def check(bot: str, *games: str, rounds: int = 1) -> Report:
    settings = Settings(games, CONTROL, UNHURRIED, find_sandbox(AUTO), rounds, total_s=1800)
    return check_bot(resolve_bot(bot, Path.cwd(), game=games[0]), settings)


def assert_all_passed(report: Report) -> None:
    assert report.host_fault == ""
    assert [item for item in report.items if item.status in (Status.FAILED, Status.WARNING)] == []
    assert report.passed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bot", "games"),
    [
        ("first_legal", ("manchester", "bga", "kalamala+cap=40")),
        ("random:1", SMALL),
        ("swap_happy", SMALL),
        ("minimax:2", SMALL),
        ("greedy", ("bga",)),
        ("greedy", ("kalamala+cap=40",)),
    ],
)
def test_sample_bots_pass(bot: str, games: tuple[str, ...]) -> None:
    report = check(bot, *games)
    assert_all_passed(report)
    assert {item.game for item in report.items} == {"", *games}
    skipped = {item.id for item in report.items if item.status is Status.SKIPPED} & {"swap", "extra-turns"}
    expected = {"bga": {"swap"}, "kalamala+cap=40": {"swap", "extra-turns"}}
    assert skipped == expected.get(games[0], set())


@pytest.mark.slow
def test_a_small_game_in_full_with_records_and_callbacks() -> None:
    seen: list[Item] = []
    begun: list[tuple[Scenario, int, int]] = []
    played: list[PlayedScenario] = []
    settings = Settings(("kalah(4,3)+pie",), CONTROL, UNHURRIED, rounds=2, seed=5, total_s=1800)
    report = check_bot(
        resolve_bot("first_legal", Path.cwd()),
        settings,
        on_item=seen.append,
        on_scenario=lambda *each: begun.append(each),
        on_played=played.append,
    )
    assert_all_passed(report)
    assert tuple(seen) == report.items
    assert [each.scenario.key for each in played] == [game.key for game in report.played]
    assert [(number, total) for _, number, total in begun] == [
        (number, len(played)) for number in range(1, len(played) + 1)
    ]
    assert len({each.scenario.key for each in played}) == len(played)
    assert {each.scenario.opponent for each in played} == {
        *("", "first_legal", "random:5", "random:6", "swap_happy")
    }
    for each in played:
        assert [str(complaint) for complaint in check_replay(each.record)] == [], each.scenario.key
    sentences = {item.id: item.sentence for item in report.items}
    assert "the same game again" in sentences["repeats"]
    assert sentences["swap"].startswith("continued correctly after the opponent's SWAP in ")
    assert sentences["swap"].endswith(" in which it could have")
    assert report.numbers["start_worst_ms"] >= report.numbers["start_median_ms"] > 0
    assert report.numbers["moves"] > 20


@pytest.mark.slow
def test_a_bot_that_has_to_be_built(tmp_path: Path) -> None:
    (tmp_path / "bot.src").write_text((REPOSITORY_ROOT / "sample_bots" / "first_legal.py").read_text())
    shutil.copy(REPOSITORY_ROOT / "sample_bots" / "__init__.py", tmp_path)
    (tmp_path / "bot.toml").write_text(
        'name = "Built"\ncommand = ["python3", "made.py"]\nbuild = ["cp", "bot.src", "made.py"]\n'
        'made = ["made.py"]\ngames = ["manchester"]\n'
    )
    report = check(str(tmp_path), "manchester")
    assert_all_passed(report)
    assert report.bot == "Built"
    assert (tmp_path / "made.py").exists()


def test_a_slow_bot_is_a_warning_if_no_full_game_fits_into_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """No game has the time for a second turn, and no time is left after a game from each seat."""
    settings = Settings(control=CONTROL, limits=UNHURRIED, sandbox=find_sandbox(AUTO), total_s=600)
    played: list[PlayedScenario] = []
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + settings.total_s * (len(played) > 1))
    monkeypatch.setattr(scenario_runner, "time", clock)  # which only decides what is left out
    monkeypatch.setattr(scenario_runner, "SHARE_OF_ONE", 0.0)
    report = check_bot(reading_bot(), settings, on_played=played.append)
    plays = {item.id: item for item in report.items if item.id.startswith("plays-")}
    assert {item.status for item in plays.values()} == {Status.WARNING}
    for item in plays.values():
        assert "moves without a fault, but 0 full games" in item.sentence
        assert "--total-time" in item.sentence
    assert report.failures == ()
    assert [each.was_ended_early for each in played] == [True, True]


POLLING_BOT = """
import os, select
received = b""
while True:
    select.select([0], [], [])
    received += os.read(0, 4096)
    *lines, received = received.split(b"\\n")
    for line in lines:
        if line == b"START;South" or line.endswith(b";YOU"):
            board = line.split(b";")[2].split(b",") if b"CHANGE" in line else [b"1"] * 4
            own = board[len(board) // 2 : -1]
            os.write(1, b"MOVE;%d\\n" % next(pit for pit, seeds in enumerate(own, 1) if seeds != b"0"))
        elif line == b"END":
            os._exit(0)
"""
"""Bot that waits for its lines as event loops do, and moves first with South's first pit that holds seeds."""


@pytest.mark.parametrize("control", [TimeControl(move_s=0.4), *slow(TimeControl(game_s=1.0))])
def test_a_bot_that_polls_for_its_lines_is_checked_in_full_games(
    monkeypatch: pytest.MonkeyPatch, control: TimeControl
) -> None:
    monkeypatch.setattr(conformance_game, "QUIET_S", 0.6)
    player = replace(reading_bot(), command=(sys.executable, "-c", POLLING_BOT), capabilities=("time",))
    scenario = replace(next(scenarios(Settings(("kalah(2,3)",)), ())), key="watched")
    control = replace(control, start_s=60.0, setup_s=0.0)
    played = play_scenario(scenario, player, control, UNHURRIED, Sandbox())
    assert played.ended_regularly, played.record.result
    assert sum(move.player != played.bot for move in played.record.moves) > 1
    limit_ms = round(1000 * (control.game_s or control.move_s or 0))
    times = [line for line in played.lines("to") if line.startswith("TIME;")]
    assert times[0] == f"TIME;{limit_ms};{limit_ms}"
    assert all(int(number) <= limit_ms for line in times for number in line.split(";")[1:])
    assert check_replay(played.record) == []


@pytest.mark.slow
def test_a_board_without_any_choice() -> None:
    report = check("first_legal", "kalah(1,1)")
    assert [item for item in report.items if item.status is Status.FAILED] == []
