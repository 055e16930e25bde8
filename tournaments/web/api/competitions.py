"""Results by program: competitions, tables, games.  Names are those that the caller may see."""

from starlette.requests import Request
from starlette.responses import Response

from tournaments.course.model import Competition
from tournaments.game_summary import GameSummary
from tournaments.gamefiles import public_view
from tournaments.web.api.answers import TEXT, answer, number_in_query, text_in_query
from tournaments.web.api.openapi import Operation, Parameter
from tournaments.web.api.views import (
    CompetitionsAnswer,
    CompetitionView,
    GameAnswer,
    GamesAnswer,
    GameView,
    TableAnswer,
)
from tournaments.web.errors import BadInput
from tournaments.web.games import find
from tournaments.web.routing import Access, Route
from tournaments.web.shown import competition_of, shown_to, titles_for
from tournaments.web.shows import Shown
from tournaments.web.site import site_of
from tournaments.web.threads import in_thread

MOST_GAMES = 1000
"""In one answer."""
USUAL_GAMES = 100


async def competitions(request: Request) -> Response:
    """All competitions."""
    found = await in_thread(site_of(request).course.competitions.all)
    titles = await titles_for(request, found)
    return answer(CompetitionsAnswer(competitions=[_view(each, titles[each.slug]) for each in found]))


async def table(request: Request) -> Response:
    """A competition's standings."""
    competition = await competition_of(request)
    shown = await shown_to(request, competition)
    return answer(await in_thread(_table, competition, shown))


def _table(competition: Competition, shown: Shown) -> TableAnswer:
    title = shown.names.sentence(competition.title)
    return TableAnswer(competition=_view(competition, title), table=shown.view.summary.to_json())


async def games(request: Request) -> Response:
    """Games of a competition, without their moves."""
    bot = text_in_query(request, "bot", "")
    after = text_in_query(request, "after", "")
    limit = number_in_query(request, "limit", USUAL_GAMES, least=1)
    if limit > MOST_GAMES:
        raise BadInput(f"limit= may be {MOST_GAMES} at most: ask again with after= for more.")
    shown = await shown_to(request, await competition_of(request))
    return answer(await in_thread(_games, shown, bot, after, limit))


def _games(shown: Shown, bot: str, after: str, limit: int) -> GamesAnswer:
    keyed = sorted((shown.names.key(game.key), game) for game in shown.view.kept)
    found = [
        (key, game) for key, game in keyed if key > after and (not bot or bot in (game.first, game.second))
    ]
    page = found[:limit]
    more = page[-1][0] if len(found) > limit else None
    return GamesAnswer(games=[_game(key, game) for key, game in page], next=more)


def _game(key: str, game: GameSummary) -> GameView:
    return GameView(
        key=key,
        round=game.round,
        first=game.first,
        second=game.second,
        winner=None if game.winner is None else (game.first, game.second)[game.winner],
        reason=game.reason.value,
        fault=game.fault,
        detail=game.detail,
        score=game.score,
        moves=game.moves,
    )


async def game(request: Request) -> Response:
    """One game with its moves and its conversation."""
    found = await find(request)
    view = await in_thread(public_view, found.record)
    return answer(GameAnswer(game=view))


def _view(competition: Competition, title: str) -> CompetitionView:
    """``title`` is the one that the caller may see: there may be a bot's name in it."""
    return CompetitionView(
        slug=competition.slug,
        title=title,
        kind=competition.kind,
        state=competition.state,
        created_at=competition.created_at,
    )


REFUSED = {
    401: "No valid token, and results are not public.",
    429: "Asked too often; Retry-After says how long to wait.",
}
UNKNOWN = {**REFUSED, 404: "There is no such competition."}
SLUG = Parameter("slug", "path", TEXT, "The competition's name in addresses.")

OPERATIONS = (
    Operation(
        Route("GET", "/api/v1/competitions", competitions, Access.PUBLIC, "api_competitions", api=True),
        "All competitions",
        {200: CompetitionsAnswer},
        REFUSED,
    ),
    Operation(
        Route("GET", "/api/v1/competitions/{slug}", table, Access.PUBLIC, "api_table", api=True),
        "A competition's table",
        {200: TableAnswer},
        UNKNOWN,
        (SLUG,),
    ),
    Operation(
        Route("GET", "/api/v1/competitions/{slug}/games", games, Access.PUBLIC, "api_games", api=True),
        "Games of a competition, by key",
        {200: GamesAnswer},
        {**UNKNOWN, 400: "limit is no number, or too large."},
        (
            SLUG,
            Parameter("bot", "query", TEXT, "Only games of the bot of this name."),
            Parameter("after", "query", TEXT, "Only keys behind this one: the `next` of the answer before."),
            Parameter(
                "limit",
                "query",
                {"type": "integer", "minimum": 1, "maximum": MOST_GAMES},
                f"At most so many; {USUAL_GAMES} unless told.",
            ),
        ),
    ),
    Operation(
        Route("GET", "/api/v1/competitions/{slug}/games/{key}", game, Access.PUBLIC, "api_game", api=True),
        "One game: moves, times, conversation, verdict",
        {200: GameAnswer},
        {**REFUSED, 404: "There is no such competition, or no such game in it."},
        (SLUG, Parameter("key", "path", TEXT, "The game's key.")),
    ),
)
