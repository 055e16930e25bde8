"""The demo course: made once, by whoever starts the server with --demo, and then left alone."""

import tomllib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

import pytest
from argon2.profiles import CHEAPEST

from tests.web_site import NOW
from tournaments.bots.manifest import manifest_of
from tournaments.bots.storage import content_digest
from tournaments.bots.upload.limits import Upload
from tournaments.course.course import Course
from tournaments.course.model import CourseError, Role
from tournaments.course.passwords import Passwords
from tournaments.database.base import Location
from tournaments.server.demo import TEAMS, Demo, set_up_demo

if TYPE_CHECKING:
    from tournaments.server.service import Service


class Submitted:
    """A service that only takes down what is submitted."""

    def __init__(self, course: Course) -> None:
        self.course = course
        self.uploads: list[Upload] = []
        self.closed = False

    async def submit(self, upload: Upload, team_id: int, account_id: int, origin: str) -> Any:
        if self.closed:
            raise CourseError("the deadline has passed")
        self.uploads.append(upload)
        return self.course.versions.add(
            team_id, content_digest(upload.files), len(upload.files), 1, account_id, origin, NOW
        )


@pytest.fixture
def course(place: Location) -> Iterator[Course]:
    with Course(place, Passwords(CHEAPEST)) as opened:
        yield opened


async def set_up(course: Course, service: Submitted) -> Demo:
    return await set_up_demo(course, cast("Service", service), NOW)


async def test_three_teams_a_lecturer_and_two_bots(course: Course) -> None:
    service = Submitted(course)
    demo = await set_up(course, service)
    assert [team.name for team in course.teams.all()] == list(TEAMS)
    assert {account.login: account.role for account in course.accounts.all()} == {
        "student-1": Role.STUDENT, "student-2": Role.STUDENT, "student-3": Role.STUDENT,
        "lecturer": Role.LECTURER,
    }  # fmt: skip
    for login, secret in demo.links.items():
        found = course.links.find(secret, NOW)
        assert found is not None
        assert found[0].login == login
    assert course.settings.load().standings_for == "named"
    assert len(service.uploads) == 2
    for upload in service.uploads:
        files = {file.path: file.content for file in upload.files}
        manifest = manifest_of(tomllib.loads(files["bot.toml"].decode()))
        assert manifest.command[-1] in files


async def test_a_second_time_changes_nothing(course: Course) -> None:
    service = Submitted(course)
    first = await set_up(course, service)
    course.links.use(first.links["lecturer"], "a long password", NOW)
    course.settings.change(title="My course", standings_for="nobody")
    second = await set_up(course, service)
    assert sorted(second.links) == ["student-1", "student-2", "student-3"]
    assert len(service.uploads) == 2
    assert len(course.accounts.all()) == 4
    settings = course.settings.load()
    assert (settings.title, settings.standings_for) == ("My course", "nobody")


async def test_a_deadline_keeps_no_server_from_starting(course: Course) -> None:
    service = Submitted(course)
    service.closed = True
    assert len((await set_up(course, service)).links) == 4
    service.closed = False
    await set_up(course, service)
    assert len(service.uploads) == 2
