"""Marks that a lecturer has published: the newest sheet of each tournament, as it is in the journal."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tournaments.course.course import Course
from tournaments.course.model import Event
from tournaments.reporting.marks.earlier_sheet import RESULTS_DIGEST

PUBLISH, WITHDRAW = "marks.publish", "marks.withdraw"
"""Actions of the journal; the details of the first have the rows of the sheet."""
RULES = "rules"
"""Detail with the text of the rules; entries of earlier versions have none."""
MOST = 1000
"""Entries on marks that are read, the newest ones."""


@dataclass(frozen=True)
class PublishedMark:
    """The mark of one student in one tournament."""

    slug: str
    """Slug of the tournament."""
    mark: float
    scheme: str
    """Description of the rules for marks."""
    bot: str
    rank: int | None
    explanation: Sequence[str]


def sheet_detail(scheme: str, rows: Sequence[Mapping[str, Any]], results: str, rules: str) -> dict[str, Any]:
    """Return the details of the journal entry for a sheet with these rows, from ``Sheet.to_json``.

    ``results`` is the digest of the results that the marks are based on, and ``rules`` the text of the rules.
    """
    marks = {
        student["id"]: {
            "mark": row["mark"],
            "bot": row["bot"],
            "rank": row["marked_rank"],
            "explanation": list(row["explanation"]),
        }
        for row in rows
        for student in row["students"]
    }
    return {"scheme": scheme, "marks": marks, RESULTS_DIGEST: results, RULES: rules}


def published(course: Course) -> Mapping[str, Event]:
    """Return the entry of the published sheet of each tournament, by slug.  Blocks."""
    newest: dict[str, Event] = {}
    for event in course.journal.entries(MOST, group="marks"):
        if event.action in (PUBLISH, WITHDRAW):
            newest.setdefault(event.subject, event)
    return {slug: event for slug, event in newest.items() if event.action == PUBLISH}


def last_publication(course: Course, slug: str) -> Event | None:
    """Return the entry of a tournament's newest sheet, even if it was withdrawn.  Blocks."""
    events = course.journal.of_subject(slug)
    return next((event for event in reversed(events) if event.action == PUBLISH), None)


def marks_of(sheets: Mapping[str, Event], login: str) -> list[PublishedMark]:
    """Return the marks of one student in published sheets, the newest first."""
    return [
        PublishedMark(
            slug=slug,
            mark=found["mark"],
            scheme=event.detail["scheme"],
            bot=found["bot"],
            rank=found["rank"],
            explanation=found["explanation"],
        )
        for slug, event in sheets.items()
        if (found := event.detail["marks"].get(login)) is not None
    ]
