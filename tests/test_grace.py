"""The time to end after END: what a busy host kept the bot waiting is not charged."""

import sys
from typing import cast

import pytest

from benchmarks.fair_clock.busy import Busy
from referee.conformance.game import play_conformance_game
from referee.conformance.script import TestOpponent
from referee.judge.clock import FAIR, WALL, TimeControl, extension_us, host_fault_us
from referee.judge.events import Usage
from referee.judge.limits import Limits
from referee.judge.replay_check import check_replay
from referee.judge.results import GameRecord, Player
from referee.play import Job
from referee.process import turn_timer
from referee.process.cpu_accounting import Reading, ThreadTimes
from referee.process.process_tree import ProcessTree, has_counters
from referee.process.turn_timer import Grace, TurnTimer
from tests.confinement import sandbox_of
from tournaments.checking.evidence import PlayedScenario
from tournaments.checking.output_rules import ending_fault
from tournaments.checking.scenarios import Scenario, varied

CONTROL = TimeControl(move_s=1.0)
GRACE_S = 0.5
BUSY = 8


class Host:
    """A made-up clock and counters, in seconds: time passes in ``run``, ``wait`` and ``sleep`` alone."""

    def __init__(self) -> None:
        self.at = self.cpu = self.waited = self.counted = 0.0
        self.queued = False

    def monotonic(self) -> float:
        return self.at

    def read(self) -> Reading:
        thread = ThreadTimes(
            round(self.cpu * 1e9), round(self.counted * 1e9), round(self.at * 1e6), self.queued
        )
        return Reading(thread.cpu_ns, {1: thread}, round(self.at * 1e9))

    def is_queued(self) -> bool:
        return self.queued

    def run(self, seconds: float) -> None:
        self.counted, self.queued = self.waited, False
        self.at += seconds
        self.cpu += seconds

    def wait(self, seconds: float) -> None:
        """The bot waits for a CPU; the system counts the wait when it is over."""
        self.queued = True
        self.at += seconds
        self.waited += seconds

    def sleep(self, seconds: float) -> None:
        self.counted, self.queued = self.waited, False
        self.at += seconds

    @property
    def tree(self) -> ProcessTree:
        return cast("ProcessTree", self)


class Nobody:
    tree = None


class NoWait:
    def wait_ns(self) -> int:
        return 0

    def close(self) -> None:
        pass


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Host:
    host = Host()
    monkeypatch.setattr(turn_timer, "_has_counters", lambda: True)
    monkeypatch.setattr(turn_timer, "OwnWait", NoWait)
    monkeypatch.setattr("referee.process.turn_timer.time.monotonic", host.monotonic)
    return host


def grace_of(host: Host, clock: str = FAIR) -> Grace:
    return Grace(TurnTimer((host, Nobody()), TimeControl(move_s=1.0, clock=clock)), 0, GRACE_S)


def test_time_in_which_the_bot_waits_for_a_cpu_is_not_charged(host: Host) -> None:
    grace = grace_of(host)
    for _ in range(30):  # 0.3 s of CPU time within 1.5 s
        host.wait(0.04)
        assert not grace.is_over()
        host.run(0.01)
        assert not grace.is_over()
    assert 300_000 <= grace.spent_us() <= 310_000


@pytest.mark.parametrize("spend", [Host.run, Host.sleep])
def test_time_in_which_the_bot_computes_or_sleeps_is_charged(host: Host, spend: object) -> None:
    grace = grace_of(host)
    for step in range(60):
        assert grace.is_over() == (step * 10 > GRACE_S * 1000), step
        spend(host, 0.01)  # type: ignore[operator]


def test_the_wall_clock_charges_all_time(host: Host) -> None:
    grace = grace_of(host, WALL)
    host.wait(0.49)
    assert not grace.is_over()
    host.wait(0.02)
    assert grace.is_over()
    assert grace.spent_us() == 510_000


def test_without_counters_all_time_is_charged(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn_timer, "_has_counters", lambda: False)
    grace = grace_of(host)
    host.wait(0.51)
    assert grace.is_over()
    assert not grace.is_hosts_fault


def test_a_grace_in_which_the_bot_only_waits_ends_as_the_hosts_fault(host: Host) -> None:
    grace = grace_of(host)
    while not grace.is_over():
        host.wait(max(0.001, grace.left_s))
    assert grace.is_hosts_fault
    assert host.at * 1e6 == pytest.approx(host_fault_us(round(GRACE_S * 1e6)), rel=0.01)


def test_cpu_time_confirms_a_limit_however_long_the_queue() -> None:
    assert extension_us(500, 400, Usage(300, 0, 0), is_queued=False) == 1000
    assert extension_us(500, 600, Usage(300, 0, 0), is_queued=True) == 10_000
    assert extension_us(500, 600, Usage(300, 0, 0), is_queued=False) is None
    assert extension_us(500, 600, Usage(501, 0, 0), is_queued=True) is None
    assert extension_us(500, 600, None, is_queued=True) is None


AT_END = {
    "computes": "until = time.thread_time() + 0.3\nwhile time.thread_time() < until: pass\n",
    "sleeps": "time.sleep(0.8)\n",
    "dawdles": "time.sleep(0.3)\nuntil = time.thread_time() + 0.3\nwhile time.thread_time() < until: pass\n",
}
BOT = """
import sys, time
for line in sys.stdin:
    if line == "END\\n": break
    if line.startswith("CHANGE;") and line.endswith(";YOU\\n"):
        board = list(map(int, line.split(";")[2].split(",")))
        north = board[:len(board) // 2 - 1]
        print(f"MOVE;{1 + next(pit for pit, seeds in enumerate(north) if seeds)}", flush=True)
"""


@pytest.mark.slow
@pytest.mark.skipif(not has_counters(), reason="the system does not count waits for a CPU")
@pytest.mark.parametrize("tier", ["bare", "confined"])
@pytest.mark.parametrize("ending", AT_END)
def test_the_end_rule_beside_busy_processes(ending: str, tier: str) -> None:
    bot = Player("bot", (sys.executable, "-S", "-E", "-c", BOT + AT_END[ending]), "/")
    examiner = Player("examiner", ("examiner",), "/")
    control = TimeControl(move_s=2.0, start_s=30.0)
    job = Job(
        "end", "manchester", (examiner, bot), control, Limits(end_grace_s=GRACE_S), "", sandbox_of(tier)
    )
    with Busy(BUSY):
        talk = play_conformance_game(job, 1, TestOpponent(varied, stops_at=1))
    scenario = Scenario("end", "as North", "end", "manchester", 1)
    verdict = ending_fault(PlayedScenario(scenario, talk.record, talk.observed), GRACE_S)
    if ending == "computes":
        assert verdict is None, verdict
        assert talk.observed.ended_us is not None
        assert 300_000 <= talk.observed.ended_us <= GRACE_S * 1e6
    else:
        assert verdict is not None
        assert verdict.cause == "stays after END"


THINKING = BOT.replace(
    "board =",
    "until = time.thread_time() + 0.3\n        while time.thread_time() < until: pass\n        board =",
)


@pytest.mark.slow
@pytest.mark.skipif(not has_counters(), reason="the system does not count waits for a CPU")
def test_the_move_limit_of_a_conformance_game_beside_busy_processes() -> None:
    bot = Player("bot", (sys.executable, "-S", "-E", "-c", THINKING), "/")
    examiner = Player("examiner", ("examiner",), "/")
    control = TimeControl(move_s=0.5, margin_s=0.0, setup_s=0.0, start_s=30.0)
    with Busy(BUSY):
        talk = play_conformance_game(
            Job("move", "kalah(3,2)", (examiner, bot), control, Limits(end_grace_s=5.0)),
            1,
            TestOpponent(varied),
        )
    assert talk.record.result.fault is None, talk.record.result.detail
    assert talk.record.clock == FAIR
    moves = [move for move in talk.record.moves if move.player == 1]
    assert any(move.wall_us > move.charged_us for move in moves)
    assert [str(each) for each in check_replay(GameRecord.from_msgpack(talk.record.to_msgpack()))] == []
