"""A mark sheet of a tournament's results, for whoever asks for it: the command line or the server."""

from typing import Any

from tournaments.marks.digests import file_digest, results_digest
from tournaments.marks.file import MarkPlan
from tournaments.marks.marking import marks_of
from tournaments.marks.sheet import Sheet, sheet_of
from tournaments.summary import Summary


def mark_sheet(summary: Summary, plan: MarkPlan, rules: bytes, students: bytes | None) -> Sheet:
    """The sheet that a plan gives.  ``rules`` and ``students`` are what the plan was read from, for digests;
    None if there was no file of students.
    """
    file = plan.file
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
    )


def _about(summary: Summary, rules: bytes, students: bytes | None) -> dict[str, Any]:
    """Where the marks come from."""
    results = [(game.key, game.fingerprint) for game in summary.games]
    return {
        "games": summary.done,
        "games_total": summary.total,
        "rules_sha256": file_digest(rules),
        "students_sha256": None if students is None else file_digest(students),
        "results_sha256": results_digest(results, len(summary.journal)),
    }
