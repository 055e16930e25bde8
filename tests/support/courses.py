"""Courses for tests: quick hashing of passwords, moments to count from, people and their versions."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import argon2

from tournaments.course.course import Course
from tournaments.course.model import Account, Checked, CheckedGame, Event, Role, Team, Version, VersionState
from tournaments.course.people.passwords import Passwords

NOW = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
"""A Monday."""
PASSWORD = "correct horse"
FAST_PASSWORDS = Passwords(argon2.profiles.CHEAPEST)
NO_CHECK = Checked(None, "")

_numbers = count(1)


def after(**units: float) -> datetime:
    """Return a moment this much later than NOW."""
    return NOW + timedelta(**units)


def note(
    course: Course, now: datetime, account_id: int | None, action: str, subject: str, **detail: Any
) -> Event:
    """Add an entry to the journal and return it."""
    with course.act(now, account_id, action, subject, **detail):
        pass
    return course.journal.entries(1)[0]


def add_student(course: Course, team: Team | None = None, login: str | None = None) -> Account:
    """Add a student with a password; without a login, with one that no course has yet."""
    return add_account(course, Role.STUDENT, login or f"added-{next(_numbers)}", team)


def add_account(course: Course, role: Role, login: str, team: Team | None = None) -> Account:
    """Add an account with a password."""
    account = course.accounts.add(login, f"Name of {login}", role, team.id if team else None, NOW)
    return set_password(course, account.id, PASSWORD)


def set_password(course: Course, account_id: int, password: str) -> Account:
    """Set the password of an account."""
    return course.accounts.keep_password(account_id, course.accounts.hash_password(password))


def use_link(course: Course, secret: str, password: str, now: datetime) -> Account:
    """Set the password of the account of a link."""
    return course.links.use_hashed(secret, course.accounts.hash_password(password), now)


def account_with(course: Course, login: str, password: str) -> Account | None:
    """Return the account that signs in with this login and password."""
    found = course.accounts.check_password(login, password)
    return None if found is None else found[0]


def add_version(course: Course, team: Team, by: Account, content: str, at: datetime = NOW) -> Version:
    """Add a team's next version."""
    version, is_new = course.versions.add(team.id, content, 3, 1000, by.id, "page", at)
    assert is_new
    return version


def add_qualified(course: Course, team_name: str, content: str, digest: str, at: datetime = NOW) -> Version:
    """Add a version that has qualified; its team is added if there is none of the name."""
    team = course.teams.by_name(team_name) or course.teams.add(team_name, NOW)
    by = (course.accounts.of_team(team.id) or [add_student(course, team)])[0]
    return decide(course, add_version(course, team, by, content, at), VersionState.QUALIFIED, at, digest)


def decide(
    course: Course,
    version: Version,
    state: VersionState,
    at: datetime = NOW,
    digest: str | None = None,
    games: Sequence[CheckedGame] = (),
) -> Version:
    """Check a version, with this result."""
    course.versions.begin_check(version.id)
    if state is VersionState.QUALIFIED:
        digest = digest or f"digest {version.id}"
    return course.versions.decide(version.id, state, NO_CHECK, digest, 0, at, games)
