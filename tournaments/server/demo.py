"""Demo course with three teams, a lecturer, and two bots that play as soon as they have qualified."""

import contextlib
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

import trio

from sample_bots import first_legal
from sample_bots.starters_catalog import STARTERS, starter_directory
from tournaments.bots.manifest import MANIFEST_FILE
from tournaments.bots.upload.archive import read_folder
from tournaments.bots.upload.limits import Upload
from tournaments.course.course import Course
from tournaments.course.model import Account, CourseError, LinkPurpose, Role
from tournaments.server.service import Service

TEAMS = ("Team 1", "Team 2", "Team 3")
LECTURER = "lecturer"
FIRST_LEGAL_MANIFEST = b"""name = "First legal"
command = ["python3", "bot.py"]
games = ["manchester", "bga", "kalah"]
"""


async def set_up_demo(course: Course, service: Service, now: datetime) -> Mapping[str, str]:
    """Create the missing parts of the demo course; existing parts are not changed.

    Returns login -> secret of a one-time link, for accounts without a password.  Raises StoreError,
    ContentError.
    """
    students, lecturer = await trio.to_thread.run_sync(_people, course, now)
    uploads = (_starter(), _first_legal())  # Team 3 begins without a bot
    for student, upload in zip(students, uploads, strict=False):
        team = student.team_id
        if team is not None and not await trio.to_thread.run_sync(course.versions.of_team, team):
            with contextlib.suppress(CourseError):  # after a deadline the team stays without a bot
                await service.submit(upload, team, student.id, "page", now)
    return await trio.to_thread.run_sync(_links, course, [*students, lecturer], now)


def _people(course: Course, now: datetime) -> tuple[list[Account], Account]:
    """Return the students in order, and the lecturer, creating missing ones."""
    if not course.teams.all():
        course.settings.change(title="Kalarena demo", standings_for="named")
    students = []
    for number, name in enumerate(TEAMS, 1):
        login = f"student-{number}"
        student = course.accounts.by_login(login)
        if student is None:
            team = course.teams.by_name(name) or course.teams.add(name, now)
            student = course.accounts.add(login, f"Student {number}", Role.STUDENT, team.id, now)
        students.append(student)
    lecturer = course.accounts.by_login(LECTURER)
    return students, lecturer or course.accounts.add(LECTURER, "Lecturer", Role.LECTURER, None, now)


def _links(course: Course, accounts: list[Account], now: datetime) -> dict[str, str]:
    return {
        account.login: course.links.make(account.id, LinkPurpose.INVITATION, now)
        for account in accounts
        if not account.has_password and not account.disabled
    }


def _starter() -> Upload:
    """Return the starter kit for Python as an upload."""
    kit = starter_directory("python")
    return read_folder([(name, (kit / name).read_bytes()) for name in STARTERS["python"].files])


def _first_legal() -> Upload:
    """Return the simplest bot as an upload."""
    source = Path(first_legal.__file__).read_bytes()
    return read_folder([("bot.py", source), (MANIFEST_FILE, FIRST_LEGAL_MANIFEST)])
