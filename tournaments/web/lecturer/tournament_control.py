"""Control page of a tournament: start, pause, rejudge, rulings."""

from collections.abc import Awaitable, Callable, Sequence

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from tournaments.config.format_tables import FORMAT_TABLES
from tournaments.course.model import (
    Account,
    BotChoice,
    Competition,
    CompetitionKind,
    CompetitionState,
    CourseError,
)
from tournaments.reporting.tournament_results import TournamentResults
from tournaments.results.journal import Action
from tournaments.results.rulings import RulingError
from tournaments.server.competitions.tournament_spec import TournamentSpecError
from tournaments.web.http.errors import BadInput, Conflict, NotFound
from tournaments.web.http.rendering import render, see_other
from tournaments.web.http.request_body import number_in, text_of
from tournaments.web.http.request_context import Site, signed_in_user, site_address, site_of
from tournaments.web.http.routing import Access, Route, in_thread
from tournaments.web.lecturer.choices import PLAYERS
from tournaments.web.views.visibility import competition_of, visible_to

LIST = "/teach/tournaments"
HERE = f"{LIST}/{{slug}}"
VERSION, REFERENCE = "version:", "reference:"
"""Beginnings of the form values of a bot that joins, before the version's id or the player's text."""
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
    known = visible_to(request, await in_thread(site_of(request).course.competitions.all))
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
    is_running = tournament.state is CompetitionState.RUNNING
    summary = await site.service.tournaments.without_table(tournament.id)
    rejudging = site.service.tournaments.rejudgings.get(tournament.id)
    takes_late_bots = FORMAT_TABLES[summary.plan.kind].TAKES_LATE_BOTS
    asked = {"game": request.query_params.get("game", ""), "bot": "", "why": "", "action": "", "annul": ""}
    asked |= {"late": "", "replaces": ""}
    return render(
        request,
        "teach/tournament.html",
        status,
        active="teach",
        tournament=tournament,
        retry_reason=site.service.tournaments.retry_reason(tournament.id) if is_running else "",
        actions=_actions(tournament),
        summary=summary,
        is_live=is_running or (rejudging is not None and not rejudging.over),
        rejudging=rejudging,
        game_rulings=GAME_RULINGS.items(),
        bot_rulings=BOT_RULINGS.items(),
        takes_late_bots=takes_late_bots,
        late_bots=await in_thread(_late_bots, site, tournament, summary) if takes_late_bots else [],
        replaceable=[("", "nobody"), *((name, name) for name in summary.bots)],
        wrong=wrong,
        given=asked | given,
        site_address=site_address(request),
    )


def _late_bots(site: Site, tournament: Competition, summary: TournamentResults) -> list[tuple[str, str]]:
    """Return the bots that can join, each as form value and label; blocks."""
    with site.course.reading():
        names = {team.id: team.name for team in site.course.teams.all()}
        current = site.course.versions.current().values()
        references = site.course.settings.load().references
        entered = {one.version_id for one in site.course.competitions.competitors(tournament.id)}
    of_teams = sorted(
        (f"{names[one.team_id]} v{one.number}", one.id) for one in current if one.id not in entered
    )
    known = dict.fromkeys([*references, *PLAYERS])
    return [
        *((f"{VERSION}{number}", name) for name, number in of_teams if name not in summary.bots),
        *((f"{REFERENCE}{name}", name) for name in known if name not in summary.bots),
    ]


async def add(request: Request) -> Response:
    """Let a bot join the tournament."""
    site, tournament, form = site_of(request), await tournament_of(request), await request.form()
    given = {name: text_of(form, name).strip() for name in ("late", "replaces", "why")}
    late = given["late"]
    if late.startswith(VERSION) and (number := number_in(late.removeprefix(VERSION), 0)):
        choice = BotChoice(version_id=number)
    elif late.startswith(REFERENCE):
        choice = BotChoice(reference=late.removeprefix(REFERENCE))
    else:
        raise BadInput("Choose from the list the bot that joins.")
    if len(given["why"]) > LONGEST_REASON:
        return await page(request, 400, f"The reason is longer than {LONGEST_REASON} characters.", **given)
    try:
        effects = await site.service.tournaments.add_bot(
            tournament.id, choice, given["why"], given["replaces"] or None, signed_in_user(request)
        )
    except (RulingError, CourseError, TournamentSpecError) as error:
        return await page(request, 400, str(error), **given)
    return await _ruled(request, tournament, effects)


def _actions(tournament: Competition) -> Sequence[str]:
    """Return the actions for which the page has buttons."""
    shown = "show" if tournament.is_hidden else "hide"
    match tournament.state:
        case CompetitionState.DRAFT:
            return ("publish", "delete")
        case CompetitionState.CREATED:
            return ("start", shown, "cancel", "delete")
        case CompetitionState.RUNNING:
            return ("pause", shown, "cancel")
        case CompetitionState.PAUSED | CompetitionState.FAILED:
            return ("resume", shown, "cancel", "delete")
        case CompetitionState.CANCELLED:
            return ("resume", shown, "delete")
    return (shown, "delete")


async def start(request: Request) -> Response:
    """Start the tournament."""
    return await _control(request, "start", site_of(request).service.tournaments.start, "is started")


async def pause(request: Request) -> Response:
    """Pause the tournament: begin no more games."""
    return await _control(request, "pause", site_of(request).service.tournaments.pause, "is paused")


async def resume(request: Request) -> Response:
    """Resume the tournament."""
    return await _control(request, "resume", site_of(request).service.tournaments.resume, "goes on")


async def publish(request: Request) -> Response:
    """Show a draft to students."""
    return await _control(request, "publish", site_of(request).service.tournaments.publish, "is published")


async def cancel(request: Request) -> Response:
    """End the tournament before its last game."""
    return await _control(request, "cancel", site_of(request).service.tournaments.cancel, "is cancelled")


async def hide(request: Request) -> Response:
    """Hide the tournament from students and visitors."""

    async def work(number: int, by: Account) -> None:
        await site_of(request).service.tournaments.hide(number, True, by)

    return await _control(request, "hide", work, "is hidden")


async def show(request: Request) -> Response:
    """Show the tournament to students again."""

    async def work(number: int, by: Account) -> None:
        await site_of(request).service.tournaments.hide(number, False, by)

    return await _control(request, "show", work, "is shown")


async def delete(request: Request) -> Response:
    """Delete the tournament; its games stay in the database."""
    tournament = await tournament_of(request)
    try:
        await site_of(request).service.tournaments.delete(tournament.id, signed_in_user(request))
    except CourseError as error:
        raise Conflict(str(error)) from error
    return see_other(request, LIST, f"{tournament.title} is deleted. Its games stay in the database.")


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
    return await _ruled(request, tournament, effects)


async def _ruled(request: Request, tournament: Competition, effects: Sequence[str]) -> RedirectResponse:
    """Return the response after a ruling with these effects, when pages show the table with it."""
    await site_of(request).service.tournaments.summary(tournament.id, wait=True)
    sentence = ". ".join(effects)
    return see_other(request, f"{_path(tournament)}#rulings", sentence[:1].upper() + sentence[1:])


ROUTES = (
    Route("GET", LIST, tournaments, Access.LECTURER, "teach.tournaments"),
    Route("GET", HERE, page, Access.LECTURER, "teach.tournament"),
    Route("POST", f"{HERE}/start", start, Access.LECTURER, "teach.tournament.start"),
    Route("POST", f"{HERE}/pause", pause, Access.LECTURER, "teach.tournament.pause"),
    Route("POST", f"{HERE}/resume", resume, Access.LECTURER, "teach.tournament.resume"),
    Route("POST", f"{HERE}/publish", publish, Access.LECTURER, "teach.tournament.publish"),
    Route("POST", f"{HERE}/cancel", cancel, Access.LECTURER, "teach.tournament.cancel"),
    Route("POST", f"{HERE}/hide", hide, Access.LECTURER, "teach.tournament.hide"),
    Route("POST", f"{HERE}/show", show, Access.LECTURER, "teach.tournament.show"),
    Route("POST", f"{HERE}/delete", delete, Access.LECTURER, "teach.tournament.delete"),
    Route("POST", f"{HERE}/rejudge", rejudge, Access.LECTURER, "teach.tournament.rejudge"),
    Route("POST", f"{HERE}/add", add, Access.LECTURER, "teach.tournament.add"),
    Route("POST", f"{HERE}/rule", rule, Access.LECTURER, "teach.tournament.rule"),
)
