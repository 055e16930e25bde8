"""Control page of a tournament: start, pause, rejudge, rulings."""

from collections.abc import Awaitable, Callable, Sequence

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from tournaments.course.model import Account, Competition, CompetitionKind, CompetitionState, CourseError
from tournaments.results.journal import Action
from tournaments.results.rulings import RulingError
from tournaments.web.http.errors import BadInput, Conflict, NotFound
from tournaments.web.http.rendering import render, see_other
from tournaments.web.http.request_body import text_of
from tournaments.web.http.request_context import signed_in_user, site_of
from tournaments.web.http.routing import Access, Route, in_thread
from tournaments.web.views.visibility import competition_of

LIST = "/teach/tournaments"
HERE = f"{LIST}/{{slug}}"
LONGEST_REASON = 1000
"""Most characters of a reason, which reports show."""
ANNULS = {"": None, "yes": True, "no": False}
"""Form value -> True if the games of a withdrawn bot count for nobody; None: as the format defines."""


GAME_RULINGS = {
    Action.VOID.value: "void it: it counts for nobody",
    Action.REPLAY.value: "play it again: this one counts for nobody",
    Action.RESTORE.value: "let it count again",
}
BOT_RULINGS = {Action.WITHDRAW.value: "it plays no more", Action.RESTORE.value: "it plays on"}
"""Rulings that the forms offer, with their labels."""


async def tournament_of(request: Request) -> Competition:
    """Return the tournament in the address.

    Raises:
        NotFound: There is no such tournament; the practice ladder is not a tournament.

    """
    found = await competition_of(request)
    if found.kind is not CompetitionKind.TOURNAMENT:
        raise NotFound("This is the practice ladder; its settings are among the course's.")
    return found


async def tournaments(request: Request) -> Response:
    """List all tournaments and practice ladders."""
    known = await in_thread(site_of(request).course.competitions.all)
    return render(
        request,
        "teach/tournaments.html",
        active="teach",
        tournaments=[one for one in known if one.kind is CompetitionKind.TOURNAMENT],
        practice=[one for one in known if one.kind is CompetitionKind.PRACTICE],
    )


async def page(request: Request, status: int = 200, wrong: str = "", **given: str) -> Response:
    """Show one tournament; ``wrong`` is the problem of a ruling with these values."""
    site, tournament = site_of(request), await tournament_of(request)
    summary = await site.service.tournaments.summary(tournament.id, wait=True)
    rejudging = site.service.tournaments.rejudging(tournament.id)
    asked = {"game": request.query_params.get("game", ""), "bot": "", "why": "", "action": "", "annul": ""}
    return render(
        request,
        "teach/tournament.html",
        status,
        active="teach",
        tournament=tournament,
        actions=_actions(tournament),
        summary=summary,
        is_live=tournament.state is CompetitionState.RUNNING
        or (rejudging is not None and not rejudging.over),
        rejudging=rejudging,
        game_rulings=GAME_RULINGS.items(),
        bot_rulings=BOT_RULINGS.items(),
        wrong=wrong,
        given=asked | given,
    )


def _actions(tournament: Competition) -> Sequence[str]:
    """Return the actions for which the page has buttons."""
    match tournament.state:
        case CompetitionState.CREATED:
            return ("start",)
        case CompetitionState.RUNNING:
            return ("pause",)
        case CompetitionState.PAUSED | CompetitionState.FAILED:
            return ("resume",)
    return ()


async def start(request: Request) -> Response:
    """Start the tournament."""
    return await _control(request, "start", site_of(request).service.tournaments.start, "is started")


async def pause(request: Request) -> Response:
    """Pause the tournament: begin no more games."""
    return await _control(request, "pause", site_of(request).service.tournaments.pause, "is paused")


async def resume(request: Request) -> Response:
    """Resume the tournament."""
    return await _control(request, "resume", site_of(request).service.tournaments.resume, "goes on")


async def rejudge(request: Request) -> Response:
    """Judge every game again from its record."""
    return await _control(request, "rejudge", site_of(request).service.tournaments.rejudge, "is judged again")


async def _control(
    request: Request, action: str, work: Callable[[int, Account], Awaitable[object]], done: str
) -> RedirectResponse:
    tournament = await tournament_of(request)
    try:
        await work(tournament.id, signed_in_user(request))
    except CourseError as error:
        raise Conflict(str(error)) from error
    if action == "pause" and (await tournament_of(request)).state is CompetitionState.FINISHED:
        done = "has finished: its last games ended before the pause"
    return see_other(request, _path(tournament), f"{tournament.title} {done}.")


def _path(tournament: Competition) -> str:
    return f"{LIST}/{tournament.slug}"


async def rule(request: Request) -> Response:
    """Make a ruling on a game or a bot, with its reason."""
    site, tournament, form = site_of(request), await tournament_of(request), await request.form()
    given = {name: text_of(form, name).strip() for name in ("game", "bot", "action", "why", "annul")}
    subject = given["game"] or given["bot"]
    allowed = GAME_RULINGS if given["game"] else BOT_RULINGS
    if given["action"] not in allowed or given["annul"] not in ANNULS:
        raise BadInput("Choose from the list what is to be ruled.")
    if len(given["why"]) > LONGEST_REASON:
        return await page(request, 400, f"The reason is longer than {LONGEST_REASON} characters.", **given)
    try:
        effects = await site.service.tournaments.rule(
            tournament.id,
            Action(given["action"]),
            subject,
            given["why"],
            ANNULS[given["annul"]],
            signed_in_user(request),
        )
    except (RulingError, CourseError) as error:
        return await page(request, 400, str(error), **given)
    sentence = ". ".join(effects)
    return see_other(request, f"{_path(tournament)}#rulings", sentence[:1].upper() + sentence[1:])


ROUTES = (
    Route("GET", LIST, tournaments, Access.LECTURER, "teach.tournaments"),
    Route("GET", HERE, page, Access.LECTURER, "teach.tournament"),
    Route("POST", f"{HERE}/start", start, Access.LECTURER, "teach.tournament.start"),
    Route("POST", f"{HERE}/pause", pause, Access.LECTURER, "teach.tournament.pause"),
    Route("POST", f"{HERE}/resume", resume, Access.LECTURER, "teach.tournament.resume"),
    Route("POST", f"{HERE}/rejudge", rejudge, Access.LECTURER, "teach.tournament.rejudge"),
    Route("POST", f"{HERE}/rule", rule, Access.LECTURER, "teach.tournament.rule"),
)
