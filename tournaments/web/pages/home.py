"""The first page: the top of the ladder, live games, and the state of a student's own bot."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from tournaments.course.model import Competition, CompetitionKind, CompetitionState
from tournaments.server.live_hub import LiveGame
from tournaments.web.http.rendering import render
from tournaments.web.http.request_context import current_team_id, settings_of, site_of
from tournaments.web.http.routing import Access, Route
from tournaments.web.views.competition_view import ViewedCompetition
from tournaments.web.views.course_game import course_game
from tournaments.web.views.names import Names
from tournaments.web.views.table_rows import game_rows, rungs
from tournaments.web.views.visibility import names_for, titles_for, view_of, visible_to

TOP = 12
"""Rungs on the first page: a screen's height."""
LATEST = 8
"""Games on the first page."""


@dataclass(frozen=True)
class Playing:
    """A game that is being played."""

    href: str
    competition: str
    first: str
    second: str


def practice_of(competitions: Sequence[Competition]) -> Competition | None:
    """Return the newest practice ladder: a change of the game begins a new one."""
    return next((one for one in competitions if one.kind is CompetitionKind.PRACTICE), None)


def ladder_values(shown: ViewedCompetition | None, team_id: int | None) -> dict[str, Any]:
    """Return the template's values about the ladder; ``team_id`` is None for a viewer without a team."""
    if shown is None:
        return {"ladder": [], "rest": 0, "own_rung": None, "latest": [], "own_games": []}
    ladder = rungs(shown, team_id)
    own_games = [] if team_id is None else shown.latest_of_team(team_id, LATEST)
    return {
        "ladder": ladder[:TOP],
        "rest": len(ladder[TOP:]),
        "own_rung": next((rung for rung in ladder if rung.is_own), None),
        "latest": game_rows(shown, reversed(shown.view.kept[-LATEST:]), team_id),
        "own_games": game_rows(shown, own_games, team_id),
    }


def playing_of(
    games: Sequence[LiveGame], names: Mapping[str, Names], titles: Mapping[str, str]
) -> list[Playing]:
    """Return the live games of the competitions in ``names``, which has the names for this viewer."""
    return [
        Playing(
            href=f"/competitions/{game.competition}/live/{names[game.competition].key(game.key)}",
            competition=titles[game.competition],
            first=names[game.competition].shown(game.first),
            second=names[game.competition].shown(game.second),
        )
        for game in games
        if game.competition in names
    ]


async def home(request: Request) -> Response:
    """Show the first page; a visitor who may see no standings is redirected to sign in."""
    site, team_id = site_of(request), current_team_id(request)
    tables, read_cache = site.course, site.read_cache
    competitions = visible_to(request, await read_cache.get(tables.competitions.all))
    practice = practice_of(competitions)
    tournaments = [one for one in competitions if one.kind is CompetitionKind.TOURNAMENT]
    running = [one for one in tournaments if one.state in (CompetitionState.RUNNING, CompetitionState.PAUSED)]
    finished = [one for one in tournaments if one.state is CompetitionState.FINISHED][:LATEST]
    games = site.service.live.playing()
    named = [*running, *finished]
    named += [
        one
        for one in (practice, *tournaments)
        if one is not None and one not in named and one.slug in {game.competition for game in games}
    ]
    names = {one.slug: await names_for(request, one) for one in named}
    titles = await titles_for(request, named)
    shown = None if practice is None else await view_of(request, practice)
    newest = await read_cache.get(tables.versions.newest)
    current = await read_cache.get(tables.versions.current)
    return render(
        request,
        "home.html",
        playing=playing_of(games, names, titles),
        titles=titles,
        practice=practice,
        game=course_game(settings_of(request).game),
        own=None if team_id is None else newest.get(team_id),
        own_current=None if team_id is None else current.get(team_id),
        running=running,
        finished=finished,
        **ladder_values(shown, team_id),
    )


async def health(request: Request) -> JSONResponse:
    """Report success, and the free space: the database was read within the last second."""
    disk = site_of(request).service.status().disk
    found: dict[str, object] = {"status": "ok", "database": "ok"}
    if disk is not None:
        found["disk"] = "low" if disk.is_low else "ok"
        found |= {"disk_free_bytes": disk.free_bytes, "disk_total_bytes": disk.total_bytes}
    return JSONResponse(found)


ROUTES = (
    Route("GET", "/", home, Access.PUBLIC, "home"),
    Route("GET", "/health", health, Access.EVERYBODY, "health"),
)
