"""Enrolment: a roster's rows become accounts and teams, and the first admin is invited.

Existing data is kept: no account is deleted or disabled, no password and no link is touched, and importing
the same roster again changes nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import count

from tournaments.course.course import Course
from tournaments.course.model import Account, CourseError, LinkPurpose, Role, Team
from tournaments.course.roster import Roster, Row, refuse
from tournaments.course.texts import name_key


@dataclass(frozen=True)
class RosterResult:
    """Changes made by a roster."""

    added: tuple[Account, ...]
    moved: tuple[Account, ...]
    """Accounts that were moved into another team."""
    renamed: tuple[Account, ...]
    links: Mapping[str, str]
    """Login -> secret of the invitation, for the added accounts.  It is available here alone."""
    disabled: tuple[Account, ...]
    """Accounts in the roster that are disabled: the roster does not change that."""
    unchanged: int
    """Number of other accounts in the roster."""


def enrol(course: Course, roster: Roster, now: datetime) -> RosterResult:
    """Add new students, each with an invitation; rename and move existing ones.

    All changes are made, or none.  A row without a team leaves a student in the current team; a student
    without one gets a new team, called ``Team 1``, ``Team 2`` and so on: a team's name is public, and the
    student's own is not.

    Raises RosterError with all problems.
    """
    with course.transaction():
        return _Enrolment(course, roster, now).result()


class _Enrolment:
    """Import of one roster, within a transaction."""

    def __init__(self, course: Course, roster: Roster, now: datetime) -> None:
        self._course = course
        self._roster = roster
        self._now = now
        self._accounts = {account.login: account for account in course.accounts.all()}
        self._teams: dict[str, Team] = {}
        """Teams by the roster's spelling."""
        self._taken = {name_key(row.team) for row in roster.rows if row.team is not None}
        self._numbers = count(1)

    def result(self) -> RosterResult:
        self._check_and_make_teams()
        added, moved, renamed, disabled, links, unchanged = [], [], [], [], {}, 0
        for row in self._roster.rows:
            before = self._accounts.get(row.login)
            if before is None:
                account = self._add(row)
                added.append(account)
                links[row.login] = self._course.links.make(account.id, LinkPurpose.INVITATION, self._now)
                continue
            after = self._bring_up_to_date(before, row)
            if after.team_id != before.team_id:
                moved.append(after)
            if after.name != before.name:
                renamed.append(after)
            if after.disabled:
                disabled.append(after)
            unchanged += after == before and not after.disabled
        return RosterResult(tuple(added), tuple(moved), tuple(renamed), links, tuple(disabled), unchanged)

    def _check_and_make_teams(self) -> None:
        problems = []
        for row in self._roster.rows:
            there = self._accounts.get(row.login)
            if there is not None and there.role is not Role.STUDENT:
                problems.append(
                    f"line {row.line}: {row.login!r} is no student, but {there.role.one} of the course"
                )
            if row.team is not None and row.team not in self._teams:
                try:
                    found = self._course.teams.by_name(row.team)
                    self._teams[row.team] = found or self._course.teams.add(row.team, self._now)
                except CourseError as error:
                    problems.append(f"line {row.line}: {error}")
        refuse(problems)

    def _add(self, row: Row) -> Account:
        team = self._own_team() if row.team is None else self._teams[row.team]
        return self._course.accounts.add(row.login, row.name, Role.STUDENT, team.id, self._now)

    def _bring_up_to_date(self, account: Account, row: Row) -> Account:
        if account.name != row.name:
            account = self._course.accounts.rename(account.id, row.name)
        team_id = account.team_id
        if row.team is not None:
            team_id = self._teams[row.team].id
        elif team_id is None:
            team_id = self._own_team().id
        if account.team_id != team_id:
            account = self._course.accounts.move(account.id, team_id)
        return account

    def _own_team(self) -> Team:
        """Return a new team with a neutral name that is not in the roster, and was never used."""
        for number in self._numbers:
            name = f"Team {number}"
            if name_key(name) in self._taken:
                continue
            try:
                return self._course.teams.add(name, self._now)
            except CourseError:  # the name is used, or too like a used one
                continue
        raise AssertionError("numbers have no end")


LOGIN = "admin"


def invite_first_admin(course: Course, now: datetime) -> str | None:
    """Return the secret of a link for the first admin, who is created if there is no account at all.

    Each call makes a new link, which makes the earlier one void.  Returns None as soon as any admin has a
    password.
    """
    accounts = course.accounts.all()
    admins = [account for account in accounts if account.role is Role.ADMIN and not account.disabled]
    if any(account.has_password for account in admins):
        return None
    first = next((account for account in admins if account.login == LOGIN), None)
    if first is None:
        if accounts:
            return None  # the accounts were set up otherwise, with kalarena admin
        first = course.accounts.add(LOGIN, "Administrator", Role.ADMIN, None, now)
    return course.links.make(first.id, LinkPurpose.INVITATION, now)
