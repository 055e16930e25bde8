"""A course to look at: three teams, a lecturer, and two bots that play as soon as they qualified."""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import trio

from sample_bots import first_legal
from sample_bots.starters_catalog import STARTERS, starter_directory
from tournaments.course.course import Course
from tournaments.course.errors import CourseError
from tournaments.course.model import Account, LinkPurpose, Role
from tournaments.manifest import MANIFEST_FILE
from tournaments.service.service import Service
from tournaments.submissions.archive import read_folder
from tournaments.submissions.upload import Upload

TEAMS = ("Team 1", "Team 2", "Team 3")
LECTURER = "lecturer"
FIRST_LEGAL_MANIFEST = b"""name = "First legal"
command = ["python3", "bot.py"]
games = ["manchester", "bga", "kalah"]
"""


@dataclass(frozen=True)
class Demo:
    """Whom a demo course has."""

    links: Mapping[str, str]
    """Login -> the secret of a one-time link, for those who have no password yet."""


async def set_up_demo(course: Course, service: Service, now: datetime) -> Demo:
    """Make what of the demo course is missing; nothing is done twice, and nothing is changed back.

    Raises StoreError, ContentError.
    """
    students, lecturer = await trio.to_thread.run_sync(_people, course, now)
    for student, upload in zip(
        students, (_starter(), _first_legal()), strict=False
    ):  # Team 3 begins with none
        if student.team_id is not None and not await trio.to_thread.run_sync(
            course.versions.of_team, student.team_id
        ):
            with contextlib.suppress(CourseError):  # a deadline has passed: then it stays without a bot
                await service.submit(upload, student.team_id, student.id, "page")
    return Demo(await trio.to_thread.run_sync(_links, course, [*students, lecturer], now))


def _people(course: Course, now: datetime) -> tuple[list[Account], Account]:
    """The students in order, and the lecturer."""
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
    """The starter kit that students of a Python course begin with."""
    kit = starter_directory("python")
    return read_folder([(name, (kit / name).read_bytes()) for name in STARTERS["python"].files])


def _first_legal() -> Upload:
    """The simplest bot there is."""
    source = Path(first_legal.__file__).read_bytes()
    return read_folder([("bot.py", source), (MANIFEST_FILE, FIRST_LEGAL_MANIFEST)])
