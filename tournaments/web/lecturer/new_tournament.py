"""Creation of a tournament: a form for each format, a preview, and the creation itself."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from tournaments.course.model import CompetitionKind, Version, VersionState
from tournaments.course.settings import frozen_moment
from tournaments.results.game_summary import GameSummary
from tournaments.server.competitions.entrants import candidates
from tournaments.server.competitions.tournament_spec import CURRENT, TournamentSpec, TournamentSpecError
from tournaments.web.http.rendering import render, see_other
from tournaments.web.http.request_body import text_of
from tournaments.web.http.request_context import Site, account_of, note, settings_of, site_of
from tournaments.web.http.routing import Access, Route, in_thread
from tournaments.web.lecturer.preview import Preview, preview
from tournaments.web.lecturer.tournament_fields import (
    FORMATS_TOLD,
    by_field,
    default_values,
    sections,
    spec_of_form,
)

HERE = "/teach/tournaments/new"
DEFAULT_FORMAT = "round-robin"
MOST_VERSIONS = 2000
"""Most versions that the form offers, the newest first: a course has some hundred."""


@dataclass(frozen=True)
class Choice:
    """A version that the form offers."""

    version: Version
    team: str
    current: bool


async def page(request: Request) -> Response:
    """Show the form of one format."""
    kind = request.query_params.get("format", DEFAULT_FORMAT)
    if kind not in FORMATS_TOLD:
        kind = DEFAULT_FORMAT
    return await _page(request, default_values(kind, settings_of(request)))


async def _page(
    request: Request,
    values: Mapping[str, str],
    ticked: Sequence[str] = (),
    problems: Sequence[str] = (),
    seen: Preview | None = None,
) -> Response:
    kind = values["format"]
    asked = sections(kind)
    names = [field.name for section in asked for field in section.fields]
    return render(
        request,
        "teach/new_tournament.html",
        400 if problems else 200,
        active="teach",
        kind=kind,
        formats=FORMATS_TOLD,
        sections=asked,
        values=dict.fromkeys([*names, "references"], "") | {"bots": CURRENT} | dict(values),
        ticked=ticked,
        problems=problems,
        wrong=by_field(problems, names),
        seen=seen,
        choices=await in_thread(_choices, site_of(request)),
        frozen=frozen_moment(settings_of(request), site_of(request).now()),
    )


def _choices(site: Site) -> list[Choice]:
    """Return all versions that can play, ordered by team, the newest first."""
    teams = {team.id: team.name for team in site.course.teams.all()}
    current = {version.id for version in site.course.versions.current().values()}
    found = [
        Choice(version, teams[version.team_id], version.id in current)
        for version in site.course.versions.all(MOST_VERSIONS)
        if version.state is VersionState.QUALIFIED and not version.withdrawn and version.team_id in teams
    ]
    return sorted(found, key=lambda one: (one.team.casefold(), -one.version.number))


async def create(request: Request) -> Response:
    """Create the tournament if ``do`` is ``create``; else show its preview."""
    site, form = site_of(request), await request.form()
    values = {name: text_of(form, name) for name in form if name not in ("csrf", "version", "do")}
    if values.get("format") not in FORMATS_TOLD:
        values["format"] = DEFAULT_FORMAT
    ticked = _ticked(form)
    try:
        spec = TournamentSpec.read(spec_of_form(values, ticked))
        seen = await _preview(request, spec)
        if text_of(form, "do") != "create":
            return await _page(request, values, ticked, seen=seen)
        made = await site.service.contests.create_tournament(spec, account_of(request).id)
    except TournamentSpecError as error:
        return await _page(request, values, ticked, error.problems)
    await note(request, "tournament.create", made.slug, title=made.title, bots=list(seen.names))
    return see_other(
        request, f"/teach/tournaments/{made.slug}", "The tournament is made. Start it when you like."
    )


def _ticked(form: FormData) -> list[str]:
    return [value for value in form.getlist("version") if isinstance(value, str)]


async def _preview(request: Request, spec: TournamentSpec) -> Preview:
    """Return the preview of a tournament.  Raises TournamentSpecError."""
    site = site_of(request)
    now = site.now()
    chosen = await in_thread(
        candidates,
        spec,
        site.course.versions,
        site.course.teams,
        frozen_moment(settings_of(request), now),
        now,
    )
    practice = await practice_games(site)
    return await in_thread(preview, spec, chosen, practice, site.service.tournament_places)


async def practice_games(site: Site) -> Sequence[GameSummary]:
    """Return the games of the practice ladder, from which durations are estimated."""
    known = await in_thread(site.course.competitions.all)
    practice = next((one for one in known if one.kind is CompetitionKind.PRACTICE), None)
    return [] if practice is None else (await site.service.contests.summary(practice.id)).games


ROUTES = (
    Route("GET", HERE, page, Access.LECTURER, "teach.tournament.new"),
    Route("POST", HERE, create, Access.LECTURER, "teach.tournament.create", body_limit=1 << 20),
)
