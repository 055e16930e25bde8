"""A real service in a folder, with teams whose uploads are real bots; for tests."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import trio

from tests.courses import CHEAP, NOW, a_student
from tests.databases import database_of
from tests.test_service_bot_worker import LIMIT_S, until
from tests.test_service_workshop import GAME, starter
from tournaments.bots.upload.limits import SubmittedFile, Upload
from tournaments.course.course import Course
from tournaments.course.model import Version, VersionState
from tournaments.database.location import Database
from tournaments.server.config import ServiceConfig
from tournaments.server.service import Service, open_service

QUICK = ServiceConfig(slots=2, checks=1, retry_s=0.01, nice=1)
UNDECIDED = (VersionState.QUEUED, VersionState.CHECKING)


def upload(*files: SubmittedFile) -> Upload:
    return Upload(tuple(sorted(files, key=lambda file: file.path)))


def bot(number: int = 1) -> Upload:
    """The starter kit's bot, each time with something else beside it."""
    return upload(*starter(), SubmittedFile("notes.txt", str(number).encode()))


@dataclass
class ServiceWorld:
    service: Service
    course: Course
    data: Path
    database: Database

    async def submit(self, team: str, files: Upload) -> Version:
        """A team's next version; the team is made if there is none."""
        found = self.course.teams.by_name(team) or self.course.teams.add(team, NOW)
        student = (self.course.accounts.of_team(found.id) or [a_student(self.course, found)])[0]
        version, is_new = await self.service.submit(files, found.id, student.id, "page")
        assert is_new
        return version

    def version(self, version_id: int) -> Version:
        found = self.course.versions.get(version_id)
        assert found is not None
        return found

    async def decided(self, version_id: int) -> Version:
        """A version after its check."""
        await until(lambda: self.version(version_id).state not in UNDECIDED)
        return self.version(version_id)


@asynccontextmanager
async def open_service_world(
    data: Path,
    config: ServiceConfig = QUICK,
    database: Database | None = None,
    limit_s: float = LIMIT_S,
    **settings: Any,
) -> AsyncIterator[ServiceWorld]:
    """A service in a folder, or what was left of it there.  Practice is off unless it is asked for."""
    database = database or database_of(data)
    data.mkdir(parents=True, exist_ok=True)
    with Course(database.course(), CHEAP) as course:
        course.settings.change(
            **{"game": GAME, "sandbox_mode": "off", "practice_on": False, "references": []} | settings
        )
        with trio.fail_after(limit_s):
            async with open_service(data, course, database, config, lambda: NOW) as service:
                yield ServiceWorld(service, course, data, database)
