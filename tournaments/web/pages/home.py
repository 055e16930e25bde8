"""The first page: the top of the ladder, live games, and the state of a student's own bot."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from tournaments.course.model import Competition, CompetitionKind, CompetitionState, Version
from tournaments.server.live_hub import LiveGame
from tournaments.web.http.rendering import render
from tournaments.web.http.request_context import Site, me_of, site_of
from tournaments.web.http.routing import Access, Route
from tournaments.web.views.competition_view import ViewedCompetition
from tournaments.web.views.names import Names
from tournaments.web.views.table_rows import GameRow, Rung, game_rows, rungs
from tournaments.web.views.visibility import names_for, titles_for, view_of

TOP = 12
"""Rungs on the first page: a screen's height."""
LATEST = 8
"""Games on the first page."""


@dataclass(frozen=True)
class Facts:
    """Database records for the first page."""

    practice: Competition | None
    tournaments: Sequence[Competition]
    """Newest first."""
    current: Mapping[int, Version]
    """Team -> the version that plays."""
    newest: Mapping[int, Version]
    """Team -> the version submitted last."""


@dataclass(frozen=True)
class Playing:
    """A game that is being played."""

    href: str
    competition: str
    first: str
    second: str
    moves: int


@dataclass(frozen=True)
class Home:
    """Contents of the first page."""

    practice: Competition | None
    ladder: Sequence[Rung]
    rest: int
    """Number of bots below those in ``ladder``."""
    own_rung: Rung | None
    own: Version | None
    """The team's newest version."""
    own_current: Version | None
    running: Sequence[Competition]
    finished: Sequence[Competition]
    latest: Sequence[GameRow]
    own_games: Sequence[GameRow]


async def facts_of(site: Site) -> Facts:
    """Return the records, which are the same for everybody and therefore cached."""
    tables, recall = site.course, site.recall
    competitions = await recall.of(tables.competitions.all)
    return Facts(
        practice=practice_of(competitions),
        tournaments=[one for one in competitions if one.kind is CompetitionKind.TOURNAMENT],
        current=await recall.of(tables.versions.current),
        newest=await recall.of(tables.versions.newest),
    )


def practice_of(competitions: Sequence[Competition]) -> Competition | None:
    """Return the newest practice ladder: a change of the game begins a new one."""
    return next((one for one in competitions if one.kind is CompetitionKind.PRACTICE), None)


def home_of(facts: Facts, practice: ViewedCompetition | None, team_id: int | None) -> Home:
    """Return the contents of the page; ``team_id`` is None for a viewer without a team."""
    ladder: list[Rung] = []
    latest: list[GameRow] = []
    own_games: list[GameRow] = []
    if practice is not None:
        ladder = rungs(practice, team_id)
        latest = game_rows(practice, reversed(practice.view.kept[-LATEST:]), team_id)
        if team_id is not None:
            own_games = game_rows(practice, practice.latest_of_team(team_id, LATEST), team_id)
    own_rung = next((rung for rung in ladder if rung.is_own), None)
    states = (CompetitionState.RUNNING, CompetitionState.PAUSED)
    return Home(
        practice=facts.practice,
        ladder=ladder[:TOP],
        rest=len(ladder[TOP:]),
        own_rung=own_rung,
        own=None if team_id is None else facts.newest.get(team_id),
        own_current=None if team_id is None else facts.current.get(team_id),
        running=[one for one in facts.tournaments if one.state in states],
        finished=[one for one in facts.tournaments if one.state is CompetitionState.FINISHED][:LATEST],
        latest=latest,
        own_games=own_games,
    )


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
            moves=len(game.moves),
        )
        for game in games
        if game.competition in names
    ]


async def home(request: Request) -> Response:
    """Show the first page; a visitor who may see no standings is redirected to sign in."""
    site, me = site_of(request), me_of(request)
    facts = await facts_of(site)
    practice = await view_of(request, facts.practice) if facts.practice is not None else None
    team_id = me.team_id if me is not None else None
    view = home_of(facts, practice, team_id)
    games = site.service.live.playing()
    playing = {game.competition for game in games}
    everything = [*([facts.practice] if facts.practice is not None else []), *facts.tournaments]
    listed = [one for one in everything if one.slug in playing or one in view.running or one in view.finished]
    names = {one.slug: await names_for(request, one) for one in listed}
    titles = await titles_for(request, listed)
    return render(request, "home.html", home=view, playing=playing_of(games, names, titles), titles=titles)


async def health(_request: Request) -> JSONResponse:
    """Report success: the settings were read from the database within the last second."""
    return JSONResponse({"status": "ok"})


ROUTES = (
    Route("GET", "/", home, Access.PUBLIC, "home"),
    Route("GET", "/health", health, Access.EVERYBODY, "health"),
)
