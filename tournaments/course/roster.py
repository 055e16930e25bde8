"""Parser of rosters: the students of a course, as a table that a spreadsheet can save (pure).

The first line names the columns, in any order: ``login``, ``name`` and ``team``; others are ignored.  A row
without a team is a student who works alone, in a team of one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from referee.games.spec import did_you_mean
from tournaments.course.model import CourseError
from tournaments.course.texts import login_of, name_key, person_name, same_name, shown, team_name
from tournaments.files.spreadsheet import SpreadsheetError, spreadsheet_rows

LOGIN, NAME, TEAM = "login", "name", "team"
COLUMNS = (LOGIN, NAME, TEAM)
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
        return None if problems or login is None or name is None else Row(line, login, name, team)

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
