"""Downloads of a tournament: games, moves, the static report.  A worker process makes them one at a time."""

import os
import shutil
import tempfile
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import trio
import trio_parallel
from starlette.requests import Request
from starlette.responses import Response
from trio.lowlevel import RunVar

from tournaments.course.model import Competition
from tournaments.database.base import Location, StoreError
from tournaments.reporting.exports import COLUMNS, WHAT, WRITERS, pgn_games
from tournaments.reporting.site.site import PAGES, ReportError, build_site
from tournaments.reporting.tournament_results import TournamentResults
from tournaments.results.store import Store
from tournaments.web.http.errors import BadInput, Conflict, NotFound, Unavailable
from tournaments.web.http.rendering import OpenFileResponse
from tournaments.web.http.request_context import Site, act, site_of
from tournaments.web.http.routing import Access, Route, in_thread, limiter_of_loop
from tournaments.web.lecturer.tournament_control import HERE, tournament_of
from tournaments.web.views.competition_view import entrants_of, site_pseudonyms
from tournaments.web.views.names import names_to_hide

PGN = "pgn"
NICENESS = 10
"""Nice value of the worker process: games that are being played have priority."""


def export_file(location: Location, what: str, form: str, out: Path) -> None:
    """Write all games or all moves of a store; as PGN, the games that count.  Raises StoreError, OSError."""
    _lower_priority()
    with Store(location, read_only=True) as store, out.open("w", encoding="utf-8", newline="") as file:
        summary = TournamentResults.load(store)
        if form == PGN:
            file.writelines(pgn_games(summary.rulings, store.record, summary.name))
        else:
            WRITERS[form](WHAT[what](summary.rulings, store.record), file, COLUMNS[what])


def report_zip(
    location: Location,
    folder: Path,
    title: str,
    pseudonyms: dict[str, str] | None,
    *,
    whole: bool | None = None,
) -> Path:
    """Make the report of a store in a folder, pack it, and return the path of the archive.

    For ``whole``, see ``whole_pages`` of ``build_site``.  Raises ReportError, StoreError, OSError.
    """
    _lower_priority()
    with Store(location, read_only=True) as store:
        summary = TournamentResults.load(store)
    site = folder / title
    build_site(location, summary, site, pseudonyms, most_processes=1, whole_pages=whole)
    packed = folder / f"{title}.zip"
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for path in sorted(site.rglob("*")):
            if path.is_file():
                archive.write(path, path.relative_to(folder))
    return packed


def _lower_priority() -> None:
    """Set the nice value of the worker process; repeated calls change nothing."""
    os.nice(max(0, NICENESS - os.nice(0)))


TIMEOUT_S = 600.0
"""Seconds after which a download is given up; a report of 10,000 games takes about a minute."""
_LIMITER: RunVar[trio.CapacityLimiter] = RunVar("downloads")
"""Limiter for one download at a time: the cores are there for games."""
FORMS = {
    "csv": "text/csv",
    "json": "application/json",
    "jsonl": "application/jsonl",
    PGN: "application/x-chess-pgn",
}


async def export(request: Request) -> Response:
    """Send all games or all moves, a row for each; or the games as PGN."""
    tournament = await tournament_of(request)
    what, _, form = request.path_params["file"].partition(".")
    if what not in WHAT or form not in FORMS or (form == PGN and what != "games"):
        raise NotFound("There are games and moves, as csv, json and jsonl, and games as pgn.")
    name = f"{tournament.slug}-{what}.{form}"
    return await _file_response(request, tournament, partial(_export, what, form, name), name, FORMS[form])


def _export(what: str, form: str, name: str, location: Location, folder: Path) -> Path:
    export_file(location, what, form, folder / name)
    return folder / name


async def report(request: Request) -> Response:
    """Send the static report as a zip archive; for the query ``pages``, see `tournament report --pages`."""
    return await _report(request, anonymous=False)


async def anonymous_report(request: Request) -> Response:
    """Send the report with the pseudonyms that the site uses, too."""
    return await _report(request, anonymous=True)


async def _report(request: Request, *, anonymous: bool) -> Response:
    site, tournament = site_of(request), await tournament_of(request)
    pages = request.query_params.get("pages")
    if pages is not None and pages not in PAGES:
        raise BadInput(f"There are pages={' and pages='.join(PAGES)}.")
    summary = await site.service.tournaments.summary(tournament.id)
    if not summary.kept:
        raise Conflict("No game was played yet: there is nothing to report.")
    pseudonyms = await in_thread(_pseudonyms, site, tournament, list(summary.bots)) if anonymous else None
    title = "report-anonymous" if anonymous else f"report-{tournament.slug}"  # titles have names in them
    await act(request, lambda _act: None, "tournament.report", tournament.slug, anonymous=anonymous)
    return await _file_response(
        request, tournament, partial(_packed, title, pseudonyms, pages), f"{title}.zip", "application/zip"
    )


def _pseudonyms(site: Site, tournament: Competition, bots: list[str]) -> dict[str, str]:
    """Return the pseudonyms of the site: of bots, and of teams, which sentences and titles may name."""
    entrants = entrants_of(site.course, site.course.competitions.competitors(tournament.id))
    names = names_to_hide(entrants, {team.id: team.name for team in site.course.teams.all()})
    return site_pseudonyms(site.data, tournament.slug, list(dict.fromkeys([*names, *bots])))


def _packed(
    title: str, pseudonyms: dict[str, str] | None, pages: str | None, location: Location, folder: Path
) -> Path:
    return report_zip(location, folder, title, pseudonyms, whole=None if pages is None else PAGES[pages])


async def _file_response(
    request: Request,
    tournament: Competition,
    make: Callable[[Location, Path], Path],
    name: str,
    media_type: str,
) -> Response:
    """Make a file in a worker process and send it; its folder is removed before that.

    Raises:
        Unavailable: The file takes too long, or cannot be made.

    """
    site = site_of(request)
    location = await in_thread(site.service.database.competition, tournament.slug)
    folder = Path(await in_thread(lambda: tempfile.mkdtemp(prefix="kalarena-download-")))
    try:
        path = await _in_worker(make, location, folder, name)
        file = await in_thread(path.open, "rb")
    finally:
        with trio.CancelScope(shield=True):
            await in_thread(lambda: shutil.rmtree(folder, ignore_errors=True))
    return OpenFileResponse(file, name, media_type)


async def _in_worker(
    make: Callable[[Location, Path], Path], location: Location, folder: Path, name: str
) -> Path:
    try:
        with trio.fail_after(TIMEOUT_S):
            made: Path = await trio_parallel.run_sync(
                make, location, folder, cancellable=True, limiter=limiter_of_loop(_LIMITER, 1)
            )
            return made
    except trio.TooSlowError as error:
        raise Unavailable(
            f"{name} was not ready after {TIMEOUT_S:.0f} s: try again when the server has less to do."
        ) from error
    except (StoreError, ReportError, OSError, trio_parallel.BrokenWorkerError) as error:
        raise Unavailable(f"{name} cannot be made: {error}") from error


ROUTES = (
    Route("GET", f"{HERE}/report.zip", report, Access.LECTURER, "teach.report"),
    Route("GET", f"{HERE}/report-anonymous.zip", anonymous_report, Access.LECTURER, "teach.report.anonymous"),
    Route("GET", f"{HERE}/{{file}}", export, Access.LECTURER, "teach.export"),
)
