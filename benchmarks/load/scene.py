"""The course that is loaded: its directory, made before the server starts."""

import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import argon2

from tournaments.course.course import Course
from tournaments.course.model import Account, Role
from tournaments.course.people.passwords import Passwords
from tournaments.database.location import Database
from tournaments.web.server_config import SERVER_FILE

CHEAP = Passwords(argon2.profiles.CHEAPEST)
"""Quick hashes; the server hashes again at each sign-in, with its usual parameters."""


@dataclass(frozen=True)
class Student:
    """Account that can sign in and submit."""

    login: str
    password: str
    address: str
    """Address of the browser, as in the proxy's header."""
    token: str


@dataclass(frozen=True)
class Scene:
    """Course without bots."""

    data: Path
    database: Database
    lecturer: Student
    students: tuple[Student, ...]


@contextmanager
def made_scene(students: int, url: str | None) -> Iterator[Scene]:
    """Provide a course of teams of one, in a directory that is removed at the end.

    Raises StoreError for a database that cannot be used, SystemExit for one in which a course is already.
    """
    with tempfile.TemporaryDirectory(prefix="kalarena-load-") as folder:
        data = Path(folder)
        lines = ['trusted_proxies = ["127.0.0.1"]', 'log_level = "warning"']
        lines += [f'database = "{url}"'] if url is not None else []
        (data / SERVER_FILE).write_text("\n".join(lines) + "\n")
        database = Database.at(url or data)
        with Course(database.course(), CHEAP) as course:
            if course.accounts.all():
                raise SystemExit(f"there is a course in {url} already: give an empty database")
            course.settings.change(practice_on=True)
            now = datetime.now(UTC)
            lecturer = course.accounts.add("lecturer", "Lecturer", Role.ADMIN, None, now)
            able = _able(course, lecturer, "10.0.0.1", now)
            everybody = tuple(_student(course, number, now) for number in range(1, students + 1))
        yield Scene(data, database, able, everybody)


def _student(course: Course, number: int, now: datetime) -> Student:
    """Add a student with an address of its own: rate limits count by address, too."""
    team = course.teams.add(f"Team {number}", now)
    account = course.accounts.add(f"student-{number}", f"Student {number}", Role.STUDENT, team.id, now)
    return _able(course, account, f"10.1.{number // 250}.{number % 250 + 1}", now)


def _able(course: Course, account: Account, address: str, now: datetime) -> Student:
    password = secrets.token_urlsafe()
    course.accounts.keep_password(account.id, course.accounts.hash_password(password))
    return Student(account.login, password, address, course.tokens.make(account.id, "load", now, None)[0])
