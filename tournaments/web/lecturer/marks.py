"""Marks of a tournament, by rules in TOML, for the students of the roster."""

from datetime import datetime

from starlette.requests import Request
from starlette.responses import Response

from tournaments.course.marked_students import (
    Marked,
    entry_moments,
    marked_people,
    roster_at_end,
    roster_entry,
)
from tournaments.course.model import Competition, Event
from tournaments.database.base import StoreError
from tournaments.reporting.marks.earlier_sheet import RESULTS_DIGEST
from tournaments.reporting.marks.marks_file import MarksError, read_marks
from tournaments.reporting.marks.plan import (
    MarkPlan,
    digest_of,
    mark_sheet,
    plan_marks,
    sheet_file,
)
from tournaments.reporting.marks.sheet import Sheet
from tournaments.reporting.tournament_results import TournamentResults
from tournaments.reporting.workbook import XLSX, WorkbookError
from tournaments.results.journal import Action
from tournaments.web.http.rendering import attachment, render, see_other
from tournaments.web.http.request_body import BODY_LIMIT, sent_text, text_of
from tournaments.web.http.request_context import Site, act, site_of
from tournaments.web.http.routing import Access, Route, in_thread
from tournaments.web.lecturer.tournament_control import tournament_of
from tournaments.web.views.published_marks import (
    PUBLISH,
    RULES,
    WITHDRAW,
    last_publication,
    published,
    sheet_detail,
)

HERE = "/teach/tournaments/{slug}/marks"
MEDIA_TYPES = {
    "csv": "text/csv",
    "json": "application/json",
    XLSX: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}
EXAMPLE = """\
# Every key is in docs/marks.md.  Students come from the roster.
max = 20
round = 0.5
missing = "zero"             # students whose team has no bot here get nothing from any rule

[[rule]]
name = "Place"
kind = "rank"
bands = [
  { top = 1, marks = 20 },
  { top_percent = 25, marks = 16 },
  { top_percent = 50, marks = 12 },
  { marks = 8 },
]
"""

NOT_OF_THE_ROSTER = (
    "students see their marks under the logins of the roster, and these rules name students of their own: "
    "leave out the table [students] to publish marks"
)


async def page(request: Request) -> Response:
    """Show the form for the rules."""
    return await _page(request, await tournament_of(request))


async def _page(
    request: Request,
    tournament: Competition,
    rules: str | None = None,
    problems: str = "",
    unfinished: bool = False,
    sheet: Sheet | None = None,
    remarks: tuple[str, ...] = (),
) -> Response:
    """Return the page with these rules, or else with those of the sheet that was published last."""
    course = site_of(request).course
    newest = (await in_thread(published, course)).get(tournament.slug)
    last = await in_thread(last_publication, course, tournament.slug)
    last_rules = None if last is None else last.detail.get(RULES)
    return render(
        request,
        "teach/marks.html",
        400 if problems else 200,
        active="teach",
        tournament=tournament,
        rules=rules or last_rules or EXAMPLE,
        are_rules_unknown=last is not None and last_rules is None,
        problems=problems.split("\n") if problems else [],
        unfinished=unfinished,
        sheet=sheet,
        rows=[] if sheet is None else sheet.to_json()["rows"],
        remarks=remarks,
        published=newest,
        is_outdated=newest is not None and await _is_outdated(request, tournament, newest),
    )


async def _is_outdated(request: Request, tournament: Competition, publication: Event) -> bool:
    """Return whether the results have changed since marks were published, by a ruling for example."""
    before = publication.detail.get(RESULTS_DIGEST)  # earlier versions published without it
    if before is None:
        return False
    try:
        summary = await site_of(request).service.tournaments.summary(tournament.id, wait=True)
    except StoreError:  # the marks can be withdrawn all the same
        return False
    return bool(before != await in_thread(digest_of, summary))


async def make(request: Request) -> Response:
    """Answer with the sheet as a page, or as a file if ``do`` is one of MEDIA_TYPES; or publish it."""
    site, tournament, form = site_of(request), await tournament_of(request), await request.form()
    rules = await sent_text(form, "rules")
    unfinished = text_of(form, "unfinished") != ""
    summary = await site.service.tournaments.summary(tournament.id, wait=True)
    try:
        sheet, remarks = await in_thread(_sheet, site, tournament, summary, rules, unfinished)
    except MarksError as error:
        return await _page(request, tournament, rules, str(error), unfinished)
    wanted = text_of(form, "do")
    if wanted == "publish":
        if any(not student.id for row in sheet.rows for student in row.students):
            return await _page(request, tournament, rules, NOT_OF_THE_ROSTER, unfinished)
        rows, results = sheet.to_json()["rows"], sheet.about[RESULTS_DIGEST]
        detail = sheet_detail(str(sheet.scheme), rows, results, rules)
        await act(request, lambda _act: None, PUBLISH, tournament.slug, **detail)
        return see_other(
            request, _path(tournament), "The marks are published: each student sees their own mark."
        )
    if wanted not in MEDIA_TYPES:
        return await _page(request, tournament, rules, "", unfinished, sheet, remarks)
    try:
        content = await in_thread(sheet_file, sheet, wanted)
    except WorkbookError as error:
        return await _page(request, tournament, rules, str(error), unfinished)
    await act(request, lambda _act: None, "marks.export", tournament.slug, form=wanted, **sheet.about)
    return attachment(content, f"marks-{tournament.slug}.{wanted}", MEDIA_TYPES[wanted])


async def withdraw(request: Request) -> Response:
    """Take the published marks back."""
    tournament = await tournament_of(request)
    await act(request, lambda _act: None, WITHDRAW, tournament.slug)
    return see_other(request, _path(tournament), "Students do not see these marks any more.")


def _path(tournament: Competition) -> str:
    return HERE.format(slug=tournament.slug)


def _sheet(
    site: Site, tournament: Competition, summary: TournamentResults, rules: str, unfinished: bool
) -> tuple[Sheet, tuple[str, ...]]:
    """Return the sheet and its remarks.  Raises MarksError with all problems."""
    plan, remarks = marks_plan(rules, summary, _marked(site, tournament, summary))
    if summary.schedule.due(summary.history):
        so_far = f"{summary.done} of {summary.total} games have a result"
        if not unfinished:
            raise MarksError(f"{so_far}: wait for the end, or tick that the sheet may be made before it")
        remarks = (*remarks, f"{so_far} so far")
    sheet = mark_sheet(summary, plan, rules.encode(), None)
    return sheet, (*remarks, *sheet.remarks)


def _marked(site: Site, tournament: Competition, summary: TournamentResults) -> Marked:
    competitors = site.course.competitions.competitors(tournament.id)
    ids = [one.version_id for one in competitors if one.version_id is not None]
    teams = {version.id: version.team_id for version in site.course.versions.by_ids(ids).values()}
    events = site.course.journal.of_subject(tournament.slug)
    rulings = [entry for entry in summary.journal if entry.action is Action.ADD]
    joined = {entry.subject: datetime.fromisoformat(entry.at) for entry in rulings}
    everybody = site.course.accounts.all()
    accounts = roster_at_end(everybody, events, entry_moments(competitors, teams, joined))
    left_out = roster_entry(everybody).keys() - {account.login for account in accounts}
    return marked_people(competitors, teams, accounts, summary.bots, summary.rulings.withdrawn, left_out)


def marks_plan(rules: str, summary: TournamentResults, marked: Marked) -> tuple[MarkPlan, tuple[str, ...]]:
    """Return the mark plan of a tournament, for the students in the rules, or else for those of the roster.

    Reference players need not be named in the rules.  Raises MarksError.
    """
    file, people = read_marks(rules)
    references = dict.fromkeys(
        [*file.references, *(name for name in marked.references if name in summary.bots)]
    )
    file = file.model_copy(update={"references": list(references)})
    if people is not None:
        plan = plan_marks(file, people, summary.bots, summary.rulings.withdrawn)
        return plan, tuple(plan.remarks)
    plan = plan_marks(file, marked.people, summary.bots, summary.rulings.withdrawn)
    return plan, (*marked.remarks, *plan.remarks)


ROUTES = (
    Route("GET", HERE, page, Access.LECTURER, "teach.marks"),
    Route("POST", HERE, make, Access.LECTURER, "teach.marks.make", body_limit=BODY_LIMIT),
    Route("POST", f"{HERE}/withdraw", withdraw, Access.LECTURER, "teach.marks.withdraw"),
)
