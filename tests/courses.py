"""Courses for tests: hashing that costs nothing, and moments to count from."""

from datetime import UTC, datetime, timedelta
from itertools import count

import argon2

from tournaments.course.course import Course
from tournaments.course.model import Account, Checked, Role, Team, Version, VersionState
from tournaments.course.passwords import Passwords

NOW = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
"""A Monday."""
PASSWORD = "correct horse"
CHEAP = Passwords(argon2.profiles.CHEAPEST)
NO_CHECK = Checked(None, "")

_numbers = count(1)


def after(**units: float) -> datetime:
    """So much later than NOW."""
    return NOW + timedelta(**units)


def a_student(course: Course, team: Team | None = None, login: str | None = None) -> Account:
    """Another student, who has a password."""
    login = login or f"student-{next(_numbers)}"
    return a_person(course, Role.STUDENT, login, team)


def a_person(course: Course, role: Role, login: str, team: Team | None = None) -> Account:
    """Somebody who has a password."""
    account = course.accounts.add(login, f"Name of {login}", role, team.id if team else None, NOW)
    return course.accounts.set_password(account.id, PASSWORD)


def a_version(course: Course, team: Team, by: Account, content: str, at: datetime = NOW) -> Version:
    """What a team submits next."""
    version, is_new = course.versions.add(team.id, content, 3, 1000, by.id, "page", at)
    assert is_new
    return version


def decided(course: Course, version: Version, state: VersionState, at: datetime = NOW) -> Version:
    """A version after its check."""
    course.versions.begin_check(version.id)
    digest = f"digest {version.id}" if state is VersionState.QUALIFIED else None
    return course.versions.decide(version.id, state, NO_CHECK, digest, 0, at)
