"""What pages are told of the course's tables: read once a moment, never older than what we have written."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from tests.courses import CHEAP, NOW
from tests.databases import database_of
from tournaments.course.course import Course
from tournaments.course.model import CourseError
from tournaments.server.read_cache import MAX_AGE_S, MOST_KEPT, ReadCache


class Scene:
    """A course, a clock that stands, and a table whose reads are counted."""

    def __init__(self, course: Course) -> None:
        self.course = course
        self.now = 100.0
        self.reads: list[int] = []
        self.cache = ReadCache(course, lambda: self.now)

    def team(self, team_id: int) -> str | None:
        self.reads.append(team_id)
        found = self.course.teams.get(team_id)
        return None if found is None else found.name

    async def told(self, team_id: int) -> str | None:
        return await self.cache.get(self.team, team_id)


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with Course(database_of(tmp_path).course(), CHEAP) as course:
        course.teams.add("Team 1", NOW)
        yield Scene(course)


async def test_it_is_read_once_a_moment(scene: Scene) -> None:
    assert [await scene.told(1) for _ in range(3)] == ["Team 1"] * 3
    assert scene.reads == [1]
    assert await scene.told(2) is None
    assert scene.reads == [1, 2]
    scene.now += MAX_AGE_S
    assert await scene.told(1) == "Team 1"
    assert scene.reads == [1, 2, 1]


async def test_who_asks_at_the_same_time_waits_for_one_read(scene: Scene) -> None:
    told: list[str | None] = []

    async def ask() -> None:
        told.append(await scene.told(1))

    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(ask)
    assert told == ["Team 1"] * 5
    assert scene.reads == [1]


async def test_what_this_process_writes_is_seen_at_once(scene: Scene) -> None:
    await scene.told(1)
    scene.course.teams.rename(1, "Team 9")
    assert await scene.told(1) == "Team 9"
    with scene.course.transaction():
        scene.course.teams.rename(1, "Team 8")
        assert await scene.told(1) == "Team 9"  # another thread sees nothing of it yet
    assert await scene.told(1) == "Team 8"


async def test_what_is_written_while_it_is_read_is_seen_next_time(scene: Scene) -> None:
    def reads_too_early(team_id: int) -> str | None:
        found = scene.team(team_id)
        if len(scene.reads) == 1:
            scene.course.teams.rename(team_id, "Team 9")
        return found

    assert await scene.cache.get(reads_too_early, 1) == "Team 1"
    assert await scene.cache.get(reads_too_early, 1) == "Team 9"


async def test_what_another_process_writes_is_seen_a_moment_later(scene: Scene, tmp_path: Path) -> None:
    await scene.told(1)
    with Course(database_of(tmp_path).course(), CHEAP) as other:
        other.teams.rename(1, "Team 9")
    assert await scene.told(1) == "Team 1"
    scene.now += MAX_AGE_S
    assert await scene.told(1) == "Team 9"


async def test_a_read_that_fails_is_not_kept(scene: Scene) -> None:
    def fails() -> None:
        scene.reads.append(0)
        raise CourseError("no")

    for _ in range(2):
        with pytest.raises(CourseError):
            await scene.cache.get(fails)
    assert scene.reads == [0, 0]


async def test_it_forgets_the_oldest(scene: Scene) -> None:
    for number in range(MOST_KEPT + 1):
        await scene.cache.get(scene.reads.append, number)
    await scene.cache.get(scene.reads.append, MOST_KEPT)
    assert len(scene.reads) == MOST_KEPT + 1
    await scene.cache.get(scene.reads.append, 0)
    assert len(scene.reads) == MOST_KEPT + 2
