"""Caches of computed values and of the course's tables: one computation for all tasks that wait for it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from tests.support.courses import FAST_PASSWORDS, NOW
from tests.support.databases import database_of
from tournaments.course.course import Course
from tournaments.course.model import CourseError
from tournaments.server.cache import MAX_AGE_S, ReadCache, SingleFlightCache


class Source:
    """A cache of two values, and the computations of its values."""

    def __init__(self) -> None:
        self.cache: SingleFlightCache[str, int] = SingleFlightCache(2)
        self.computed: list[str] = []
        self.fails = False

    async def get(self, key: str, least: int = 0) -> int:
        """Return the number of the value's computation; smaller ones than ``least`` are not fresh."""

        async def compute() -> int:
            self.computed.append(key)
            number = len(self.computed)
            await trio.lowlevel.checkpoint()
            if self.fails:
                raise ValueError(key)
            return number

        return await self.cache.get(key, compute, lambda value: value >= least)


async def test_tasks_that_wait_share_one_computation() -> None:
    source = Source()
    found: set[tuple[str, int]] = set()

    async def get(key: str) -> None:
        found.add((key, await source.get(key)))

    async with trio.open_nursery() as nursery:
        for key in "aaabab":
            nursery.start_soon(get, key)
    assert sorted(source.computed) == ["a", "b"]
    assert found == set(zip(source.computed, (1, 2), strict=True))


async def test_the_least_recently_used_value_is_dropped() -> None:
    source = Source()
    for key in "aabacab":
        await source.get(key)
    assert source.computed == ["a", "b", "c", "b"]


async def test_a_value_that_is_not_fresh_is_computed_again() -> None:
    source = Source()
    assert [await source.get("a", least) for least in (0, 2, 2)] == [1, 2, 2]
    assert source.cache.peek("a") == 2
    assert await source.get("b", least=9) == 3  # not fresh even now: it is not kept
    assert source.cache.peek("b") is None


async def test_tasks_that_wait_share_a_failure_and_the_next_task_tries_again() -> None:
    """Pages that wait for a database whose host is silent would otherwise try it one after the other."""
    source = Source()
    await source.get("a")
    source.fails = True
    failures = 0

    async def get() -> None:
        nonlocal failures
        with pytest.raises(ValueError, match="a"):
            await source.get("a", least=2)
        failures += 1

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(get)
    assert (failures, len(source.computed)) == (3, 2)
    assert await source.get("a") == 1  # the old value is kept
    source.fails = False
    assert await source.get("a", least=2) == 3


async def test_a_cancelled_task_does_not_hold_up_the_others() -> None:
    source = Source()
    with trio.CancelScope() as scope:
        scope.cancel()
        await source.get("a")
    with trio.fail_after(10):
        assert await source.get("a") == 1


# The course's tables


class Tables:
    """A course with a team, a clock that stands, and the reads of the team."""

    def __init__(self, course: Course) -> None:
        self.course = course
        self.now = 100.0
        self.reads: list[int] = []
        self.cache = ReadCache(course, lambda: self.now)

    def read(self, team_id: int) -> str | None:
        self.reads.append(team_id)
        found = self.course.teams.get(team_id)
        return None if found is None else found.name

    async def name(self, team_id: int = 1) -> str | None:
        return await self.cache.get(self.read, team_id)


@pytest.fixture
def tables(tmp_path: Path) -> Iterator[Tables]:
    with Course(database_of(tmp_path).course(), FAST_PASSWORDS) as course:
        course.teams.add("Team 1", NOW)
        yield Tables(course)


async def test_a_table_is_read_once_in_a_moment(tables: Tables) -> None:
    assert [await tables.name() for _ in range(3)] == ["Team 1"] * 3
    assert await tables.name(2) is None
    assert tables.reads == [1, 2]
    tables.now += MAX_AGE_S
    assert await tables.name() == "Team 1"
    assert tables.reads == [1, 2, 1]


async def test_a_write_of_this_process_is_visible_at_once(tables: Tables) -> None:
    await tables.name()
    tables.course.teams.rename(1, "Team 9")
    assert await tables.name() == "Team 9"
    with tables.course.transaction():
        tables.course.teams.rename(1, "Team 8")
        assert await tables.name() == "Team 9"  # not committed yet
    assert await tables.name() == "Team 8"


async def test_a_write_during_a_read_is_visible_next_time(tables: Tables) -> None:
    def read(team_id: int) -> str | None:
        found = tables.read(team_id)
        if len(tables.reads) == 1:
            tables.course.teams.rename(team_id, "Team 9")
        return found

    assert [await tables.cache.get(read, 1) for _ in range(2)] == ["Team 1", "Team 9"]


async def test_a_write_of_another_process_is_visible_a_moment_later(tables: Tables, tmp_path: Path) -> None:
    await tables.name()
    with Course(database_of(tmp_path).course(), FAST_PASSWORDS) as other:
        other.teams.rename(1, "Team 9")
    assert await tables.name() == "Team 1"
    tables.now += MAX_AGE_S
    assert await tables.name() == "Team 9"


async def test_a_read_that_fails_is_not_kept(tables: Tables) -> None:
    def read() -> None:
        tables.reads.append(0)
        raise CourseError("no")

    for _ in range(2):
        with pytest.raises(CourseError):
            await tables.cache.get(read)
    assert tables.reads == [0, 0]
