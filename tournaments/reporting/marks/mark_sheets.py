"""Mark sheets of a tournament's results, for the command line and the server."""

from typing import Any

from tournaments.reporting.marks.file import MarkPlan, MarksError
from tournaments.reporting.marks.marking import marks_of
from tournaments.reporting.marks.rules import RatingRule
from tournaments.reporting.marks.sheet import Sheet, file_digest, results_digest, sheet_of
from tournaments.reporting.summary import Summary
from tournaments.reporting.tables import json_text
from tournaments.reporting.workbook import XLSX, workbook

FORMATS = ("csv", "json", XLSX)


def sheet_file(sheet: Sheet, form: str) -> bytes:
    """Return the sheet as a file in one of FORMATS.  Raises WorkbookError."""
    if form == XLSX:
        return workbook([sheet.to_grid()])
    return (sheet.to_csv() if form == "csv" else json_text(sheet.to_json()) + "\n").encode(
        "utf-8", "backslashreplace"
    )


def mark_sheet(summary: Summary, plan: MarkPlan, rules: bytes, students: bytes | None) -> Sheet:
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


def _about(summary: Summary, rules: bytes, students: bytes | None) -> dict[str, Any]:
    """Return the sources of the marks."""
    results = [(game.key, game.fingerprint) for game in summary.games]
    return {
        "games": summary.done,
        "games_total": summary.total,
        "rules_sha256": file_digest(rules),
        "students_sha256": None if students is None else file_digest(students),
        "results_sha256": results_digest(results, len(summary.journal)),
    }
