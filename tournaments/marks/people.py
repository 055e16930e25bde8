"""Whose bots are marked: students and groups, from a table of the rules file or a file of their own."""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from referee.sentences import visible

BOT, STUDENT, ID = "bot", "student", "id"
"""Columns of a file of students; any others are carried through."""
DELIMITERS = ",;\t"
"""What spreadsheets put between columns, by country and by how the file was saved."""


class PeopleError(ValueError):
    """The students cannot be told from this; the message has one line for each thing that is wrong."""


@dataclass(frozen=True)
class Student:
    """One who gets a mark."""

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
    """Bots and whose they are."""

    groups: Mapping[str, Sequence[Student]]
    """Bot -> its author, or the members of its group."""
    columns: Sequence[str] = ()
    """Titles of the columns that are carried through."""
    with_ids: bool = False
    no_bot: Sequence[Student] = ()
    """Students whose bot is not named."""


def people_of(students: Mapping[str, Sequence[str]]) -> People:
    """From the ``[students]`` of a rules file.  Raises PeopleError for somebody who is there twice."""
    people = People({bot: [Student(name) for name in names] for bot, names in students.items()})
    _raise_if(_twice(people.groups.items()))
    return people


def read_people(path: Path) -> People:
    """From a file of students, a CSV with a head.  Raises PeopleError with everything that is wrong."""
    try:
        text = path.read_text(encoding="utf-8-sig")  # spreadsheets put a byte order mark first
    except (OSError, UnicodeDecodeError) as error:
        reason = (
            error.strerror if isinstance(error, OSError) else "it is not UTF-8 text (save it as CSV UTF-8)"
        )
        raise PeopleError(f"cannot be read: {reason}") from error
    first = text.partition("\n")[0]
    reader = csv.reader(
        io.StringIO(text, newline=""), delimiter=max(DELIMITERS, key=first.count), strict=True
    )
    try:
        rows = [(reader.line_num, [cell.strip() for cell in row]) for row in reader]
    except csv.Error as error:
        raise PeopleError(f"line {reader.line_num}: this is not CSV: {error}") from error
    rows = [(number, row) for number, row in rows if any(row)]
    if not rows:
        raise PeopleError(f"is empty: it needs a first line {BOT},{STUDENT}")
    return _people(rows[0][1], rows[1:])


def _people(head: Sequence[str], rows: Sequence[tuple[int, Sequence[str]]]) -> People:
    titles = [title.lower() if title.lower() in (BOT, STUDENT, ID) else title for title in head]
    problems = [f"line 1: there is no column {name!r}" for name in (BOT, STUDENT) if name not in titles]
    problems += [f"line 1: two columns are called {name!r}" for name in _repeated(titles)]
    _raise_if(problems)
    groups: dict[str, list[Student]] = {}
    no_bot = []
    for number, row in rows:
        if len(row) > len(titles):
            problems.append(f"line {number}: has {len(row)} cells, and the first line has {len(titles)}")
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
    _raise_if(problems)
    extra = [title for title in titles if title and title not in (BOT, STUDENT, ID)]
    return People(groups, extra, ID in titles, no_bot)


def _twice(groups: Iterable[tuple[str, Sequence[Student]]]) -> Iterator[str]:
    """Students who are there more than once; two of one name need different ids."""
    known: dict[tuple[str, str], str] = {}
    for bot, students in groups:
        for student in students:
            who = (student.name, student.id)
            if who in known:
                where = "" if student.line is None else f"line {student.line}: "
                yield (
                    f"{where}student {student} is there twice, with bot {known[who]!r} and with bot {bot!r}: "
                    "a student has one mark, and two of one name need different ids"
                )
            known.setdefault(who, bot)


def _repeated(titles: Sequence[str]) -> list[str]:
    return [title for title in dict.fromkeys(titles) if title and titles.count(title) > 1]


def _raise_if(problems: Iterable[str]) -> None:
    told = list(problems)
    if told:
        raise PeopleError("\n".join(told))
