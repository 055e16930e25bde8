"""Who is signed in is remembered for a moment, and never longer than what this process has changed."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.courses import CHEAP, NOW, a_student
from tournaments.course.course import Course
from tournaments.course.model import LinkPurpose
from tournaments.database.base import Location
from tournaments.web.http.sessions import MAX_AGE, SessionCache


class Scene:
    """A student who is signed in, and a clock that stands."""

    def __init__(self, course: Course, monkeypatch: pytest.MonkeyPatch) -> None:
        self.course = course
        self.now: datetime = NOW
        self.reads = 0
        self.student = a_student(course, course.teams.add("Team 1", NOW))
        self.secret, self.session = course.sessions.start(self.student.id, NOW)
        self.sessions = SessionCache(course, lambda: self.now)
        find = course.sessions.find

        def counted(*args: Any) -> Any:
            self.reads += 1
            return find(*args)

        monkeypatch.setattr(course.sessions, "find", counted)

    async def is_signed_in(self) -> bool:
        found = await self.sessions.get(self.secret)
        if found is not None:
            assert found == (self.session, self.course.accounts.get(self.student.id))
        return found is not None


@pytest.fixture
def scene(place: Location, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    with Course(place, CHEAP) as course:
        yield Scene(course, monkeypatch)


async def test_it_is_read_once_a_moment(scene: Scene) -> None:
    assert [await scene.is_signed_in() for _ in range(3)] == [True] * 3
    assert scene.reads == 1
    scene.now += MAX_AGE
    assert await scene.is_signed_in()
    assert scene.reads == 2


CHANGES: dict[str, Callable[[Scene], object]] = {
    "signed out": lambda scene: scene.course.sessions.end(scene.secret),
    "signed out everywhere": lambda scene: scene.course.sessions.end_all(scene.student.id),
    "disabled": lambda scene: scene.course.accounts.set_disabled(scene.student.id, True),
    "a link used": lambda scene: scene.course.links.use(
        scene.course.links.make(scene.student.id, LinkPurpose.RESET, NOW), "another long password", NOW
    ),
}


@pytest.mark.parametrize("change", CHANGES)
async def test_whoever_may_not_is_out_at_once(scene: Scene, change: str) -> None:
    assert await scene.is_signed_in()
    CHANGES[change](scene)
    assert not await scene.is_signed_in()


async def test_a_change_counts_when_it_is_kept(scene: Scene) -> None:
    assert await scene.is_signed_in()
    with scene.course.transaction():
        scene.course.sessions.end(scene.secret)
        assert await scene.is_signed_in()  # as others see it
    assert not await scene.is_signed_in()


async def test_what_is_no_session_is_asked_for_each_time(scene: Scene) -> None:
    for _ in range(2):
        assert await scene.sessions.get("guessed") is None
    assert scene.reads == 2


async def test_a_session_ends_when_it_is_over(scene: Scene) -> None:
    assert await scene.is_signed_in()
    scene.now = scene.session.expires_at + timedelta(seconds=1)
    assert not await scene.is_signed_in()


async def test_other_writes_change_nothing(scene: Scene) -> None:
    assert await scene.is_signed_in()
    scene.course.journal.note(NOW, scene.student.id, "submit", "x")
    scene.course.settings.change(title="Another course")
    assert await scene.is_signed_in()
    assert scene.reads == 1


async def test_another_process_is_heard_a_moment_later(scene: Scene, place: Location) -> None:
    assert await scene.is_signed_in()
    with Course(place, CHEAP) as other:
        other.sessions.end(scene.secret)
    scene.now += MAX_AGE
    assert not await scene.is_signed_in()


async def test_it_forgets_who_asked_first(scene: Scene) -> None:
    scene.sessions = SessionCache(scene.course, lambda: scene.now, most=1)
    assert await scene.is_signed_in()
    another, _session = scene.course.sessions.start(scene.student.id, NOW)
    assert await scene.is_signed_in()  # who signs in puts nobody out
    assert scene.reads == 1
    assert await scene.sessions.get(another) is not None
    assert await scene.is_signed_in()
    assert scene.reads == 3
