"""Page of one version: the progress and the items of its check, and the actions open to its team."""

import io
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from starlette.requests import Request
from starlette.responses import Response

from tournaments.bots.storage import ContentStore
from tournaments.bots.upload.upload import size_text
from tournaments.checking.report import Item, Report, ReportError, Status
from tournaments.checking.text import next_command
from tournaments.course.course import Course
from tournaments.course.model import Account, Checked, CourseError, Team, Version, VersionState
from tournaments.course.settings import Settings, frozen_moment, told
from tournaments.results.game_files import slug
from tournaments.web.http.errors import Conflict, NotFound
from tournaments.web.http.rendering import render, see_other
from tournaments.web.http.request_body import text_of
from tournaments.web.http.request_context import account_of, settings_of, site_of
from tournaments.web.http.routing import Access, Route, in_thread
from tournaments.web.http.sse import Emit, EventStream, viewer_of

UNDECIDED = (VersionState.QUEUED, VersionState.CHECKING)
BY_URGENCY = (Status.FAILED, Status.WARNING, Status.PASSED, Status.SKIPPED)
FILE, PROGRAM = 0o100644, 0o100755
MOMENT = (1980, 1, 1, 0, 0, 0)
"""Time of every entry, the earliest that a zip can have; modification times are not stored."""
CHECKING = "It is being checked: what happens is told below."
UNITS = {"ms": "ms", "mb": "MB", "s": "s", "bytes": "bytes", "kb": "kB"}
"""Suffix of a measured number's name -> its unit."""


@dataclass(frozen=True)
class Facts:
    """Database records of a version."""

    version: Version
    team: Team
    current: Version | None
    checked: Checked | None
    by: str
    """Name of the account that submitted it."""


@dataclass(frozen=True)
class Group:
    """Check items of one status."""

    status: Status
    items: Sequence[Item]


@dataclass(frozen=True)
class VersionPage:
    """Contents of the page."""

    version: Version
    team: Team
    by: str
    size: str
    is_own: bool
    plays: bool
    current: Version | None
    is_undecided: bool
    verdict: str
    """One sentence."""
    several_games: bool
    """True if it was checked in more than one game."""
    groups: Sequence[Group]
    """Items by status, the failed ones first; empty without a completed check."""
    host_fault: str
    numbers: Sequence[tuple[str, str]]
    try_it: str
    """Command that shows the first failed game again; empty if nothing failed."""
    about: str
    log: Sequence[str]


def facts_of(course: Course, version_id: int, me: Account) -> Facts:
    """Read the records; blocks.  Raises NotFound for versions of others, too, to hide which there are."""
    with course.reading():
        version = course.versions.get(version_id)
        if version is None or not (me.role.teaches or me.team_id == version.team_id):
            raise NotFound("There is no such version of yours.")
        team = course.teams.get(version.team_id)
        assert team is not None  # teams are never removed
        by = course.accounts.get(version.submitted_by)
        return Facts(
            version=version,
            team=team,
            current=course.versions.current().get(version.team_id),
            checked=course.versions.checked(version_id),
            by="" if by is None else by.name or by.login,
        )


def version_page(facts: Facts, log: Sequence[str], me: Account) -> VersionPage:
    """Return the contents of the page for a member of its team or a lecturer."""
    version = facts.version
    report = _report(facts.checked)
    items = report.items if report is not None else ()
    groups = [Group(status, [item for item in items if item.status is status]) for status in BY_URGENCY]
    return VersionPage(
        version=version,
        team=facts.team,
        by=facts.by,
        size=f"{version.files} file{'' if version.files == 1 else 's'}, {size_text(version.size)}",
        is_own=me.team_id == version.team_id,
        plays=facts.current is not None and facts.current.id == version.id,
        current=facts.current,
        is_undecided=version.state in UNDECIDED,
        verdict=_verdict(version, facts.current),
        several_games=report is not None and len(report.games) > 1,
        groups=[group for group in groups if group.items],
        host_fault=report.host_fault if report is not None else "",
        numbers=_numbers(report.numbers) if report is not None else (),
        try_it=next_command(report, ".") if report is not None and report.failures else "",
        about=_about(report) if report is not None else "",
        log=log,
    )


def _report(checked: Checked | None) -> Report | None:
    if checked is None or checked.report is None:
        return None
    try:
        return Report.from_json(checked.report)
    except ReportError:  # from a newer server
        return None


def _verdict(version: Version, current: Version | None) -> str:
    match version.state:
        case VersionState.QUEUED:
            return "It waits for its check, which begins by itself."
        case VersionState.CHECKING:
            return CHECKING
        case VersionState.QUALIFIED if version.withdrawn:
            return "It qualified, and was withdrawn: it does not play."
        case VersionState.QUALIFIED if current is not None and current.id != version.id:
            return f"It qualified; version {current.number} is newer and plays in its place."
        case VersionState.QUALIFIED:
            return "It qualified, and plays."
        case VersionState.FAILED:
            plays = f" Version {current.number} goes on playing." if current is not None else ""
            if not version.failures:
                return f"It could not be built or started: the end of the log below says why.{plays}"
            things = "1 item" if version.failures == 1 else f"{version.failures} items"
            return f"It did not qualify: {things} of its check failed.{plays}"
        case VersionState.STUCK:
            return (
                "We could not check it, which is not its fault. The lecturer sees this, too, and can have it "
                "checked again."
            )


def _numbers(numbers: Mapping[str, float]) -> list[tuple[str, str]]:
    found = []
    for name, value in numbers.items():
        label, _, unit = name.rpartition("_")
        known = unit in UNITS and label
        text = f"{value:,.4g}" if value < 1000 else f"{value:,.0f}"
        words = (label if known else name).replace("_", " ").replace(" p95", ", 95 % below")
        found.append((words[:1].upper() + words[1:], f"{text} {UNITS[unit]}" if known else text))
    return found


def _about(report: Report) -> str:
    games = f"{len(report.played)} game{'' if len(report.played) == 1 else 's'}"
    return (
        f"{', '.join(report.games)}; {report.control}; sandbox: {report.sandbox}; {games} in "
        f"{report.duration_s:.0f} s"
    )


async def version(request: Request) -> Response:
    """Show the page."""
    site, me = site_of(request), account_of(request)
    facts = await in_thread(facts_of, site.course, request.path_params["id"], me)
    log = await site.service.check_log(facts.version.id)
    page = version_page(facts, list(log.lines), me)
    return render(
        request, "version.html", active="my" if page.is_own else "teach", page=page, checking=CHECKING
    )


async def events(request: Request) -> Response:
    """Stream the log of its check, and then its end."""
    site, me = site_of(request), account_of(request)
    facts = await in_thread(facts_of, site.course, request.path_params["id"], me)
    log = await site.service.check_log(facts.version.id)
    after = _number(request.headers.get("last-event-id") or request.query_params.get("after", ""))

    async def produce(emit: Emit) -> None:
        number = after
        async for line in log.follow(after):
            number += 1
            await emit(line, event="line", event_id=str(number))
        await emit(None, event="over")

    return EventStream(site.streams, viewer_of(request), produce)


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 9 else 0


async def source(request: Request) -> Response:
    """Send the uploaded files as a zip."""
    site, me = site_of(request), account_of(request)
    facts = await in_thread(facts_of, site.course, request.path_params["id"], me)
    name = f"{slug(facts.team.name)}-v{facts.version.number}"
    packed = await in_thread(zip_of, site.service.contents, facts.version.content, name)
    ascii_name = name.encode("ascii", "replace").decode().replace("?", "_")
    headers = {"Content-Disposition": f'attachment; filename="{ascii_name}.zip"'}
    return Response(packed, headers=headers, media_type="application/zip")


def zip_of(contents: ContentStore, content: str, folder: str) -> bytes:
    """Return a submission as a zip with a folder of its own; blocks.  Raises ContentError."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in contents.read(content):
            entry = zipfile.ZipInfo(f"{folder}/{file.path}", MOMENT)
            entry.external_attr = (PROGRAM if file.executable else FILE) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, file.content)
    return packed.getvalue()


async def withdraw(request: Request) -> Response:
    """Take a version out of use, or into use again."""
    site, settings, me = site_of(request), settings_of(request), account_of(request)
    facts = await in_thread(facts_of, site.course, request.path_params["id"], me)
    withdrawn = text_of(await request.form(), "withdrawn") == "yes"
    why_not = may_withdraw(settings, me, site.now())
    if why_not:
        raise Conflict(why_not)
    await in_thread(_withdraw, site.course, facts.version, withdrawn, me, site.now())
    site.service.settings_changed()
    number = facts.version.number
    note = f"Version {number} was withdrawn." if withdrawn else f"Version {number} is in use again."
    return see_other(request, f"/my/versions/{facts.version.id}", note)


def may_withdraw(settings: Settings, me: Account, now: datetime) -> str:
    """Return why an account may not choose which version plays; empty if it may."""
    if me.role.teaches:
        return ""
    if settings.deadline is not None and settings.deadline < now:
        return f"The deadline was {told(settings, settings.deadline)}: which version plays stays as it is."
    frozen_at = frozen_moment(settings, now)
    if frozen_at is not None:
        return f"Versions were frozen at {told(settings, frozen_at)}: which of them plays stays as it is."
    return ""


def _withdraw(course: Course, version: Version, withdrawn: bool, me: Account, now: datetime) -> None:
    course.versions.withdraw(version.id, withdrawn)
    action = "version.withdraw" if withdrawn else "version.restore"
    course.journal.note(now, me.id, action, f"version {version.id}", {"number": version.number})


async def recheck(request: Request) -> Response:
    """Check a version again; it does not play until it has qualified."""
    site, me = site_of(request), account_of(request)
    facts = await in_thread(facts_of, site.course, request.path_params["id"], me)
    if facts.version.state in UNDECIDED:
        raise CourseError("It is about to be checked already.")
    await site.service.recheck(facts.version.id)
    await in_thread(_note_recheck, site.course, facts.version, me, site.now())
    return see_other(request, f"/my/versions/{facts.version.id}", "It is checked again.")


def _note_recheck(course: Course, version: Version, me: Account, now: datetime) -> None:
    course.journal.note(now, me.id, "version.recheck", f"version {version.id}", {"number": version.number})


ROUTES = (
    Route("GET", "/my/versions/{id:int}", version, Access.SIGNED_IN, "version"),
    Route("GET", "/my/versions/{id:int}/events", events, Access.SIGNED_IN, "version_events"),
    Route("GET", "/my/versions/{id:int}/source.zip", source, Access.SIGNED_IN, "source"),
    Route("POST", "/my/versions/{id:int}/withdraw", withdraw, Access.SIGNED_IN, "withdraw"),
    Route("POST", "/my/versions/{id:int}/recheck", recheck, Access.LECTURER, "recheck"),
)
