"""API operations on challenges: the bots to choose from, requests, states and results."""

from starlette.requests import Request
from starlette.responses import Response

from tournaments.course.challenges import MOST_PAIRS
from tournaments.course.model import Challenge
from tournaments.web.api.openapi import Operation, Parameter
from tournaments.web.api.responses import NUMBER, answer, body_of, number_in_query
from tournaments.web.api.schemas import (
    ChallengeAnswer,
    ChallengeBody,
    ChallengeGameView,
    ChallengesAnswer,
    ChallengeView,
    OpponentsAnswer,
    OpponentView,
)
from tournaments.web.http.errors import BadInput
from tournaments.web.http.request_context import signed_in_user, site_of
from tournaments.web.http.routing import LARGEST_NUMBER, Access, Route, in_thread
from tournaments.web.pages.challenges import HERE, own_challenge
from tournaments.web.pages.submissions_page import team_of
from tournaments.web.views.challenge_view import ChallengeRow, GameLink, chosen_bots, opponents_for, rows_for

MOST_LISTED = 100
"""Most challenges in one response."""
USUAL_LISTED = 20


async def opponents(request: Request) -> Response:
    """Return the bots that the team may challenge."""
    found = await opponents_for(request)
    return answer(OpponentsAnswer(opponents=[OpponentView.of(one, kind=one.kind.value) for one in found]))


async def ask(request: Request) -> Response:
    """Challenge a bot; the games are played in the background."""
    site, user = site_of(request), signed_in_user(request)
    body = await body_of(request, ChallengeBody)
    own, other = await chosen_bots(request, body.opponent, body.bot)
    made = await site.service.challenges.ask(team_of(user), user, own, other, body.pairs, "api")
    return await _answer(request, made, 201)


async def listed(request: Request) -> Response:
    """Return challenges of the team."""
    before = number_in_query(request, "before", LARGEST_NUMBER)
    limit = number_in_query(request, "limit", USUAL_LISTED, least=1)
    if limit > MOST_LISTED:
        raise BadInput(f"limit= may be {MOST_LISTED} at most: ask again with before= for more.")
    team_id = team_of(signed_in_user(request))
    found = await in_thread(site_of(request).course.challenges.of_team, team_id, limit, before)
    return answer(ChallengesAnswer(challenges=[_view(row) for row in await rows_for(request, found)]))


async def challenge(request: Request) -> Response:
    """Return a challenge of the team."""
    return await _answer(request, await own_challenge(request))


async def cancel(request: Request) -> Response:
    """Cancel a challenge of the team."""
    found = await own_challenge(request)
    cancelled = await site_of(request).service.challenges.cancel(found.id, signed_in_user(request))
    return await _answer(request, cancelled)


async def _answer(request: Request, found: Challenge, status: int = 200) -> Response:
    (row,) = await rows_for(request, [found])
    return answer(ChallengeAnswer(challenge=_view(row)), status)


def _view(row: ChallengeRow) -> ChallengeView:
    return ChallengeView.of(
        row, is_over=row.state.is_over, results=[_game(game) for game in row.games], page=HERE
    )


def _game(link: GameLink) -> ChallengeGameView:
    game = link.summary
    winner = None if game.winner is None else (game.first, game.second)[game.winner]
    return ChallengeGameView.of(
        game, winner=winner, reason=game.reason.value, outcome=link.outcome, page=link.href
    )


NO_STUDENT = {
    401: "No valid token.",
    403: "The token's account is in no team.",
    429: "Asked too often; Retry-After says how long to wait.",
}
NO_CHALLENGE = {**NO_STUDENT, 404: "The team has no such challenge."}
ID = Parameter("id", "path", NUMBER, "The challenge's id.")

OPERATIONS = (
    Operation(
        Route("GET", "/api/v1/opponents", opponents, Access.STUDENT, "api_opponents", api=True),
        "The bots that the team may challenge",
        {200: OpponentsAnswer},
        NO_STUDENT,
    ),
    Operation(
        Route("POST", "/api/v1/challenges", ask, Access.STUDENT, "api_challenge_ask", api=True),
        "Challenge a bot to games that are in no standings",
        {201: ChallengeAnswer},
        {
            **NO_STUDENT,
            400: "The body has another shape, there is no such bot, or not now: the quota is used up.",
            408: "The body took too long to arrive.",
            413: "The body is too large.",
        },
        (),
        f"The opponent and the number of pairs of games, at most {MOST_PAIRS}.",
        ChallengeBody,
    ),
    Operation(
        Route("GET", "/api/v1/challenges", listed, Access.STUDENT, "api_challenges", api=True),
        "Challenges of the team, newest first",
        {200: ChallengesAnswer},
        {**NO_STUDENT, 400: "before or limit is no number, or too large."},
        (
            Parameter(
                "before", "query", NUMBER, "Only challenges with a lower id: the last one's of a page."
            ),
            Parameter(
                "limit",
                "query",
                {"type": "integer", "minimum": 1, "maximum": MOST_LISTED},
                f"At most so many; {USUAL_LISTED} by default.",
            ),
        ),
    ),
    Operation(
        Route("GET", "/api/v1/challenges/{id:int}", challenge, Access.STUDENT, "api_challenge", api=True),
        "One challenge with the results of its games",
        {200: ChallengeAnswer},
        NO_CHALLENGE,
        (ID,),
    ),
    Operation(
        Route(
            "POST",
            "/api/v1/challenges/{id:int}/cancel",
            cancel,
            Access.STUDENT,
            "api_challenge_cancel",
            api=True,
        ),
        "Cancel a challenge; games that are over are kept",
        {200: ChallengeAnswer},
        {**NO_CHALLENGE, 400: "The challenge is over already."},
        (ID,),
    ),
)
