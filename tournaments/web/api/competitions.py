"""API operations on competitions: tables, games and, for lecturers, pairings.

All names are those that the user may see.
"""

from starlette.requests import Request
from starlette.responses import Response

from tournaments.course.model import Competition
from tournaments.reporting.ruling_requests import PairingRequest
from tournaments.results.game_files import public_view
from tournaments.results.game_summary import GameSummary
from tournaments.results.rulings import RulingError
from tournaments.web.api.openapi import Operation, Parameter
from tournaments.web.api.responses import TEXT, answer, body_of, number_in_query, text_in_query
from tournaments.web.api.schemas import (
    CompetitionsAnswer,
    CompetitionView,
    GameAnswer,
    GamesAnswer,
    GameView,
    PairingsBody,
    RulingsAnswer,
    TableAnswer,
)
from tournaments.web.http.errors import BadInput, Conflict
from tournaments.web.http.request_context import signed_in_user, site_of
from tournaments.web.http.routing import Access, Route, in_thread
from tournaments.web.lecturer.tournament_control import tournament_of
from tournaments.web.pages.games import game_in_path
from tournaments.web.views.competition_view import ViewedCompetition
from tournaments.web.views.visibility import competition_of, titles_for, view_of, visible_to

MOST_GAMES = 1000
"""Most games in one response."""
USUAL_GAMES = 100


async def competitions(request: Request) -> Response:
    """Return all competitions."""
    found = visible_to(request, await in_thread(site_of(request).course.competitions.all))
    titles = await titles_for(request, found)
    return answer(
        CompetitionsAnswer(competitions=[CompetitionView.of(each, title=titles[each.slug]) for each in found])
    )


async def table(request: Request) -> Response:
    """Return the standings of a competition."""
    competition = await competition_of(request)
    shown = await view_of(request, competition)
    return answer(await in_thread(_table, competition, shown))


def _table(competition: Competition, shown: ViewedCompetition) -> TableAnswer:
    title = shown.names.sentence(competition.title)  # which may have a bot's name in it
    head = shown.view.summary.head
    return TableAnswer(
        competition=CompetitionView.of(competition, title=title),
        table=shown.view.summary.to_json(),
        head=None if head is None else head.digest,
        head_number=None if head is None else head.number,
    )


async def games(request: Request) -> Response:
    """Return games of a competition, without their moves."""
    bot = text_in_query(request, "bot", "")
    after = text_in_query(request, "after", "")
    limit = number_in_query(request, "limit", USUAL_GAMES, least=1)
    if limit > MOST_GAMES:
        raise BadInput(f"limit= may be {MOST_GAMES} at most: ask again with after= for more.")
    shown = await view_of(request, await competition_of(request))
    return answer(await in_thread(_games, shown, bot, after, limit))


def _games(shown: ViewedCompetition, bot: str, after: str, limit: int) -> GamesAnswer:
    keyed = sorted((shown.names.key(game.key), game) for game in shown.view.kept)
    found = [
        (key, game) for key, game in keyed if key > after and (not bot or bot in (game.first, game.second))
    ]
    page = found[:limit]
    more = page[-1][0] if len(found) > limit else None
    return GamesAnswer(games=[_game(key, game) for key, game in page], next=more)


def _game(key: str, game: GameSummary) -> GameView:
    winner = None if game.winner is None else (game.first, game.second)[game.winner]
    return GameView.of(game, key=key, winner=winner, reason=game.reason.value)


async def pairings(request: Request) -> Response:
    """Fix or forbid pairings of a coming round, or take such rulings back."""
    body = await body_of(request, PairingsBody)
    tournament = await tournament_of(request)
    wanted = PairingRequest(body.pairs, body.byes, body.forbidden, body.round, body.undo)
    try:
        noted = await site_of(request).service.tournaments.pair(
            tournament.id, wanted, body.why, signed_in_user(request)
        )
    except RulingError as error:
        raise Conflict(str(error)) from error
    return answer(RulingsAnswer(noted=noted))


async def game(request: Request) -> Response:
    """Return a game with its moves and its conversation."""
    found = await game_in_path(request)
    view = await in_thread(public_view, found.record)
    return answer(GameAnswer(game=view))


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
                f"At most so many; {USUAL_GAMES} by default.",
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
    Operation(
        Route(
            "POST",
            "/api/v1/competitions/{slug}/pairings",
            pairings,
            Access.LECTURER,
            "api_pairings",
            api=True,
        ),
        "Fix or forbid pairings of a coming round of a Swiss",
        {200: RulingsAnswer},
        {
            400: "The body has another shape; the sentence says where.",
            401: "No valid token.",
            403: "The token's account is no lecturer's.",
            404: "There is no such tournament.",
            408: "The body took too long to arrive.",
            409: "These pairings are not possible; the sentence says why.",
            413: "The body is too large.",
            429: REFUSED[429],
        },
        (SLUG,),
        "The pairings.",
        PairingsBody,
    ),
)
