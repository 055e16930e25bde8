"""Page of one version: the progress and the items of its check, and the actions open to its team."""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, BinaryIO, cast
from urllib.parse import quote

import trio
from starlette.requests import Request
from starlette.responses import Response
from trio.lowlevel import RunVar

from tournaments.bots.storage import ContentStore
from tournaments.bots.upload.limits import size_text
from tournaments.checking.report import Item, Report, ReportError, Status, next_command
from tournaments.course.course import Course
from tournaments.course.model import Account, Checked, CourseError, Team, Version, VersionState
from tournaments.course.settings import Settings, frozen_moment, moment_text
from tournaments.results.game_files import slug
from tournaments.web.http.errors import Conflict, NotFound, disk_failure
from tournaments.web.http.rendering import OpenFileResponse, render, see_other
from tournaments.web.http.request_body import is_yes, number_in
from tournaments.web.http.request_context import Site, act, settings_of, signed_in_user, site_of
from tournaments.web.http.routing import Access, Route, in_thread, limiter_of_loop
from tournaments.web.http.sse import Emit, EventStream, viewer_of
from tournaments.web.pages.starter_kits import write_zip

BY_URGENCY = (Status.FAILED, Status.WARNING, Status.PASSED, Status.SKIPPED)
CHECKING = "The check is running; its log is below."
MOST_PACKED = 2
"""Most uploads that are packed for a download at a time: each is in memory as a whole, and needs a core."""
_LIMITER: RunVar[trio.CapacityLimiter] = RunVar("downloads of sources")
UNITS = {"ms": "ms", "mb": "MB", "s": "s", "bytes": "bytes", "kb": "kB"}
"""Suffix of a measured number's name -> its unit."""


@dataclass(frozen=True)
class VersionRecords:
    """Database records of a version."""

    version: Version
    team: Team
    current: Version | None
    checked: Checked | None
    by: str
    """Name of the account that submitted it."""
    games: Sequence[str] = ()
    """Keys of the kept games of its check, in their order."""


@dataclass(frozen=True)
class CheckGame:
    """A game of the check."""

    title: str
    detail: str
    fault: str
    """Fault word if the version lost by a fault; empty otherwise."""
    href: str | None
    """Address of its page; None if the game is not kept."""


@dataclass(frozen=True)
class Group:
    """Check items of one status."""

    status: Status
    items: Sequence[Item]


def version_records(course: Course, version_id: int, user: Account) -> VersionRecords:
    """Read the records; blocks.  Raises NotFound for versions of others, too, to hide which there are."""
    with course.reading():
        version = course.versions.get(version_id)
        if version is None or not (user.role.teaches or user.team_id == version.team_id):
            raise NotFound("There is no such version of yours.")
        team = course.teams.get(version.team_id)
        assert team is not None  # teams are never removed
        by = course.accounts.get(version.submitted_by)
        return VersionRecords(
            version=version,
            team=team,
            current=course.versions.current().get(version.team_id),
            checked=course.versions.checked(version_id),
            by="" if by is None else by.name or by.login,
            games=course.versions.checked_games(version_id),
        )


def page_values(records: VersionRecords, user: Account) -> dict[str, Any]:
    """Return the values of the page's template, for a member of the version's team or a lecturer."""
    version = records.version
    report = _report(records.checked)
    items = report.items if report is not None else ()
    groups = [Group(status, [item for item in items if item.status is status]) for status in BY_URGENCY]
    games = _check_games(records, report)
    return {
        "records": records,
        "version": version,
        "size": f"{version.files} file{'' if version.files == 1 else 's'}, {size_text(version.size)}",
        "is_own": user.team_id == version.team_id,
        "plays": records.current is not None and records.current.id == version.id,
        "is_undecided": not version.state.is_decided,
        "verdict": _verdict(version, records.current),
        "checking": CHECKING,
        "report": report,
        "groups": [group for group in groups if group.items],
        "numbers": _numbers(report.numbers) if report is not None else (),
        "try_it": next_command(report, ".") if report is not None and report.failures else "",
        "about": _about(report) if report is not None else "",
        "games": list(games.values()),
        "has_kept_games": any(game.href for game in games.values()),
        "games_of": lambda item: [games[key] for key in item.games if key in games and games[key].href],
    }


def _check_games(records: VersionRecords, report: Report | None) -> dict[str, CheckGame]:
    """Return the games of the check by key, in their order."""
    kept = set(records.games)
    return {
        game.key: CheckGame(
            game.title,
            game.detail,
            game.fault or "",
            check_game_href(records.version.id, game.key) if game.key in kept else None,
        )
        for game in (report.played if report is not None else ())
    }


def check_game_href(version_id: int, key: str) -> str:
    """Return the address of the page of a game of a check."""
    return f"/my/versions/{version_id}/games/{quote(key, safe='')}"


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
            return "Waiting for its check, which starts automatically."
        case VersionState.CHECKING:
            return CHECKING
        case VersionState.QUALIFIED if version.withdrawn:
            return "Qualified, but withdrawn: it does not play."
        case VersionState.QUALIFIED if current is not None and current.id != version.id:
            return f"Qualified; the newer version {current.number} is the current one."
        case VersionState.QUALIFIED:
            return "Qualified: this is the team's current version."
        case VersionState.FAILED:
            plays = f" Version {current.number} stays the current one." if current is not None else ""
            if not version.failures:
                return f"It could not be built or started: see the end of the log below.{plays}"
            things = "1 item" if version.failures == 1 else f"{version.failures} items"
            return f"It did not qualify: {things} of its check failed.{plays}"
        case VersionState.STUCK:
            return (
                "The server could not check it; the bot is not at fault. The lecturer sees this, too, and "
                "can have it checked again."
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


async def requested_version(request: Request) -> tuple[Site, Account, VersionRecords]:
    """Return the site, the current user, and the records of the version in the address.  Raises NotFound."""
    site, user = site_of(request), signed_in_user(request)
    return site, user, await in_thread(version_records, site.course, request.path_params["id"], user)


async def version(request: Request) -> Response:
    """Show the page."""
    site, user, records = await requested_version(request)
    log = await site.service.check_log(records.version.id)
    values = page_values(records, user)
    active = "my" if values["is_own"] else "teach"
    return render(request, "version.html", active=active, log=list(log.lines), **values)


async def events(request: Request) -> Response:
    """Stream the log of its check, and then its end."""
    site, _user, records = await requested_version(request)
    log = await site.service.check_log(records.version.id)
    after = number_in(request.headers.get("last-event-id") or request.query_params.get("after"), 0)

    async def produce(emit: Emit) -> None:
        number = after
        async for line in log.follow(after):
            number += 1
            await emit(line, event="line", event_id=str(number))
        await emit(None, event="over")

    return EventStream(site.streams, viewer_of(request), produce)


async def source(request: Request) -> Response:
    """Send the uploaded files as a zip."""
    site, _user, records = await requested_version(request)
    name = f"{slug(records.team.name)}-v{records.version.number}"
    limiter = limiter_of_loop(_LIMITER, MOST_PACKED)
    content = records.version.content
    try:
        file = await trio.to_thread.run_sync(_packed, site.service.contents, content, name, limiter=limiter)
    except OSError as error:
        raise disk_failure(error) from error
    return OpenFileResponse(file, f"{name}.zip", "application/zip")


def _packed(contents: ContentStore, content: str, name: str) -> BinaryIO:
    """Return an open temporary file: the zip of an upload's files.  Raises ContentError, OSError."""
    out = cast("BinaryIO", tempfile.TemporaryFile())  # noqa: SIM115 - the caller's
    try:
        write_zip(out, name, ((file.path, file.content, file.executable) for file in contents.read(content)))
        out.flush()
    except BaseException:
        out.close()
        raise
    return out


async def withdraw(request: Request) -> Response:
    """Take a version out of use, or into use again."""
    site, user, records = await requested_version(request)
    withdrawn = is_yes(await request.form(), "withdrawn")
    refusal = may_withdraw(settings_of(request), user, site.now())
    if refusal:
        raise Conflict(refusal)
    number = records.version.number
    await act(
        request,
        lambda _act: site.course.versions.withdraw(records.version.id, withdrawn),
        "version.withdraw" if withdrawn else "version.restore",
        f"version {records.version.id}",
        number=number,
    )
    site.service.settings_changed()
    note = f"Version {number} was withdrawn." if withdrawn else f"Version {number} is in use again."
    return see_other(request, f"/my/versions/{records.version.id}", note)


def may_withdraw(settings: Settings, user: Account, now: datetime) -> str:
    """Return why an account may not choose which version plays; empty if it may."""
    if user.role.teaches:
        return ""
    if settings.deadline is not None and settings.deadline < now:
        deadline = moment_text(settings, settings.deadline)
        return f"The deadline was {deadline}: the current version cannot be changed any more."
    frozen_at = frozen_moment(settings, now)
    if frozen_at is not None:
        return (
            f"Versions were frozen at {moment_text(settings, frozen_at)}: the current version cannot be "
            "changed any more."
        )
    return ""


async def recheck(request: Request) -> Response:
    """Check a version again; it does not play until it has qualified."""
    site, user, records = await requested_version(request)
    if not records.version.state.is_decided:
        raise CourseError("It is about to be checked already.")
    await site.service.recheck(records.version.id, user)
    return see_other(request, f"/my/versions/{records.version.id}", "It is checked again.")


ROUTES = (
    Route("GET", "/my/versions/{id:int}", version, Access.SIGNED_IN, "version"),
    Route("GET", "/my/versions/{id:int}/events", events, Access.SIGNED_IN, "version_events"),
    Route("GET", "/my/versions/{id:int}/source.zip", source, Access.SIGNED_IN, "source"),
    Route("POST", "/my/versions/{id:int}/withdraw", withdraw, Access.SIGNED_IN, "withdraw"),
    Route("POST", "/my/versions/{id:int}/recheck", recheck, Access.LECTURER, "recheck"),
)
