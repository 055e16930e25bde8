"""A mark sheet: marks with their reasons, a row per student or group, as CSV and JSON.  Pure."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tournaments.marks.earlier import SINCE, Before, EarlierSheet, row_key
from tournaments.marks.marking import BotMark, Scheme
from tournaments.marks.numbers import decimal, exact
from tournaments.marks.people import BETWEEN_MEMBERS, People, Student
from tournaments.tables import inert, number

NUMBERS = (
    *("points", "played", "unique", "rank", "marked_rank", "rating", "rating_low", "rating_high"),
    *("faults", "mean_move_ms"),
)
"""What the tournament says of a bot."""
FIXED_COLUMNS = ("student", "group", "id", "bot", *NUMBERS, "sum", "mark", "mark (why)", "mark_before")
"""Titles that no rule and no column of the students' file may have."""


@dataclass(frozen=True)
class Row:
    """One row: a student, a group, or a bot that nobody is named for."""

    students: tuple[Student, ...]
    mark: BotMark
    before: Before | None = None
    """The same row of an earlier sheet, if there is one."""

    @property
    def label(self) -> str:
        """The student's name, or all of the group's."""
        return BETWEEN_MEMBERS.join(student.name for student in self.students)

    @property
    def key(self) -> tuple[Any, ...]:
        """Whose row it is, in every sheet of the tournament."""
        return row_key([(student.name, student.id) for student in self.students], self.mark.bot)

    def carried(self, column: str) -> str:
        """The cell of a column that is carried through; what all members have in common is said once."""
        cells = list(dict.fromkeys(student.extra.get(column, "") for student in self.students))
        return BETWEEN_MEMBERS.join(cells)


@dataclass(frozen=True)
class Sheet:
    """All rows, in their order."""

    tournament: str
    scheme: Scheme
    rows: Sequence[Row]
    people: People | None
    by_group: bool = False
    about: Mapping[str, Any] = field(default_factory=dict)
    """What the JSON form says of where the marks come from."""
    since: EarlierSheet | None = None
    """The sheet that this one was compared with: then it has only the rows that changed."""

    def changed_since(self, earlier: EarlierSheet) -> "Sheet":
        """The rows of which the mark, or what any rule gave, is not what it was; new rows too."""
        rows = [replace(row, before=earlier.rows.get(row.key)) for row in self.rows]
        changed = [row for row in rows if row.before != self._as_before(row)]
        return replace(self, rows=changed, since=earlier)

    def gone_since(self, earlier: EarlierSheet) -> list[str]:
        """Whose rows the earlier sheet had, and this one has not."""
        here = {row.key for row in self.rows}
        return [before.label for key, before in earlier.rows.items() if key not in here]

    def _as_before(self, row: Row) -> Before:
        given = {
            rule.name: float(part.marks) for rule, part in zip(self.scheme.rules, row.mark.given, strict=True)
        }
        return Before(row.label or row.mark.bot, float(row.mark.mark), given)

    def to_csv(self) -> str:
        """One line for each row; texts are harmless to spreadsheets."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        columns: Sequence[str] = [] if self.people is None else self.people.columns
        who = [] if self.people is None else ["group" if self.by_group else "student"]
        ids = ["id"] if self.people is not None and self.people.with_ids else []
        head = [*who, *ids, *columns, "bot", *NUMBERS]
        for rule in self.scheme.rules:
            head += rule.titles
        head += ["sum", "mark", "mark (why)"]
        if self.since is not None:
            head += ["mark_before", *(rule.title_before for rule in self.scheme.rules)]
        writer.writerow([inert(title) for title in head])
        for row in self.rows:
            cells = [inert(row.label)] * len(who)
            if ids:
                cells.append(inert(BETWEEN_MEMBERS.join(student.id for student in row.students)))
            cells += [inert(row.carried(column)) for column in columns]
            mark = row.mark
            cells += [inert(mark.bot), *_numbers(mark)]
            for given in mark.given:
                cells += [decimal(given.marks), inert(given.why)]
            cells += [decimal(mark.total), decimal(mark.mark), inert(mark.why)]
            if self.since is not None:
                cells += self._cells_before(row.before)
            writer.writerow(cells)
        return out.getvalue()

    def _cells_before(self, before: Before | None) -> list[str]:
        if before is None:
            return [""] * (1 + len(self.scheme.rules))
        values = [before.mark, *(before.given.get(rule.name) for rule in self.scheme.rules)]
        return ["" if value is None else decimal(exact(value)) for value in values]

    def to_json(self) -> dict[str, Any]:
        """The same facts for scripts, with the explanation of each mark in lines; only ever added to."""
        return {
            "tournament": self.tournament,
            **self.about,
            **({} if self.since is None else {SINCE: dict(self.since.about)}),
            "mark": str(self.scheme),
            "rules": [rule.model_dump(by_alias=True, exclude_none=True) for rule in self.scheme.rules],
            "rows": [self._row(row) for row in self.rows],
        }

    def _row(self, row: Row) -> dict[str, Any]:
        mark, line = row.mark, row.mark.line
        rating = None if line is None else line.rating
        before = (
            {} if self.since is None else {"before": None if row.before is None else row.before.to_json()}
        )
        return {
            "students": [
                {"name": student.name, "id": student.id, "extra": dict(student.extra)}
                for student in row.students
            ],
            "bot": mark.bot,
            "points": None if line is None else line.points,
            "played": None if line is None else line.games,
            "unique": None if line is None else line.unique,
            "rank": None if line is None else line.rank,
            "marked_rank": mark.rank,
            "marked": mark.marked,
            "rating": None if rating is None else rating.value,
            "rating_low": None if rating is None else rating.low,
            "rating_high": None if rating is None else rating.high,
            "faults": None if line is None else line.forfeits,
            "mean_move_ms": None if line is None else line.mean_move_ms,
            "withdrawn": line is not None and line.withdrawn,
            "rules": [
                {"name": rule.name, "marks": float(given.marks), "why": given.why}
                for rule, given in zip(self.scheme.rules, mark.given, strict=True)
            ],
            "sum": float(mark.total),
            "mark": float(mark.mark),
            "why": mark.why,
            "explanation": mark.explanation(self.scheme),
            **before,
        }


def _numbers(mark: BotMark) -> list[str]:
    """As the tables show them."""
    line = mark.line
    if line is None:
        return [""] * len(NUMBERS)
    ratings = ["", "", ""] if line.rating is None else [f"{elo:.0f}" for elo in line.rating]
    mean = "" if line.mean_move_ms is None else f"{line.mean_move_ms:.1f}"
    ranks = [str(line.rank), "" if mark.rank is None else str(mark.rank)]
    return [
        number(line.points),
        str(line.games),
        str(line.unique),
        *ranks,
        *ratings,
        str(line.forfeits),
        mean,
    ]


def sheet_of(
    tournament: str,
    marks: Mapping[str, BotMark],
    people: People | None,
    scheme: Scheme,
    *,
    by_group: bool = False,
    by_name: bool = False,
    without: BotMark | None = None,
    about: Mapping[str, Any] | None = None,
) -> Sheet:
    """The sheet of these marks: of each student, group (``by_group``), or bot if ``people`` is None.

    Best mark first, then by rank, then by name; or by name alone (``by_name``).  Students who have no bot get
    the mark ``without``, if there is one.  ``about`` is what the JSON form says beside.
    """
    if people is None:
        rows = [Row((), mark) for mark in marks.values()]
    else:
        rows = []
        for bot, students in people.groups.items():
            members = [tuple(students)] if by_group else [(student,) for student in students]
            rows += [Row(each, marks[bot]) for each in members]
        if without is not None:
            rows += [Row((student,), without) for student in people.no_bot]
    rows.sort(key=lambda row: _place(row, by_name=by_name))
    return Sheet(tournament, scheme, rows, people, by_group, about or {})


def _place(row: Row, *, by_name: bool) -> tuple[Any, ...]:
    ids = tuple(student.id for student in row.students)
    name = (row.label.casefold(), row.label, ids, row.mark.bot)
    if by_name:
        return name
    last = row.mark.marked + 1
    return (-row.mark.mark, last if row.mark.rank is None else row.mark.rank, *name)
