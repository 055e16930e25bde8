"""What of a turn is CPU time and what is stalled time: made-up schedules whose true answer is known."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from referee.process.cpu_accounting import Contention, Reading, Spent, ThreadTimes, TurnAccount, between

MS = 1_000_000
READ_EVERY_MS = 10


@dataclass
class Thread:
    """A thread from its birth to its end, in ms of the turn: a letter for each ms.

    R runs, W waits for a CPU, S sleeps, and a space is before its birth or after its end.
    """

    number: int
    life: str

    def times(self, ms: int) -> ThreadTimes | None:
        """Its counters after so many ms, as the kernel has them: a wait counts when it is over."""
        past = self.life[:ms]
        if not past.strip() or past.endswith(" "):
            return None
        counted = past.rstrip("W")
        runs = sum(after == "R" != before for before, after in zip(" " + past, past, strict=False))
        return ThreadTimes(past.count("R") * MS, counted.count("W") * MS, runs, past[-1] in "RW")


def account(lives: list[str], every_ms: int = READ_EVERY_MS, contention: Contention | None = None) -> Spent:
    """Read such threads every few ms, and at the end of the turn."""
    threads = [Thread(number, life) for number, life in enumerate(lives, 1)]
    length = max(map(len, lives))

    def read(ms: int) -> Reading:
        cpu_ms = sum(life[:ms].count("R") for life in lives)  # ended threads included
        alive = {each.number: times for each in threads if (times := each.times(ms)) is not None}
        return Reading(cpu_ms * MS, alive, ms * MS)

    turn = TurnAccount(read(0), 0, contention=contention)
    for ms in [*range(every_ms, length, every_ms), length]:
        turn.add(read(ms))
    return turn.spent


def stalled_ms(lives: list[str]) -> int:
    """The truth: ms in which a thread waited and none ran."""
    length = max(map(len, lives))
    columns = zip(*(life.ljust(length) for life in lives), strict=True)
    return sum("W" in column and "R" not in column for column in columns)


@pytest.mark.parametrize(
    "lives",
    [
        ["R" * 40],
        ["S" * 40],
        ["WWWWWRRR" * 8],
        ["WWWWWWWWWWWWWWWWWWWWWWWRRR" * 3],  # a wait is longer than the time between two readings
        ["SSSSSSSSSSSSSSSWWWRRR" * 3],
    ],
)
def test_threads_that_live_are_accounted_exactly(lives: list[str]) -> None:
    spent = account(lives)
    assert spent.cpu_us == 1000 * sum(life.count("R") for life in lives)
    assert spent.wait_us == 1000 * stalled_ms(lives)


def test_one_thread_that_works_for_another_is_accounted_nearly() -> None:
    """A wait beside the other's CPU time of the same interval may have been one behind it."""
    lives = ["RRR" + "S" * 30 + "WWR", "   " + "WWWWWRRRRR" * 3 + "SSS"]
    assert stalled_ms(lives) == 17
    assert 12_000 <= account(lives).wait_us <= 17_000


def test_a_bot_gains_nothing_by_queueing_behind_its_own_threads() -> None:
    lives = ["RRRRRWWWWWWWWWWWWWWW" * 5, "WWWWWRRRRRWWWWWWWWWW" * 5, "WWWWWWWWWWRRRRRWWWWW" * 5]
    lives.append("WWWWWWWWWWWWWWWRRRRR" * 5)
    assert account(lives) == Spent(100_000, 0)


def test_waits_beside_a_thread_that_runs_explain_no_sleep() -> None:
    """Three wait while a fourth computes; then all sleep, which is charged."""
    lives = ["R" * 60 + "S" * 60] + ["WWWWWWWWWR" * 6 + "S" * 60] * 3
    assert account(lives).wait_us == 0


@given(st.lists(st.text("RWS", min_size=1, max_size=60).map(lambda life: life + "R"), min_size=1, max_size=1))
def test_of_one_thread_every_wait_is_stalled_time(lives: list[str]) -> None:
    assert account(lives).wait_us == 1000 * lives[0].count("W")


@given(st.lists(st.text("RWS", min_size=30, max_size=60), min_size=1, max_size=4))
def test_stalled_time_and_cpu_time_fit_into_the_turn(lives: list[str]) -> None:
    spent = account(lives)
    length_us = 1000 * max(map(len, lives))
    assert 0 <= spent.wait_us <= length_us
    assert spent.cpu_us == 1000 * sum(life.count("R") for life in lives)
    running_ms = sum("R" in column for column in zip(*(life.ljust(99) for life in lives), strict=True))
    assert (
        spent.wait_us <= length_us - 1000 * running_ms or spent.cpu_us + spent.wait_us <= length_us + 10_000
    )


def test_a_thread_that_ends_has_waited_as_its_siblings_have() -> None:
    """Two of three threads end between two readings; what they waited last is estimated."""
    lives = ["WWWWRRR" * 3 + "S" * 42 + "R", " " * 21 + "WWWWRRR" * 3, " " * 42 + "WWWWRRR" * 3]
    spent = account(lives)
    assert spent.cpu_us == 28_000
    assert 0.8 * stalled_ms(lives) <= spent.wait_us / 1000 <= 1.25 * stalled_ms(lives)


def test_a_sleep_is_not_free_for_a_bot_that_queues_behind_itself() -> None:
    """Twenty threads queue for one CPU for 20 ms, and the bot then sleeps for 80 ms, again and again."""
    burst = ["W" * number + "R" + "W" * (19 - number) for number in range(20)]
    spent = account([(each + "S" * 80) * 5 for each in burst])
    assert spent.cpu_us == 100_000
    assert spent.wait_us <= 60_000  # of 400,000 us of sleep: less than the queueing cost


@pytest.mark.parametrize("threads", [2, 8])
def test_short_queues_make_no_sleep_free(threads: int) -> None:
    """Between any two readings, threads queue for one CPU for a moment, and then sleep."""
    burst = ["W" * number + "R" + "W" * (threads - 1 - number) for number in range(threads)]
    spent = account(
        [(each + "S" * (4 * threads)) * (500 // threads) for each in burst], every_ms=3 * threads + 1
    )
    assert spent.cpu_us == 1000 * threads * (500 // threads)
    assert spent.wait_us <= 200_000  # of 2 s of sleep


def test_waits_at_the_same_time_make_no_sleep_free() -> None:
    """Ten threads wait for the host for 2 ms, all at once, run for a moment, and sleep for 17 ms."""
    lives = ["WW" + "S" * number + "R" + "S" * (17 - number) for number in range(10)]
    spent = account([each * 100 for each in lives], every_ms=11)
    assert spent.wait_us <= 400_000  # of 2 s, of which 200 ms are stalled


def test_threads_that_wake_each_other_are_not_charged_for_the_host() -> None:
    """One of two threads sleeps while the other runs, as with a program and its garbage collector."""
    lives = ["WWWRSSSSSS" * 40, "SSSSWWWRSS" * 40]
    spent = account(lives, every_ms=11)
    assert stalled_ms(lives) == 240
    assert 0.95 * 240_000 <= spent.wait_us <= 240_000


def test_one_sleep_of_few_readings_is_charged_as_far_as_waits_do_not_explain_it() -> None:
    assert account(["WR" + "S" * 40 + "R"]).wait_us == 1000


def test_threads_that_end_make_no_sleep_free() -> None:
    """After it has queued behind itself, it starts a thread every 10 ms that sleeps and ends."""
    burst = ["W" * number + "R" + "W" * (39 - number) for number in range(40)]
    contention = Contention()
    account([each + "S" * 5 for each in burst], contention=contention)
    sleepers = [" " * (10 * number) + "R" + "S" * 79 for number in range(20)]
    spent = account(["R" + "S" * 298 + "R", *sleepers], contention=contention)
    assert spent.wait_us <= 3000


def test_a_thread_that_only_sleeps_and_ends_is_charged_its_sleep() -> None:
    lives = ["R" + "S" * 198 + "R", " " + "S" * 197]
    assert account(lives).wait_us == 0


def test_a_long_sleep_beside_waits_is_charged() -> None:
    lives = ["WWWWR" * 10 + "S" * 500 + "R", " " * 50 + "S" * 490]
    assert account(lives).wait_us <= 44_000


def test_cpu_time_that_is_hidden_takes_all_waits_away() -> None:
    turn = TurnAccount(Reading(0, {}), 0)
    turn.add(Reading(2 * MS, {1: ThreadTimes(2 * MS, 8 * MS, 1)}, 10 * MS))
    assert turn.spent == Spent(2000, 8000)
    turn.add(Reading(4 * MS, {1: ThreadTimes(4 * MS, 16 * MS, 2)}, 20 * MS, hides_cpu=True))
    assert turn.spent == Spent(4000, 0)


def test_the_kernels_own_count_of_stalled_time_is_taken() -> None:
    turn = TurnAccount(Reading(0, {}, 0, stalled_ns=5 * MS), 0)
    turn.add(Reading(3 * MS, {}, 10 * MS, stalled_ns=12 * MS))
    assert turn.spent == Spent(3000, 7000)


def test_a_number_that_another_thread_has_now_counts_from_nothing() -> None:
    before = Reading(50 * MS, {1: ThreadTimes(50 * MS, 50 * MS, 9)}, 0)
    after = Reading(51 * MS, {1: ThreadTimes(1 * MS, 4 * MS, 1)}, 10 * MS)
    assert between(before, after).wait_us >= 4000


def test_cpu_time_that_seems_to_shrink_is_nothing() -> None:
    assert between(Reading(20 * MS, {}), Reading(15 * MS, {})) == Spent(0, 0)  # clock ticks are coarse
