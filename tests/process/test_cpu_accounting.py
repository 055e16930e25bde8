"""Division of a turn into CPU time and stalled time: made-up schedules whose true answer is known."""

from dataclasses import dataclass
from random import Random

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


def burst(threads: int, sleep_ms: int) -> list[str]:
    """Threads that queue for one CPU for a moment, and then sleep."""
    return ["W" * number + "R" + "W" * (threads - 1 - number) + "S" * sleep_ms for number in range(threads)]


def times(lives: list[str], count: int) -> list[str]:
    return [life * count for life in lives]


SCHEDULES: dict[str, tuple[list[str], int, float, float]] = {
    # Lives, ms between two readings, and the least and the most ms that are stalled time.
    "runs": (["R" * 40], 10, 0, 0),
    "sleeps": (["S" * 40], 10, 0, 0),
    "waits": (["WWWWWRRR" * 8], 10, 40, 40),
    "waits longer than the time between readings": (["W" * 23 + "RRR" + "W" * 23 + "RRR"], 10, 46, 46),
    "sleeps and waits": (["SSSSSSSSSSSSSSSWWWRRR" * 3], 10, 9, 9),
    # A wait beside another thread's CPU time of the same interval may have been one behind that thread.
    "a thread works for another": (["RRR" + "S" * 30 + "WWR", "   " + "WWWWWRRRRR" * 3 + "SSS"], 10, 12, 17),
    "queues behind its own threads": (
        times(
            ["RRRRRWWWWWWWWWWWWWWW", "WWWWWRRRRRWWWWWWWWWW", "WWWWWWWWWWRRRRRWWWWW", "W" * 15 + "R" * 5], 5
        ),
        10,
        0,
        0,
    ),
    "waits beside a thread that runs, then all sleep": (
        ["R" * 60 + "S" * 60] + ["WWWWWWWWWR" * 6 + "S" * 60] * 3,
        10,
        0,
        0,
    ),
    # The last waits of threads that end between two readings are estimated.
    "threads end": (
        ["WWWWRRR" * 3 + "S" * 42 + "R", " " * 21 + "WWWWRRR" * 3 + " ", " " * 42 + "WWWWRRR" * 3 + " "],
        10,
        33,
        40,
    ),
    "25 short threads end": (
        ["WWWWWRRR" * 5 + "S" * 200 + "R"] + [" " * (40 + 8 * at) + "WWWWWRRR " for at in range(25)],
        10,
        135,
        165,
    ),
    # Less than the cost of queueing: of 400 ms of sleep, and of 2 s
    "twenty threads queue and sleep": (times(burst(20, 80), 5), 10, 0, 60),
    "two threads queue shortly and sleep": (times(burst(2, 8), 250), 7, 0, 200),
    "eight threads queue shortly and sleep": (times(burst(8, 32), 62), 25, 0, 200),
    # Of 2 s, of which 200 ms are stalled
    "ten threads wait at the same time": (
        times(["WW" + "S" * number + "R" + "S" * (17 - number) for number in range(10)], 100),
        11,
        0,
        400,
    ),
    # One sleeps while the other runs, as with a program and its garbage collector.
    "threads wake each other": (["WWWRSSSSSS" * 40, "SSSSWWWRSS" * 40], 11, 228, 240),
    "one sleep of few readings": (["WR" + "S" * 40 + "R"], 10, 1, 1),
    "a thread sleeps and ends": (["R" + "S" * 198 + "R", " " + "S" * 187 + " "], 10, 0, 0),
    "a long sleep beside waits": (["WWWWR" * 10 + "S" * 500 + "R", " " * 50 + "S" * 490], 10, 0, 44),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_stalled_time_of_a_schedule(name: str) -> None:
    lives, every_ms, least_ms, most_ms = SCHEDULES[name]
    spent = account(lives, every_ms)
    assert spent.cpu_us == 1000 * sum(life.count("R") for life in lives)
    assert least_ms <= spent.wait_us / 1000 <= most_ms


@given(st.text("RW", max_size=60))
def test_of_one_thread_that_never_sleeps_every_wait_is_stalled_time(life: str) -> None:
    assert account([life + "R"]).wait_us == 1000 * life.count("W")


def test_of_one_thread_that_sleeps_at_times_nearly_every_wait_is_stalled_time() -> None:
    """In at most 3 of 100 turns it happens to be asleep at so many readings that it is charged a wait."""
    chance = Random(1)
    lives = ["".join(chance.choices("RWS", k=chance.randint(1, 60))) + "R" for _ in range(500)]
    credited = [(account([life]).wait_us, 1000 * life.count("W")) for life in lives]
    assert all(wait_us <= waited_us for wait_us, waited_us in credited)
    assert sum(wait_us == waited_us for wait_us, waited_us in credited) >= 0.97 * len(lives)


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


def test_threads_that_end_make_no_sleep_free() -> None:
    """After a bot has queued behind itself, it starts a thread every 10 ms that sleeps and ends."""
    contention = Contention()
    account(burst(40, 5), contention=contention)
    sleepers = [" " * (10 * number) + "R" + "S" * 79 for number in range(20)]
    spent = account(["R" + "S" * 298 + "R", *sleepers], contention=contention)
    assert spent.wait_us <= 3000


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
