"""Rosters: their parser, and the enrolment of their students as accounts and teams.

A roster is a table that a spreadsheet can save.  The first line names the columns, in any order: ``login``,
``name`` and ``team``; others are ignored.  A row without a team is a student who works alone, in a team of
one.  A column ``email`` is read if the course sends mail.

Enrolment keeps existing data: no account is deleted or disabled, no password and no link is touched, and
importing the same roster again changes nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import count

from referee.games.spec import did_you_mean
from tournaments.course.course import Course
from tournaments.course.model import Account, CourseError, LinkPurpose, Role, Team
from tournaments.course.texts import email_of, login_of, name_key, person_name, same_name, shown, team_name
from tournaments.files.spreadsheet import SpreadsheetError, spreadsheet_rows

LOGIN, NAME, TEAM = "login", "name", "team"
COLUMNS = (LOGIN, NAME, TEAM)
EMAILS = ("email", "e-mail", "mail")
"""Titles of the column with e-mail addresses, which may be missing; of several, the first one counts."""
MOST_ROWS = 5_000
"""Maximum number of rows, ten of the largest courses; a transaction takes some milliseconds a row."""
MOST_PROBLEMS = 50
"""Maximum number of problems that are listed: with more, the whole file is wrong."""


class RosterError(CourseError):
    """A roster that cannot be used; the message has a line for each problem, with its position."""


@dataclass(frozen=True)
class Row:
    """One student."""

    line: int
    """Line number in the text, from 1."""
    login: str
    """Login as ``texts.login_of`` returns it."""
    name: str
    team: str | None
    """Name of the team, spelt the same in all its rows; None for a team of one's own."""
    email: str = ""
    """E-mail address as it is written; empty for none."""


@dataclass(frozen=True)
class Roster:
    """Students, in the order of the text."""

    rows: tuple[Row, ...]


def decode_roster(content: bytes) -> str:
    """Return the text of a file.  Raises RosterError."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        where = content.count(b"\n", 0, error.start) + 1
        raise RosterError(
            f"line {where}: this is not UTF-8 text: save the table as CSV UTF-8 (Excel has that in its list)"
        ) from error


def parse_roster(text: str) -> Roster:
    """Parse a roster.  Raises RosterError with all problems."""
    try:
        rows = spreadsheet_rows(text.removeprefix("\ufeff"))  # spreadsheets put a byte order mark first
    except SpreadsheetError as error:
        raise RosterError(str(error)) from error
    if not rows:
        raise RosterError(f"the roster is empty: it needs a first line {','.join(COLUMNS)}")
    (head_line, head), *rows = rows
    titles = [title.casefold() for title in head]
    refuse([f"line {head_line}: {problem}" for problem in _wrong_head(titles)])
    if not rows:
        raise RosterError(f"the roster has nobody in it: there is nothing after line {head_line}")
    if len(rows) > MOST_ROWS:
        raise RosterError(f"the roster has {len(rows)} rows, and may have {MOST_ROWS}: import it in parts")
    reader = _Reader(titles)
    found = [row for number, cells in rows if (row := reader.read(number, cells)) is not None]
    refuse(reader.problems)
    return Roster(tuple(found))


def refuse(problems: Sequence[str]) -> None:
    """Raise RosterError with the first of the problems, if there are any."""
    if len(problems) > MOST_PROBLEMS:
        problems = [*problems[:MOST_PROBLEMS], f"and {len(problems) - MOST_PROBLEMS} more"]
    if problems:
        raise RosterError("\n".join(problems))


def _wrong_head(titles: Sequence[str]) -> Iterator[str]:
    given = [title for title in titles if title]
    for name in COLUMNS:
        if name not in titles:
            others = [title for title in given if title not in COLUMNS]
            hint = did_you_mean(name, others).replace("did you mean", "is it")
            yield f"there is no column {name!r}" + (hint or "; there are " + ", ".join(map(shown, given)))
        elif titles.count(name) > 1:
            yield f"two columns are called {name!r}"


class _Reader:
    """Reader of rows, which keeps the logins and teams of the earlier ones."""

    def __init__(self, titles: Sequence[str]) -> None:
        self.problems: list[str] = []
        self._titles = titles
        self._logins: dict[str, int] = {}
        self._teams: dict[str, tuple[str, int]] = {}
        """Teams by texts.name_key: the first spelling, and its line."""

    def read(self, line: int, cells: Sequence[str]) -> Row | None:
        """Return the student of a row; None, after adding problems, if the row is invalid."""
        problems = []
        if len(cells) > len(self._titles):
            problems.append(f"has {len(cells)} cells, and the first line has {len(self._titles)} columns")
        values = dict(zip(self._titles, [*cells, *[""] * len(self._titles)], strict=False))
        login = name = team = None
        try:
            if not values[LOGIN]:
                raise CourseError("the login is missing")
            login = self._login(values[LOGIN], line)
        except CourseError as error:
            problems.append(str(error))
        try:
            name = person_name(values[NAME])
        except CourseError as error:
            problems.append(str(error))
        try:
            team = self._team(values[TEAM], line) if values[TEAM] else None
        except CourseError as error:
            problems.append(str(error))
        self.problems += [f"line {line}: {problem}" for problem in problems]
        if problems or login is None or name is None:
            return None
        email = next((values[title] for title in EMAILS if title in values), "")
        return Row(line, login, name, team, email)

    def _login(self, text: str, line: int) -> str:
        login = login_of(text)
        first = self._logins.setdefault(login, line)
        if first != line:
            raise CourseError(f"the login {shown(login)} is in line {first} already: a student has one row")
        return login

    def _team(self, text: str, line: int) -> str:
        name = team_name(text)
        known, first = self._teams.setdefault(name_key(name), (name, line))
        if same_name(known) != same_name(name):
            raise CourseError(
                f"the team name {shown(name)} is too like {shown(known)} in line {first}: "
                "spell them the same if they are one team, else give one of them another name"
            )
        return known


@dataclass(frozen=True)
class RosterResult:
    """Changes made by a roster."""

    added: tuple[Account, ...]
    moved: tuple[Account, ...]
    """Accounts that were moved into another team."""
    renamed: tuple[Account, ...]
    links: Mapping[str, str]
    """Login -> secret of the invitation, for the added accounts.  The secrets cannot be read again."""
    disabled: tuple[Account, ...]
    """Accounts in the roster that are disabled: the roster does not change that."""
    unchanged: int
    """Number of other accounts in the roster."""
    readdressed: tuple[Account, ...] = ()
    """Accounts whose e-mail address was set or changed; none in a course that sends no mail."""
    mailed: int = 0
    """Number of the links that are sent by mail, too."""


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
        readdressed, mailed = [], 0
        for row in self._roster.rows:
            before = self._accounts.get(row.login)
            if before is None:
                account = self._add(row)
                added.append(account)
                if self._readdress(account, row):
                    readdressed.append(account)
                    mailed += 1
                links[row.login] = self._course.links.make(account.id, LinkPurpose.INVITATION, self._now)
                continue
            after = self._bring_up_to_date(before, row)
            if after.team_id != before.team_id:
                moved.append(after)
            if after.name != before.name:
                renamed.append(after)
            if after.disabled:
                disabled.append(after)
            is_readdressed = self._readdress(after, row)
            if is_readdressed:
                readdressed.append(after)
            unchanged += after == before and not after.disabled and not is_readdressed
        return RosterResult(
            tuple(added),
            tuple(moved),
            tuple(renamed),
            links,
            tuple(disabled),
            unchanged,
            tuple(readdressed),
            mailed,
        )

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
            if row.email and self._course.outbox.is_on:
                try:
                    email_of(row.email)
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

    def _readdress(self, account: Account, row: Row) -> bool:
        """Set an e-mail address, unless the course sends no mail; return whether that is a change."""
        if not row.email or not self._course.outbox.is_on:
            return False
        return self._course.addresses.enrol(account.id, row.email)

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


ADMIN_LOGIN = "admin"
"""Login of the first admin."""


def invite_first_admin(course: Course, now: datetime) -> str | None:
    """Return the secret of a link for the first admin, who is created if there is no account at all.

    Each call makes a new link, which makes the earlier one void.  Returns None as soon as any admin has a
    password.
    """
    accounts = course.accounts.all()
    admins = [account for account in accounts if account.role is Role.ADMIN and not account.disabled]
    if any(account.has_password for account in admins):
        return None
    first = next((account for account in admins if account.login == ADMIN_LOGIN), None)
    if first is None:
        if accounts:
            return None  # the accounts were set up otherwise, with kalarena admin
        first = course.accounts.add(ADMIN_LOGIN, "Administrator", Role.ADMIN, None, now)
    return course.links.make(first.id, LinkPurpose.INVITATION, now)
