"""The lecturer's first page: current activity, and problems that need attention."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from referee.judge.verdict_text import counted
from tournaments.checking.report import Report, ReportError
from tournaments.course.audit import Act
from tournaments.course.model import (
    Account,
    Competition,
    CompetitionKind,
    CompetitionState,
    OutboxStatus,
    Team,
    Version,
    VersionState,
)
from tournaments.database.state import DatabaseState
from tournaments.server.slots import Kind
from tournaments.server.status import Status
from tournaments.web.http.errors import BadInput
from tournaments.web.http.rendering import render, see_other
from tournaments.web.http.request_body import text_of
from tournaments.web.http.request_context import Site, act, settings_of, site_of
from tournaments.web.http.routing import Access, Route, in_thread
from tournaments.web.lecturer.journal import Row, logins_of, row_of

LATEST = 10
"""Number of submissions, and of journal entries, on the page."""
OPEN = (VersionState.FAILED, VersionState.STUCK)
KINDS = {
    Kind.QUALIFICATION: "checks",
    Kind.TOURNAMENT: "tournaments",
    Kind.PRACTICE: "practice",
    Kind.CASUAL: "challenges",
    Kind.PLAY: "games of people",
    Kind.REMOTE: "remote bots",
}


@dataclass(frozen=True)
class FailedItem:
    """A check item, and the newest versions that failed it."""

    title: str
    versions: Sequence[tuple[Version, str, str]]
    """Versions, each with its team's name and the item's sentence."""


@dataclass(frozen=True)
class Overview:
    """Database records for the dashboard."""

    students: int
    invited: int
    teams: int
    without: Sequence[tuple[Team, Version | None]]
    """Teams with members but without a version that plays, each with its newest version."""
    stuck: int
    """Number of teams whose newest version could not be checked."""
    failed: Sequence[FailedItem]
    """Failed items, ordered by the number of teams, descending."""
    latest: Sequence[tuple[Version, str]]
    tournaments: Sequence[Competition]
    events: Sequence[Row]
    database: DatabaseState
    outbox: OutboxStatus


def overview(site: Site) -> Overview:
    """Read the records; blocks."""
    with site.course.reading():
        teams = {team.id: team for team in site.course.teams.all()}
        students = [one for one in site.course.accounts.all() if one.team_id is not None and not one.disabled]
        current = site.course.versions.current()
        newest = site.course.versions.newest()
        logins = logins_of(site)
        return Overview(
            students=len(students),
            invited=sum(not one.has_password for one in students),
            teams=len(teams),
            without=_without(teams, students, current, newest),
            stuck=sum(one.state is VersionState.STUCK for one in newest.values()),
            failed=failed_items(site, [one for one in newest.values() if one.state in OPEN], teams),
            latest=[
                (version, teams[version.team_id].name if version.team_id in teams else "")
                for version in site.course.versions.all(LATEST)
            ],
            tournaments=[one for one in site.course.competitions.all() if one.is_visible(teaches=True)],
            database=site.course.state(site.service.database),
            outbox=site.course.outbox.status(),
            events=[row_of(event, logins) for event in site.course.journal.entries(LATEST)],
        )


def _without(
    teams: dict[int, Team],
    students: Sequence[Account],
    current: dict[int, Version],
    newest: dict[int, Version],
) -> list[tuple[Team, Version | None]]:
    used = {one.team_id for one in students}
    found = [team for number, team in teams.items() if number in used and number not in current]
    return [(team, newest.get(team.id)) for team in found]


def failed_items(site: Site, versions: Sequence[Version], teams: dict[int, Team]) -> list[FailedItem]:
    """Return the items that the newest versions of teams failed, each with these versions."""
    titles: dict[str, str] = {}
    found: defaultdict[str, list[tuple[Version, str, str]]] = defaultdict(list)
    for version in versions:
        team = teams[version.team_id].name
        for item_id, title, sentence in _failures(site, version):
            titles.setdefault(item_id, title)
            found[item_id].append((version, team, sentence))
    items = [FailedItem(titles[item], of) for item, of in found.items()]
    return sorted(items, key=lambda one: (-len(one.versions), one.title))


def _failures(site: Site, version: Version) -> list[tuple[str, str, str]]:
    """Return id, title and sentence of each item that a version's check failed, without duplicates."""
    if version.state is VersionState.STUCK:
        return [("stuck", "could not be checked: our fault", "check it again once the cause is put right")]
    checked = site.course.versions.checked(version.id)
    if checked is None or checked.report is None:
        return []
    try:
        failures = Report.from_json(checked.report).failures
    except ReportError:  # of another version of kalarena
        return []
    return list({item.id: (item.id, item.title, item.sentence) for item in failures}.values())


@dataclass(frozen=True)
class Need:
    """A task for the lecturer, with a link to its page."""

    sentence: str
    href: str
    action: str
    """Text of the link."""


def needs_of(
    overview: Overview, uploads_open: bool, is_over: bool, status: Status, *, sends_mail: bool = False
) -> list[Need]:
    """Return the tasks for the lecturer, the most urgent first.

    Args:
        overview: The records of the page.
        uploads_open: True if the settings allow uploads.
        is_over: True if the deadline has passed.
        status: State of the server.
        sends_mail: True if the server sends mail.

    """
    found = []
    if status.disk is not None and status.disk.is_low:
        found.append(Need("The disk is nearly full: make room soon.", "#machine", "See below"))
    if status.failures:
        failures = counted(len(status.failures), "failure")
        found.append(Need(f"The server reports {failures}.", "#failures", "See below"))
    if status.mail_trouble and sends_mail:
        found.append(Need("No mail can be delivered now.", "#mail", "See below"))
    found += [
        Need(f"The tournament {one.title} {NEEDY[one.state]}.", f"/teach/tournaments/{one.slug}", "Open")
        for one in overview.tournaments
        if one.kind is CompetitionKind.TOURNAMENT and one.state in NEEDY
    ]
    if overview.stuck:
        stuck = counted(overview.stuck, "version")
        found.append(Need(f"{stuck} could not be checked.", "/teach/submissions?state=stuck", "Show"))
    if overview.outbox.failed:
        failed = counted(overview.outbox.failed, "mail")
        found.append(Need(f"{failed} could not be delivered.", "#mail", "See below"))
    if overview.outbox.held and sends_mail:
        held = counted(overview.outbox.held, "mail")
        found.append(
            Need(f"{held} of another data directory, as after a restore: held.", "#mail", "See below")
        )
    if overview.without:
        count = len(overview.without)
        has = "has" if count == 1 else "have"
        found.append(
            Need(f"{counted(count, 'team')} {has} no bot that plays.", "/teach/roster?bot=no", "Show")
        )
    if overview.invited:
        has = "has" if overview.invited == 1 else "have"
        found.append(
            Need(
                f"{counted(overview.invited, 'student')} {has} not chosen a password.",
                "/teach/roster?account=invited",
                "Show",
            )
        )
    if not overview.students:
        found.append(Need("The course has no students yet.", "/teach/roster/import", "Import a roster"))
    if not uploads_open and not is_over:
        found.append(Need("Uploads are closed.", "/teach/settings#uploads_open", "Settings"))
    return found


NEEDY = {
    CompetitionState.CREATED: "has not been started",
    CompetitionState.PAUSED: "is paused",
    CompetitionState.FAILED: "stopped after a failure",
}
"""State of a tournament that waits for a lecturer -> its words."""


async def page(request: Request) -> Response:
    """Show the dashboard."""
    site, settings = site_of(request), settings_of(request)
    status = site.service.status()
    found = await in_thread(overview, site)
    is_over = settings.deadline is not None and settings.deadline < site.now()
    return render(
        request,
        "teach/dashboard.html",
        active="teach",
        server=status,
        uses=[(name, status.uses[kind]) for kind, name in KINDS.items()],
        overview=found,
        needs=needs_of(
            found,
            settings.uploads_open,
            is_over,
            status,
            sends_mail=site.course.outbox.is_on,
        ),
        sends_mail=site.course.outbox.is_on,
        now=site.now(),
        deadline=settings.deadline,
        over=is_over,
    )


async def mail(request: Request) -> Response:
    """Send failed mails again, or send or delete the mails that are held, as ``do`` says."""
    site, form = site_of(request), await request.form()
    wanted = text_of(form, "do")
    if wanted not in MAIL_ACTIONS:
        raise BadInput("Choose what is to be done with the mails.")
    if not site.course.outbox.is_on:
        raise BadInput("This server sends no mail: server.toml has no table [mail].")

    def do(entry: Act) -> int:
        outbox, now = site.course.outbox, site.now()
        works: dict[str, Callable[[], int]] = {
            "retry": partial(outbox.retry, now),
            "release": partial(outbox.release, now),
            "discard": outbox.discard,
        }
        number = works[wanted]()
        entry.detail, entry.is_recorded = {"mails": number}, number > 0
        return number

    number = await act(request, do, f"mail.{wanted}", "mails")
    verb = "is" if number == 1 else "are"
    return see_other(request, "/teach#mail", f"{counted(number, 'mail')} {verb} {MAIL_ACTIONS[wanted]}.")


MAIL_ACTIONS = {"retry": "waiting to be sent again", "release": "waiting to be sent", "discard": "deleted"}
"""Value of the form's buttons -> state of the mails afterwards."""

ROUTES = (
    Route("GET", "/teach", page, Access.LECTURER, "teach"),
    Route("POST", "/teach/mail", mail, Access.LECTURER, "teach.mail"),
)
