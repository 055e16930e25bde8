"""A mark sheet: marks with their reasons, a row per student or group, as CSV and JSON.  Pure."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, isfinite
from typing import Any

from tournaments.reporting.marks.adjustments import Adjustments
from tournaments.reporting.marks.earlier_sheet import SINCE, EarlierRow, EarlierSheet, row_key
from tournaments.reporting.marks.marking import BotMark, Scheme
from tournaments.reporting.marks.numbers import decimal, exact
from tournaments.reporting.marks.people import BETWEEN_MEMBERS, People, Student
from tournaments.reporting.tables import Figure, Grid, number, whole

NUMBERS = (
    *("points", "played", "unique", "rank", "marked_rank", "rating", "rating_low", "rating_high"),
    *("faults", "mean_move_ms"),
)
"""Columns with a bot's numbers from the tournament."""
ADJUSTMENT = ("mark by rules", "adjustment (marks)", "adjustment (why)")
"""Columns of a sheet with penalties or overrides."""
FIXED_COLUMNS = (
    *("student", "group", "id", "bot", *NUMBERS, "sum", "mark", "mark (why)", "mark_before"),
    *ADJUSTMENT,
)
"""Titles that no column of the students' file may have, and no column of a rule should have."""


@dataclass(frozen=True)
class Row:
    """One row: a student, a group, or a bot without named students."""

    students: tuple[Student, ...]
    mark: BotMark
    before: EarlierRow | None = None
    """The same row of an earlier sheet, if there is one."""

    @property
    def label(self) -> str:
        """The student's name, or all of the group's."""
        return BETWEEN_MEMBERS.join(student.name for student in self.students)

    @property
    def key(self) -> tuple[Any, ...]:
        """The identity of the row in every sheet of the tournament."""
        return row_key([(student.name, student.id) for student in self.students], self.mark.bot)

    def carried(self, column: str) -> str:
        """Return the cell of a column that is carried through; equal values of members appear once."""
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
    """Facts on the origin of the marks for the JSON form."""
    with_adjustments: bool = False
    """True if the rules file has penalties or overrides."""
    since: EarlierSheet | None = None
    """The sheet that this one was compared with: then it has only the rows that changed."""

    @property
    def remarks(self) -> list[str]:
        """Remarks on rules that give 0 because no game against a reference player counts."""
        remarks = []
        for rule in self.scheme.rules:
            unmet: dict[str, list[str]] = {}
            for row in self.rows:
                line, bot = row.mark.line, row.mark.bot
                if line is not None and line.games and row.mark.rank is not None:
                    for names in rule.unmet(line):
                        unmet.setdefault(names, []).append(f"{row.label} ({bot})" if row.label else bot)
            remarks += [
                f"rule {rule.name!r}: these have no game against {names} that counts, and get 0 for it: "
                + ", ".join(whose)
                for names, whose in unmet.items()
            ]
        return remarks

    def changed_since(self, earlier: EarlierSheet) -> "Sheet":
        """Return the sheet of the new rows and of those in which the mark, or that by any rule, changed."""
        rows = [replace(row, before=earlier.rows.get(row.key)) for row in self.rows]
        changed = [row for row in rows if row.before != self._as_before(row)]
        return replace(self, rows=changed, since=earlier)

    def gone_since(self, earlier: EarlierSheet) -> list[str]:
        """Return the labels of the rows that the earlier sheet has and this one has not."""
        here = {row.key for row in self.rows}
        return [before.label for key, before in earlier.rows.items() if key not in here]

    def _as_before(self, row: Row) -> EarlierRow:
        given = {
            rule.name: float(part.marks) for rule, part in zip(self.scheme.rules, row.mark.given, strict=True)
        }
        return EarlierRow(row.label or row.mark.bot, float(row.mark.mark), given)

    def to_csv(self) -> str:
        """Return the CSV form, one line for each row."""
        return self.to_grid().to_csv()

    def to_grid(self) -> Grid:
        """Return the cells of the CSV form."""
        columns: Sequence[str] = [] if self.people is None else self.people.columns
        who = [] if self.people is None else ["group" if self.by_group else "student"]
        ids = ["id"] if self.people is not None and self.people.with_ids else []
        head = [*who, *ids, *columns, "bot", *NUMBERS]
        for rule in self.scheme.rules:
            head += rule.titles
        head += ["sum", "mark", "mark (why)"]
        if self.since is not None:
            head += ["mark_before", *(rule.title_before for rule in self.scheme.rules)]
        if self.with_adjustments:
            head += ADJUSTMENT
        rows = []
        for row in self.rows:
            cells = [row.label] * len(who)
            if ids:
                cells.append(BETWEEN_MEMBERS.join(student.id for student in row.students))
            cells += [row.carried(column) for column in columns]
            mark = row.mark
            cells += [mark.bot, *_numbers(mark)]
            for given in mark.given:
                cells += [Figure(decimal(given.marks)), given.why]
            cells += [Figure(decimal(mark.total)), Figure(decimal(mark.mark)), mark.why]
            if self.since is not None:
                cells += self._cells_before(row.before)
            if self.with_adjustments:
                cells += _adjustment(mark)
            rows.append(cells)
        return Grid("Marks", head, rows, len(who) + len(ids))

    def _cells_before(self, before: EarlierRow | None) -> list[Figure]:
        if before is None:
            return [Figure()] * (1 + len(self.scheme.rules))
        values = [before.mark, *(before.given.get(rule.name) for rule in self.scheme.rules)]
        return [Figure() if value is None else Figure(decimal(exact(value))) for value in values]

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, with the explanation of each mark in lines; keys are only ever added."""
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
            "rating_low": rating.low if rating and rating.has_interval else None,
            "rating_high": rating.high if rating and rating.has_interval else None,
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
            "mark_by_rules": float(mark.mark if mark.by_rules is None else mark.by_rules[0]),
            "adjustments": [
                {"kind": one.kind, "marks": float(one.marks), "why": one.why} for one in mark.adjustments
            ],
            **before,
        }


def _adjustment(mark: BotMark) -> list[str]:
    """Return the mark by the rules, the change of it, and the reasons; empty cells without a change."""
    if mark.by_rules is None:
        return [Figure(), Figure(), ""]
    by_rules, _ = mark.by_rules
    why = "; ".join(f"{one.kind}: {one.why}" for one in mark.adjustments)
    return [Figure(decimal(by_rules)), Figure(decimal(mark.mark - by_rules)), why]


def _numbers(mark: BotMark) -> list[Figure]:
    """Return the bot's numbers as the tables show them."""
    line = mark.line
    if line is None:
        return [Figure()] * len(NUMBERS)
    ratings = [whole(elo) if isfinite(elo) else "" for elo in line.rating or (inf, inf, inf)]
    mean = "" if line.mean_move_ms is None else f"{line.mean_move_ms:.1f}"
    ranks = [str(line.rank), "" if mark.rank is None else str(mark.rank)]
    played = [number(line.points), str(line.games), str(line.unique)]
    return [Figure(cell) for cell in (*played, *ranks, *ratings, str(line.forfeits), mean)]


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
    adjustments: Adjustments | None = None,
) -> Sheet:
    """Return the sheet of these marks, with a row for each student, group (``by_group``), or bot.

    Rows are of bots if ``people`` is None.  They are in the order of the mark, the best first, then of the
    rank, then of the name; or of the name alone (``by_name``).  Students who have no bot get the mark
    ``without``, if there is one.  ``about`` has further facts of the JSON form.  ``adjustments`` are the
    penalties and overrides, which fit these people.
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
    adjustments = adjustments or Adjustments()
    rows = [replace(row, mark=adjustments.adjusted(row.mark, row.students, scheme)) for row in rows]
    rows.sort(key=lambda row: _place(row, by_name=by_name))
    return Sheet(tournament, scheme, rows, people, by_group, about or {}, bool(adjustments))


def _place(row: Row, *, by_name: bool) -> tuple[Any, ...]:
    ids = tuple(student.id for student in row.students)
    name = (row.label.casefold(), row.label, ids, row.mark.bot)
    if by_name:
        return name
    last = row.mark.marked + 1
    return (-row.mark.mark, last if row.mark.rank is None else row.mark.rank, *name)


def results_digest(games: Iterable[tuple[str, str]], rulings: int) -> str:
    """Return the SHA-256 of the results, in hexadecimal.

    The digested text is a sorted line ``KEY FINGERPRINT`` for each game that counts, and a last line
    ``journal N`` with the number of rulings; each has a line end, all in UTF-8.

    ``games`` are these keys and fingerprints (tournaments/results/game_summary.py).
    """
    lines = sorted(f"{key} {fingerprint}\n" for key, fingerprint in games)
    return file_digest("".join([*lines, f"journal {rulings}\n"]).encode())


def file_digest(content: bytes) -> str:
    """Return the SHA-256 of a file's content in hexadecimal, as ``sha256sum`` prints it."""
    return hashlib.sha256(content).hexdigest()
