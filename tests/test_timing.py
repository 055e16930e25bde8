"""When the counters are read, and what they are compared with: made-up counters, no processes."""

from typing import cast

import pytest

from referee.judge.clock import TimeControl
from referee.judge.events import Usage
from referee.process import turn_timer
from referee.process.cpu_accounting import Reading, ThreadTimes
from referee.process.process_tree import ProcessTree
from referee.process.turn_timer import TurnTimer

US = 1000
CONTROL = TimeControl(move_s=1.0)
SUSPEND = TimeControl(move_s=1.0, ponder="suspend")


class Tree:
    """A bot's counters as the test sets them, in microseconds."""

    def __init__(self) -> None:
        self.cpu_us = self.wait_us = self.slept_us = self.reads = 0
        self.calls: list[str] = []

    def read(self) -> Reading:
        self.reads += 1
        # Its one thread runs, waits or sleeps at any time.
        at_ns = (self.cpu_us + self.wait_us + self.slept_us) * US
        return Reading(
            self.cpu_us * US, {1: ThreadTimes(self.cpu_us * US, self.wait_us * US, self.reads)}, at_ns
        )

    def activity(self) -> str:
        return "running"

    def is_queued(self) -> bool:
        return False

    def stop(self, within_s: float) -> bool:
        self.calls.append("stop")
        return True

    def resume(self) -> None:
        self.calls.append("go on")

    def use(self, cpu_us: int, wait_us: int = 0) -> None:
        self.cpu_us += cpu_us
        self.wait_us += wait_us


class Bot:
    def __init__(self) -> None:
        self.made_up = Tree()

    @property
    def tree(self) -> ProcessTree:
        return cast("ProcessTree", self.made_up)


class Own:
    waited_us = 0

    def wait_ns(self) -> int:
        return self.waited_us * US

    def close(self) -> None:
        pass


@pytest.fixture(autouse=True)
def counters(monkeypatch: pytest.MonkeyPatch) -> Own:
    own = Own()
    monkeypatch.setattr(turn_timer, "_has_counters", lambda: True)
    monkeypatch.setattr(turn_timer, "OwnWait", lambda: own)
    return own


def timer_of(control: TimeControl = CONTROL, *, has_begun: bool = True) -> tuple[TurnTimer, Tree, Tree]:
    bots = (Bot(), Bot())
    time = TurnTimer(bots, control)
    if has_begun and control is not SUSPEND:
        time.begin_game()
    return time, bots[0].made_up, bots[1].made_up


def test_a_turn_is_what_was_used_from_its_beginning_to_its_end() -> None:
    time, first, _ = timer_of()
    first.use(700, 70)
    time.begin_turn(0)
    first.use(400, 40)
    assert time.usage() == Usage(400, 40, 0)
    first.use(100)
    assert time.end_turn(0, 0.01) == Usage(500, 40, 0)
    assert not time.is_measuring
    assert time.usage() is None


def test_only_the_referees_last_wait_counts(counters: Own) -> None:
    time, first, _ = timer_of()
    time.begin_turn(0)
    counters.waited_us = 5000  # for another wake-up, before the reply
    time.mark()
    counters.waited_us = 5300
    first.use(1000)
    usage = time.end_turn(0, 0.01)
    assert usage is not None
    assert usage.referee_wait_us == 300


def test_cpu_time_after_the_reply_is_not_the_turns(counters: Own) -> None:
    time, first, _ = timer_of()
    time.begin_turn(0)
    first.use(10_000)
    counters.waited_us = 2000
    assert time.end_turn(0, 0.01) == Usage(8000, 0, 2000)


@pytest.mark.parametrize(("started_s", "reads"), [(0.02, 1), (0.001, 0)])
def test_the_game_begins_with_a_reading_unless_the_bots_are_quick(started_s: float, reads: int) -> None:
    time, first, second = timer_of(has_begun=False)
    assert time.must_prepare == [True, True]  # a bot may move before the game begins for us
    time.begin_game(started_s)
    assert time.has_begun
    assert time.must_prepare == [False, False]
    assert not time.is_measuring
    assert (first.reads, second.reads) == (reads, reads)


def test_quick_bots_are_left_alone() -> None:
    time, first, second = timer_of()
    time.begin_turn(0)
    reads = first.reads, second.reads
    assert time.end_turn(0, 0.0001) is None
    assert (first.reads, second.reads) == reads
    assert time.must_prepare == [False, False]
    time.begin_turn(0)
    assert time.end_turn(0, 0.01) is not None
    assert time.must_prepare == [True, False]


def test_a_turn_that_was_expected_to_be_quick_is_compared_with_the_last_reading(counters: Own) -> None:
    time, first, _ = timer_of(has_begun=False)
    first.use(9000)  # to start
    time.begin_game()
    first.use(300)  # in a quick turn
    first.use(5000, 700)  # in the next turn, until it was noticed
    counters.waited_us = 60
    time.measure_slow_turn(0, earlier_us=300, turn_began=9300e-6)
    assert time.is_measuring
    first.use(1000)
    assert time.end_turn(0, 0.01) == Usage(6000, 700, 60)


def test_cpu_time_off_turn_is_the_other_bots() -> None:
    time, _, second = timer_of()
    time.begin_turn(0)
    second.use(4000)
    time.end_turn(0, 0.01)
    time.turn_begun(1)
    second.use(9000)
    assert time.off_turn_cpu_us == [0, 4000]


def test_the_bot_that_is_not_on_turn_is_stopped_once_and_goes_on_for_its_turn() -> None:
    time, first, second = timer_of(SUSPEND)
    assert time.must_prepare == [True, True]
    time.begin_turn(0)
    time.turn_begun(0)
    assert (first.calls, second.calls) == ([], ["stop"])
    time.end_turn(0, 0.0001)
    assert time.must_prepare == [True, True]
    time.begin_turn(1)
    time.turn_begun(1)
    assert (first.calls, second.calls) == (["stop"], ["stop", "go on"])
    time.end_game()
    assert (first.calls, second.calls) == (["stop", "go on"], ["stop", "go on"])


def test_readings_are_closer_together_while_the_bot_waits_for_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr("referee.process.turn_timer.time.monotonic", lambda: clock[0])
    time, first, _ = timer_of()
    time.begin_turn(0)
    assert time.sample_due == 100.0 + turn_timer.SAMPLE_S
    clock[0] = 101.0
    first.use(10_000)
    time.sample()
    assert time.sample_due == 101.0 + turn_timer.CALM_SAMPLE_S
    first.use(10_000, 3000)
    time.sample()
    assert time.sample_due == 101.0 + turn_timer.SAMPLE_S
    assert time.end_turn(0, 0.03) == Usage(20_000, 3000, 0)


def test_without_counters_the_clock_is_the_wall(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn_timer, "_has_counters", lambda: False)
    time, _, _ = timer_of()
    assert time.clock == "wall"
    assert time.must_prepare == [False, False]
    time.begin_turn(0)
    assert not time.is_measuring
    assert time.end_turn(0, 0.01) is None
    assert time.cpu_us() == (None, None)
