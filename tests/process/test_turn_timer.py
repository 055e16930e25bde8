"""The turn timer and the time to end after END, with a made-up clock and made-up counters."""

from typing import cast

import pytest

from referee.judge.clock import FAIR, WALL, TimeControl, extension_us, host_fault_us, own_cpu_us
from referee.judge.events import OffTurnUsage, Usage
from referee.process import turn_timer
from referee.process.cpu_accounting import Reading, ThreadTimes
from referee.process.process_tree import ProcessTree
from referee.process.turn_timer import STOP_CHECK_S, STOP_LIMIT_S, Grace, TurnTimer
from referee.sandbox.host_resources import core_count

CONTROL = TimeControl(move_s=1.0)
SUSPEND = TimeControl(move_s=1.0, ponder="suspend")
GRACE_S = 0.5


class Host:
    """The clock, in microseconds, and the referee's own wait for a CPU."""

    def __init__(self) -> None:
        self.at_us = self.waited_us = 0

    def monotonic(self) -> float:
        return self.at_us / 1e6

    def wait_ns(self) -> int:
        return self.waited_us * 1000

    def close(self) -> None:
        pass


class MadeUpBot:
    """A bot of one thread; time passes in ``run``, ``wait`` and ``sleep`` alone."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.cpu_us = self.waited_us = self.counted_us = self.reads = 0
        self.queued, self.on_turn = False, True
        self.signals: list[str] = []
        self.stop_waits_s: list[float] = []
        self.forks = self.exited = self.hides_cpu = False

    @property
    def tree(self) -> ProcessTree:
        return cast("ProcessTree", self)

    def read(self) -> Reading:
        self.reads += 1
        thread = ThreadTimes(self.cpu_us * 1000, self.counted_us * 1000, self.host.at_us, self.queued)
        return Reading(thread.cpu_ns, {1: thread}, self.host.at_us * 1000, hides_cpu=self.hides_cpu)

    def is_queued(self) -> bool:
        return self.queued

    def is_exiting(self) -> bool:
        return self.exited

    def has_running_thread(self) -> bool:
        return True

    def set_on_turn(self, *, on_turn: bool) -> None:
        self.on_turn = on_turn

    def stop(self, within_s: float) -> bool:
        self.signals.append("stop")
        self.stop_waits_s.append(within_s)
        return not self.forks

    def resume(self) -> None:
        self.signals.append("continue")

    def run(self, time_us: int) -> None:
        self.sleep(time_us)
        self.cpu_us += time_us

    def wait(self, time_us: int) -> None:
        """Wait for a CPU; the system counts the wait when it is over."""
        self.queued = True
        self.host.at_us += time_us
        self.waited_us += time_us

    def sleep(self, time_us: int) -> None:
        self.counted_us, self.queued = self.waited_us, False
        self.host.at_us += time_us

    def wait_and_run(self, wait_us: int, run_us: int) -> None:
        self.wait(wait_us)
        self.run(run_us)


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Host:
    host = Host()
    monkeypatch.setattr(turn_timer, "_has_counters", lambda: True)
    monkeypatch.setattr(turn_timer, "OwnWait", lambda: host)
    monkeypatch.setattr("referee.process.turn_timer.time.monotonic", host.monotonic)
    return host


def timer_of(host: Host, control: TimeControl = CONTROL) -> tuple[TurnTimer, MadeUpBot, MadeUpBot]:
    bots = (MadeUpBot(host), MadeUpBot(host))
    return TurnTimer(bots, control), *bots


def in_game(host: Host) -> tuple[TurnTimer, MadeUpBot, MadeUpBot]:
    timer, first, second = timer_of(host)
    timer.begin_game()
    return timer, first, second


def test_a_turn_has_the_times_from_its_beginning_to_its_end(host: Host) -> None:
    timer, first, _ = in_game(host)
    first.wait_and_run(70, 700)
    timer.begin_turn(0)
    first.wait_and_run(40, 400)
    assert timer.usage() == Usage(400, 40, 0)
    first.run(100)
    assert timer.end_turn(0, 0.01) == Usage(500, 40, 0)
    assert timer.usage() is None


def test_only_the_referees_last_wait_counts(host: Host) -> None:
    timer, first, _ = in_game(host)
    timer.begin_turn(0)
    host.waited_us = 5000  # for another wake-up, before the reply
    timer.mark()
    host.waited_us = 5300
    first.run(1000)
    usage = timer.end_turn(0, 0.01)
    assert usage is not None
    assert usage.referee_wait_us == 300


def test_the_referees_work_since_it_last_saw_no_reply_counts_as_its_wait(host: Host) -> None:
    timer, first, _ = in_game(host)

    def work() -> None:
        with timer.reading_other_bot():
            first.run(2000)
            host.waited_us += 500  # which counts anyway

    def wait_us() -> int:
        usage = timer.usage()
        assert usage is not None
        return usage.referee_wait_us

    work()
    timer.begin_turn(0)
    assert wait_us() == 0
    work()
    work()
    assert wait_us() == 4000
    timer.mark()
    assert wait_us() == 0
    work()
    assert wait_us() == 2000


def test_work_before_a_turn_that_was_expected_to_be_quick_does_not_count(host: Host) -> None:
    for before, expected_us in ((1000, 2000), (-1, 0)):
        timer, first, _ = in_game(host)
        timer.begin_turn(0)
        first.run(10_000)
        timer.end_turn(0, 0.01)
        for _ in range(2):
            began_us = host.at_us - before
            with timer.reading_other_bot():
                first.run(2000)
        timer.measure_slow_turn(0, 0, began_us / 1e6)
        usage = timer.usage()
        assert usage is not None
        assert usage.referee_wait_us == expected_us


def test_cpu_time_after_the_reply_is_not_the_turns(host: Host) -> None:
    timer, first, _ = in_game(host)
    timer.begin_turn(0)
    first.run(10_000)
    host.waited_us = 2000
    usage = timer.end_turn(0, 0.01)
    assert usage == Usage(10_000, 0, 2000)
    assert timer.cores_after > 0
    assert own_cpu_us(usage, 10_000, 1) == 8000
    assert own_cpu_us(usage, 10_000, 0) == 10_000
    assert own_cpu_us(usage, 2000, 1) == 10_000  # all of the turn was the referee's wait


def test_a_bot_that_hides_cpu_time_is_not_queued(host: Host) -> None:
    timer, first, second = timer_of(host)
    for bot in (first, second):
        bot.wait(1000)
    second.hides_cpu = True
    for player, queued in ((0, True), (1, False)):
        timer.sample_start(player)
        assert timer.is_queued(player) == queued
    timer.begin_game()
    timer.begin_turn(0)
    timer.sample()
    assert timer.is_queued(0)
    first.hides_cpu = True
    timer.sample()
    first.hides_cpu = False
    timer.sample()
    assert not timer.is_queued(0)
    timer.end_turn(0, 0.01)
    timer.begin_turn(0)
    assert timer.is_queued(0)


def test_quick_bots_are_not_measured(host: Host) -> None:
    timer, first, second = timer_of(host)
    assert timer.must_prepare == [True, True]  # a bot may move before the game begins for the referee
    timer.begin_game(started_s=0.001)
    assert timer.must_prepare == [False, False]
    assert (first.reads, second.reads) == (0, 0)
    timer.begin_turn(0)
    assert timer.end_turn(0, 0.0001) is None
    assert timer.must_prepare == [False, False]
    timer.begin_turn(0)
    assert timer.end_turn(0, 0.01) is not None
    assert timer.must_prepare == [True, False]


@pytest.mark.parametrize("start_us", [9000, 0])
def test_a_slow_turn_that_was_expected_to_be_quick_is_compared_with_the_last_reading(
    host: Host, start_us: int
) -> None:
    """After a start of under 5 ms there is no reading: the counters begin with the process."""
    timer, first, _ = timer_of(host)
    first.run(start_us)
    timer.begin_game(start_us / 1e6)
    first.run(300)  # in a quick turn
    first.wait_and_run(700, 5000)  # in the next turn, until it was noticed
    host.waited_us = 60
    timer.measure_slow_turn(0, earlier_us=300, turn_began=(start_us + 300) / 1e6)
    assert timer.is_measuring
    first.run(1000)
    assert timer.end_turn(0, 0.01) == Usage(6000, 700, 60)


def test_cpu_time_off_turn_is_the_other_bots(host: Host) -> None:
    timer, _, second = in_game(host)
    timer.begin_turn(0)
    second.run(4000)
    timer.end_turn(0, 0.01)
    timer.turn_begun(1)
    second.run(9000)
    assert timer.off_turn_cpu_us == [0, 4000]


def test_the_counters_of_both_bots_show_who_used_the_processors_in_a_turn(host: Host) -> None:
    timer, first, second = in_game(host)
    timer.begin_turn(0)
    first.run(1000)
    second.run(4000)
    cores = core_count()
    assert timer.off_turn_usage() == OffTurnUsage(4000, 5000, cores)
    second.run(1000)
    timer.end_turn(0, 0.01)
    assert timer.off_turn_usage() == OffTurnUsage(5000, 6000, cores)
    assert timer.off_turn_cpu_us == [0, 5000]


def test_a_turn_that_ends_with_the_game_counts_off_turn_too(host: Host) -> None:
    timer, _, second = in_game(host)
    timer.begin_turn(0)
    second.run(4000)
    timer.cpu_us()
    assert timer.off_turn == (0, 4000)


def test_a_turn_that_is_noticed_late_has_at_least_the_cpu_time_beyond_what_was_possible_before(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn_timer, "_cores", lambda: 1)
    for started_s, before_us in ((0.1, 0), (0.001, 0), (0.1, 3000)):
        timer, _, second = timer_of(host)
        timer.begin_game(started_s)
        host.at_us += before_us  # quick turns
        turn_began = host.monotonic()
        second.run(9000)  # while the referee has no CPU
        timer.measure_slow_turn(0, earlier_us=0, turn_began=turn_began)
        second.run(1000)
        off_turn = timer.off_turn_usage()
        assert off_turn is not None
        assert off_turn[:2] == (10_000 - before_us, 10_000)


def test_the_counters_of_a_start_begin_with_the_processes(host: Host) -> None:
    timer, _, second = timer_of(host)
    second.run(4000)
    off_turn = timer.off_turn_usage_in_start(0)
    assert off_turn is not None
    assert off_turn[:2] == (4000, 4000)


def test_in_a_long_turn_the_other_bot_is_read_repeatedly(host: Host) -> None:
    timer, first, second = in_game(host)
    timer.begin_turn(0)
    before = second.reads
    first.wait_and_run(3000, 10_000)
    timer.sample()
    assert second.reads == before  # most turns are short
    host.at_us += 600_000
    timer.sample()
    assert second.reads == before  # and not contended
    first.wait_and_run(3000, 10_000)
    timer.sample()
    assert second.reads == before + 1


def test_the_bot_that_is_not_on_turn_is_stopped_once_and_continued_for_its_turn(host: Host) -> None:
    timer, first, second = timer_of(host, SUSPEND)
    timer.begin_turn(0)
    timer.turn_begun(0)
    assert (first.signals, second.signals) == ([], ["stop"])
    timer.end_turn(0, 0.0001)
    assert timer.must_prepare == [True, True]
    timer.begin_turn(1)
    timer.turn_begun(1)
    assert (first.signals, second.signals) == (["stop"], ["stop", "continue"])
    timer.end_game()
    assert (first.signals, second.signals) == (["stop", "continue"], ["stop", "continue"])


def test_a_stop_in_a_shared_event_loop_is_completed_without_a_wait(host: Host) -> None:
    first, second = bots = (MadeUpBot(host), MadeUpBot(host))
    timer = TurnTimer(bots, SUSPEND, owns_loop=False)
    second.forks = True
    timer.begin_turn(0)
    assert timer.stop_due == pytest.approx(STOP_CHECK_S)
    first.run(1000)
    timer.check_stop()
    assert timer.stop_due == pytest.approx(0.002)
    second.forks = False
    timer.check_stop()
    assert timer.stop_due == float("inf")
    first.forks = True
    timer.begin_turn(1)
    second.run(round(STOP_LIMIT_S * 1e6))
    timer.check_stop()  # too late to go on
    assert timer.stop_due == float("inf")
    assert (first.signals, second.signals) == (["stop"], ["stop"] * 3 + ["continue"])
    assert set(first.stop_waits_s + second.stop_waits_s) == {0.0}


def test_the_processors_go_to_the_bot_whose_turn_is_slow(host: Host) -> None:
    timer, first, second = timer_of(host)
    timer.begin_game(started_s=0.001)
    assert (first.on_turn, second.on_turn) == (True, True)  # while all turns are quick
    timer.measure_slow_turn(1, earlier_us=0, turn_began=0.0)
    assert (first.on_turn, second.on_turn) == (False, True)
    timer.end_turn(1, 0.01)
    timer.begin_turn(0)
    assert (first.on_turn, second.on_turn) == (True, False)
    timer.end_game()
    assert (first.on_turn, second.on_turn) == (True, True)


def test_readings_are_closer_together_while_the_bot_waits_for_a_cpu(host: Host) -> None:
    timer, first, _ = in_game(host)
    timer.begin_turn(0)
    host.at_us += 500_000
    first.run(10_000)
    timer.sample()
    assert timer.sample_due == pytest.approx(host.monotonic() + turn_timer.CALM_SAMPLE_S)
    first.wait_and_run(3000, 10_000)
    timer.sample()
    assert timer.sample_due == pytest.approx(host.monotonic() + turn_timer.SAMPLE_S)
    usage = timer.end_turn(0, 0.03)
    assert usage is not None
    assert usage.wait_us == 3000


def test_without_counters_the_clock_is_the_wall(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn_timer, "_has_counters", lambda: False)
    timer, first, _ = timer_of(host)
    assert (timer.clock, timer.must_prepare) == (WALL, [False, False])
    timer.begin_turn(0)
    assert timer.end_turn(0, 0.01) is None
    assert timer.cpu_us() == (None, None)
    grace = Grace(timer, 0, GRACE_S)
    first.wait(510_000)
    assert grace.is_over()
    assert not grace.is_hosts_fault


# The time to end


def grace_of(host: Host, clock: str = FAIR) -> tuple[Grace, MadeUpBot]:
    timer, first, _ = timer_of(host, TimeControl(move_s=1.0, clock=clock))
    return Grace(timer, 0, GRACE_S), first


def test_time_in_which_the_bot_waits_for_a_cpu_is_not_charged(host: Host) -> None:
    grace, bot = grace_of(host)
    for _ in range(30):  # 0.3 s of CPU time within 1.5 s
        bot.wait(40_000)
        assert not grace.is_over()
        bot.run(10_000)
        assert not grace.is_over()
    assert 300_000 <= grace.spent_us() <= 310_000


@pytest.mark.parametrize("computes", [False, True])
def test_time_in_which_the_bot_computes_or_sleeps_is_charged(host: Host, computes: bool) -> None:
    grace, bot = grace_of(host)
    for step in range(60):
        assert grace.is_over() == (step * 10 > GRACE_S * 1000), step
        bot.run(10_000) if computes else bot.sleep(10_000)


def test_the_wall_clock_charges_all_time(host: Host) -> None:
    grace, bot = grace_of(host, WALL)
    bot.wait(490_000)
    assert not grace.is_over()
    bot.wait(20_000)
    assert grace.is_over()
    assert grace.spent_us() == 510_000


def test_the_time_in_which_the_kernel_ends_a_bot_is_not_charged(host: Host) -> None:
    """It waits for locks of other processes then, which no counter of waits for a CPU shows."""
    grace, bot = grace_of(host)
    bot.run(200_000)
    assert not grace.is_over()
    bot.exited = True
    bot.sleep(700_000)
    assert not grace.is_over()
    assert grace.spent_us() == GRACE_S * 1e6
    while not grace.is_over():
        bot.sleep(max(1000, round(grace.wait_s() * 1e6)))
    assert grace.is_hosts_fault


@pytest.mark.parametrize(("turns", "is_late"), [(15, False), (30, True)])
def test_a_bot_that_waits_for_a_cpu_until_it_exits_is_late_by_its_charged_time(
    host: Host, turns: int, is_late: bool
) -> None:
    grace, bot = grace_of(host)
    bot.sleep(300_000)
    for _ in range(turns):  # 10 ms are charged each time
        bot.wait(40_000)
        assert not grace.is_over()
        bot.run(10_000)
    bot.exited = True
    bot.sleep(10_000 if is_late else 700_000)
    assert grace.is_over() == is_late
    assert (grace.spent_us() > GRACE_S * 1e6) == is_late


def test_a_bot_that_exits_after_its_grace_is_late(host: Host) -> None:
    grace, bot = grace_of(host)
    bot.sleep(700_000)
    assert grace.is_over()
    bot.exited = True
    assert grace.spent_us() == 700_000


@pytest.mark.parametrize("clock", [FAIR, WALL])
def test_a_limit_after_the_end_is_not_extended_because_of_the_end(host: Host, clock: str) -> None:
    grace, bot = grace_of(host, clock)
    bot.exited = True
    after = grace.again(0.1)
    bot.sleep(110_000)
    assert after.is_over()
    assert not after.is_hosts_fault


def test_a_grace_in_which_the_bot_only_waits_ends_as_the_hosts_fault(host: Host) -> None:
    grace, bot = grace_of(host)
    while not grace.is_over():
        bot.wait(max(1000, round(grace.wait_s() * 1e6)))
    assert grace.is_hosts_fault
    assert host.at_us == pytest.approx(host_fault_us(round(GRACE_S * 1e6)), rel=0.01)


def test_cpu_time_confirms_a_limit_however_long_the_queue() -> None:
    assert extension_us(500, 400, Usage(300, 0, 0), is_queued=False) == 1000
    assert extension_us(500, 600, Usage(300, 0, 0), is_queued=True) == 10_000
    assert extension_us(500, 600, Usage(300, 0, 0), is_queued=False) is None
    assert extension_us(500, 600, Usage(501, 0, 0), is_queued=True) is None
    assert extension_us(500, 600, None, is_queued=True) is None
