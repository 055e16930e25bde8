"""Failures of ours: noted within bounds, and never the end of the server."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
import trio
from trio.testing import MockClock

from tournaments.server.failures import LONGEST_WAIT_S, MAX_KEPT, Failures, kept_running, wait_s

NOW = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)


def test_the_newest_are_kept_and_repetitions_counted() -> None:
    at = iter(NOW + timedelta(seconds=number) for number in range(1000))
    failures = Failures(lambda: next(at))
    failures.note("practice", "no disk")
    failures.note("practice", "no disk")
    failures.note("checks", "no memory")
    newest = failures.newest()
    assert [(one.where, one.why, one.times) for one in newest] == [
        ("checks", "no memory", 1),
        ("practice", "no disk", 2),
    ]
    assert newest[1].at == NOW + timedelta(seconds=1)
    for number in range(MAX_KEPT + 5):
        failures.note("checks", str(number))
    assert len(failures.newest()) == MAX_KEPT
    assert failures.newest()[0].why == str(MAX_KEPT + 4)


def test_an_exception_is_told_with_where_it_came_from() -> None:
    failures = Failures(lambda: NOW)
    try:
        try:
            raise ZeroDivisionError("once more")
        except ZeroDivisionError as error:
            raise ExceptionGroup("of a nursery", [error]) from None
    except ExceptionGroup as group:
        failures.note("practice", group)
    (failure,) = failures.newest()
    assert failure.why == "ZeroDivisionError: once more"
    assert "test_an_exception_is_told" in failure.trace


def test_waits_double_up_to_a_bound() -> None:
    assert [wait_s(number) for number in (1, 2, 3)] == [1.0, 2.0, 4.0]
    assert wait_s(3, 10.0) == 40.0
    assert wait_s(10_000) == LONGEST_WAIT_S


async def test_a_task_that_fails_is_started_again_later(autojump_clock: MockClock) -> None:
    failures = Failures(lambda: NOW)
    began: list[float] = []

    async def task() -> None:
        await trio.lowlevel.checkpoint()
        began.append(trio.current_time())
        if len(began) < 4:
            raise OSError("no disk")

    start = trio.current_time()
    await kept_running("practice", task, failures)
    assert [at - start for at in began] == pytest.approx([0, 1, 3, 7])
    assert [(one.where, one.times) for one in failures.newest()] == [("practice", 3)]


async def test_after_a_long_time_without_failure_it_does_not_wait_longer(autojump_clock: MockClock) -> None:
    failures = Failures(lambda: NOW)
    began: list[float] = []

    async def task() -> None:
        began.append(trio.current_time())
        if len(began) > 5:
            return
        await trio.sleep(LONGEST_WAIT_S + 1)
        raise OSError("no disk")

    await kept_running("practice", task, failures)
    waits = [later - earlier - LONGEST_WAIT_S - 1 for earlier, later in pairwise(began)]
    assert waits == pytest.approx([1.0] * 5)
