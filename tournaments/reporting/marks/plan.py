"""Plan of a mark sheet, which is a rules file that fits a tournament, and the sheet made by it."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tournaments.files.validation_errors import suggestion
from tournaments.reporting.marks.earlier_sheet import RESULTS_DIGEST
from tournaments.reporting.marks.marking import marks_of
from tournaments.reporting.marks.marks_file import MarksError, MarksFile
from tournaments.reporting.marks.people import People, Student
from tournaments.reporting.marks.rules import RankRule, RatingRule
from tournaments.reporting.marks.sheet import (
    ADJUSTMENT,
    FIXED_COLUMNS,
    Sheet,
    file_digest,
    results_digest,
    sheet_of,
)
from tournaments.reporting.tables import json_text
from tournaments.reporting.tournament_results import TournamentResults
from tournaments.reporting.workbook import XLSX, workbook

FORMATS = ("csv", "json", XLSX)


@dataclass(frozen=True)
class MarkPlan:
    """A rules file that fits a tournament: the marked people and bots, and the rules."""

    file: MarksFile
    people: People | None
    """None: a row for each bot."""
    marked: Sequence[str]
    """The bots of the tournament that are marked."""
    missing: Sequence[str]
    """Bots of students that are not in the tournament."""
    left: Sequence[str] = ()
    """Bots of students that withdrew, and get nothing from any rule."""
    remarks: Sequence[str] = ()
    """Remarks on settings that are allowed, but may not be intended."""


def plan_marks(
    file: MarksFile, people: People | None, bots: Sequence[str], withdrawn: Collection[str] = ()
) -> MarkPlan:
    """Return the plan for a tournament with these bots, of which some have withdrawn.

    Raises MarksError with everything that does not fit, and all errors in single students.
    """
    groups: Mapping[str, Sequence[Student]] = {} if people is None else people.groups
    gone = withdrawn if file.withdrawn != "marked" else ()
    named = [bot for bot in bots if (bot not in file.references if people is None else bot in groups)]
    marked = [bot for bot in named if bot not in gone]
    left = [bot for bot in named if bot in gone and people is not None]
    absent = [bot for bot in groups if bot not in bots]
    problems = [
        f"references: {_unknown(name, bots)}" for name in dict.fromkeys(file.references) if name not in bots
    ]
    problems += [
        f"references: {name!r} is a reference player, and a bot of {', '.join(map(str, groups[name]))}"
        for name in dict.fromkeys(file.references)
        if name in groups
    ]
    problems += _unfit_opponents(file, bots, [*marked, *left])
    problems += file.adjustments.problems(people, marked, file.scheme, by_group=file.rows == "group")
    if file.missing == "error":
        problems += _missing(people, absent, bots)
    if people is not None:
        problems += [f"students: {problem}" for problem in people.problems]
        if file.withdrawn == "error":
            problems += _withdrawn(people, left)
        problems += [
            f"students: nobody has the bot {bot!r}: name its students, or put it into references"
            for bot in bots
            if bot not in groups and bot not in file.references and bot not in withdrawn
        ]
    if not marked and not problems:
        or_left = " or has withdrawn" if gone else ""
        problems.append(f"references: every bot is one{or_left}, so that nobody gets a mark")
    if problems:
        raise MarksError("\n".join(problems))
    remarks = [
        f"rule {rule.name!r}: with {len(marked)} marked bots nobody can be in the band {band!r}"
        for rule in file.rule
        if isinstance(rule, RankRule)
        for band in rule.unused(len(marked))
    ]
    remarks += _taken_titles(file)
    return MarkPlan(file, people, marked, absent, left, remarks)


def _taken_titles(file: MarksFile) -> Iterator[str]:
    """Yield a remark on each rule that is named like a column of the sheet.

    This is no error: files with such names are in use, and under another name for a rule each row differs
    from that of an earlier sheet.
    """
    own = [title for title in FIXED_COLUMNS if file.adjustments or title not in ADJUSTMENT]
    for rule in file.rule:
        titles = [title.lower() for title in rule.titles]
        taken = " and ".join(repr(title) for title in own if title in titles)
        if taken:
            yield f"rule {rule.name!r}: the sheet's own columns include {taken}: give the rule another name"


def _unfit_opponents(file: MarksFile, bots: Sequence[str], marked: Sequence[str]) -> Iterator[str]:
    for number, rule in enumerate(file.rule, 1):
        for where, name in rule.opponents_named:
            if name not in bots:
                yield f"rule[{number}].{where}: {_unknown(name, bots)}"
            elif name in marked:
                yield (
                    f"rule[{number}].{where}: {name!r} is marked itself, and cannot be what marks "
                    "are measured by: put it into references"
                )


def _missing(people: People | None, absent: Sequence[str], bots: Sequence[str]) -> Iterator[str]:
    if people is None:
        return
    instead = '(or set missing = "zero")'
    for bot in absent:
        for student in people.groups[bot]:
            yield f"students: {_place(student)}{student}: {_unknown(bot, bots)} {instead}"
    for student in people.no_bot:
        yield f"students: {_place(student)}{student} has no bot {instead}"


def _withdrawn(people: People, left: Sequence[str]) -> Iterator[str]:
    for bot in left:
        for student in people.groups[bot]:
            yield (
                f"students: {_place(student)}{student}: the bot {bot!r} has withdrawn: name the one that "
                'took its place, or set withdrawn = "zero" (nothing from any rule) or "marked" (by its games '
                "that count)"
            )


def _place(student: Student) -> str:
    return "" if student.line is None else f"line {student.line}: "


def _unknown(name: str, bots: Sequence[str]) -> str:
    return f"there is no bot {name!r} in this tournament{suggestion(name, bots)}"


def mark_sheet(summary: TournamentResults, plan: MarkPlan, rules: bytes, students: bytes | None) -> Sheet:
    """Return the mark sheet of a plan.

    ``rules`` and ``students`` are the files behind the plan, for digests; None if there was no file of
    students.

    Raises MarksError for a rule that uses intervals where ratings have none.
    """
    file = plan.file
    for rule in file.rule:
        if isinstance(rule, RatingRule) and rule.use == "low" and summary.is_adaptive:
            raise MarksError(
                f"rule {rule.name!r}: the ratings of this tournament have no intervals, since its pairings "
                'depended on results: give marks by use = "rating", by rank or by points'
            )
    nobody = [""] if plan.people is not None and plan.people.no_bot else []
    marks = marks_of(summary.table, plan.marked, file.scheme, [*plan.missing, *nobody], plan.left)
    return sheet_of(
        summary.name,
        marks,
        plan.people,
        file.scheme,
        by_group=file.rows == "group",
        by_name=file.order == "name",
        without=marks.get(""),
        about=_about(summary, rules, students),
        adjustments=file.adjustments,
    )


def _about(summary: TournamentResults, rules: bytes, students: bytes | None) -> dict[str, Any]:
    """Return the sources of the marks."""
    return {
        "games": summary.done,
        "games_total": summary.total,
        "rules_sha256": file_digest(rules),
        "students_sha256": None if students is None else file_digest(students),
        RESULTS_DIGEST: digest_of(summary),
    }


def digest_of(summary: TournamentResults) -> str:
    """Return the digest of the results that marks are based on; docs/marks.md describes it."""
    return results_digest([(game.key, game.fingerprint) for game in summary.games], len(summary.journal))


def sheet_file(sheet: Sheet, form: str) -> bytes:
    """Return the sheet as a file in one of FORMATS.  Raises WorkbookError."""
    if form == XLSX:
        return workbook([sheet.to_grid()])
    return (sheet.to_csv() if form == "csv" else json_text(sheet.to_json()) + "\n").encode(
        "utf-8", "backslashreplace"
    )
