"""Students and groups to be marked, from a table of the rules file or a file of their own."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from referee.judge.verdict_text import visible
from tournaments.files.spreadsheet import SpreadsheetError, spreadsheet_rows

BOT, STUDENT, ID = "bot", "student", "id"
"""Columns of a file of students; any others are carried through."""
BETWEEN_MEMBERS = "; "
"""Separator of the members of a group in one cell."""


class PeopleError(ValueError):
    """A file without usable students; the message has one line for each error."""


@dataclass(frozen=True)
class Student:
    """A student, who gets a mark."""

    name: str
    id: str = ""
    extra: Mapping[str, str] = field(default_factory=dict)
    """Other columns of the file of students."""
    line: int | None = None
    """The line of the file of students."""

    def __str__(self) -> str:
        return f"{visible(self.name)!r}{f' (id {visible(self.id)})' if self.id else ''}"


@dataclass(frozen=True)
class People:
    """The bots and their students."""

    groups: Mapping[str, Sequence[Student]]
    """Bot -> its author, or the members of its group."""
    columns: Sequence[str] = ()
    """Titles of the columns that are carried through."""
    with_ids: bool = False
    no_bot: Sequence[Student] = ()
    """Students whose bot is not named."""
    problems: Sequence[str] = ()
    """Errors in single students, a line each: no marks may be made before they are corrected."""


def people_of(students: Mapping[str, Sequence[str]]) -> People:
    """Return the people of the table ``[students]`` of a rules file."""
    groups = {bot: [Student(name) for name in names] for bot, names in students.items()}
    return People(groups, problems=tuple(_twice(groups.items())))


def read_people(path: Path) -> People:
    """Read a file of students, a CSV with a head; lines that cannot be used become ``problems``.

    Raises PeopleError if it cannot be read, or its head names no columns for bots and students.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")  # spreadsheets put a byte order mark first
    except UnicodeDecodeError as error:
        raise PeopleError("cannot be read: it is not UTF-8 text (save it as CSV UTF-8)") from error
    except (OSError, ValueError) as error:  # a path with a NUL character
        raise PeopleError(
            f"cannot be read: {getattr(error, 'strerror', 'its name holds a NUL character')}"
        ) from error
    try:
        rows = spreadsheet_rows(text)
    except SpreadsheetError as error:
        raise PeopleError(str(error)) from error
    if not rows:
        raise PeopleError(f"is empty: it needs a first line {BOT},{STUDENT}")
    return _people(*rows[0], rows[1:])


def _people(head_line: int, head: Sequence[str], rows: Sequence[tuple[int, Sequence[str]]]) -> People:
    titles = [title.lower() if title.lower() in (BOT, STUDENT, ID) else title for title in head]
    found = ", ".join(repr(visible(title)) for title in head if title)
    wrong = [
        f"line {head_line}: there is no column {name!r}; there are {found}"
        for name in (BOT, STUDENT)
        if name not in titles
    ]
    wrong += [f"line {head_line}: two columns are called {name!r}" for name in _repeated(titles)]
    if wrong:
        raise PeopleError("\n".join(wrong))
    problems = []
    groups: dict[str, list[Student]] = {}
    no_bot = []
    for number, row in rows:
        if len(row) > len(titles):
            problems.append(f"line {number}: has {len(row)} cells, and the head has {len(titles)}")
            continue
        cells = dict(zip(titles, [*row, *[""] * (len(titles) - len(row))], strict=True))
        bot, name = cells.pop(BOT), cells.pop(STUDENT)
        student = Student(name, cells.pop(ID, ""), {title: cells[title] for title in cells if title}, number)
        if not name:
            problems.append(f"line {number}: the student's name is missing")
        elif bot:
            groups.setdefault(bot, []).append(student)
        else:
            no_bot.append(student)
    problems += _twice([*groups.items(), ("", no_bot)])
    extra = [title for title in titles if title and title not in (BOT, STUDENT, ID)]
    return People(groups, extra, ID in titles, no_bot, tuple(problems))


def _twice(groups: Iterable[tuple[str, Sequence[Student]]]) -> Iterator[str]:
    """Yield an error for each student listed more than once; two of one name need different ids."""
    known: dict[tuple[str, str], str] = {}
    for bot, students in groups:
        for student in students:
            identity = (student.name, student.id)
            if identity in known:
                where = "" if student.line is None else f"line {student.line}: "
                yield (
                    f"{where}student {student} is there twice, with bot {known[identity]!r} and with bot "
                    f"{bot!r}: a student has one mark, and two of one name need different ids"
                )
            known.setdefault(identity, bot)


def _repeated(titles: Sequence[str]) -> list[str]:
    return [title for title in dict.fromkeys(titles) if title and titles.count(title) > 1]
