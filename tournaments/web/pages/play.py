"""Pages of casual games: choosing a game, and the board on which people play."""

import random
from dataclasses import dataclass
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from referee.games.catalog import AnyGame, parse_game
from referee.games.opening import OpeningError, parse_opening
from referee.games.spec import SpecError
from referee.judge.verdict_text import visible
from sample_bots.catalog import LOWEST_SEARCH, REFERENCE_GAMES
from sample_bots.options import HIGHEST_LEVEL, LOWEST_LEVEL
from tournaments.course.casual_games import CasualPlayer
from tournaments.course.model import CourseError, VersionState
from tournaments.course.settings import Settings
from tournaments.course.texts import person_name
from tournaments.reporting.board.board_renderer import svg_picture
from tournaments.reporting.site.replay_page import without_styles
from tournaments.server.casual.positions import Continuation, opening_at
from tournaments.server.casual.table import Table
from tournaments.web.http.errors import Conflict, NotFound
from tournaments.web.http.rate_limits import address_key
from tournaments.web.http.rendering import render
from tournaments.web.http.request_body import form_of, number_in, text_of
from tournaments.web.http.request_context import context_of, current_user, settings_of, site_address, site_of
from tournaments.web.http.routing import Access, Route, in_thread
from tournaments.web.http.sessions import Cookie
from tournaments.web.http.sse import Emit, EventStream, viewer_of
from tournaments.web.views.casual_view import casual_page, casual_state
from tournaments.web.views.course_game import game_label

if TYPE_CHECKING:
    from tournaments.server.casual.games import CasualGames

A_PERSON = "person"
"""Value of the opponent for a game against a person, who gets a link."""
SIDES = ("first", "second", "random")
GENERAL_OPPONENTS = ("random", "greedy", "minimax:2", "minimax:4")
"""Sample bots for games that the ladder does not play."""
YOUR_NAME, GUEST = "Player", "Guest"
MOST_CHARACTERS_OF_POSITION = 6_000
"""Longest position in an address; a long game of Kalamala has a third of that."""


@dataclass(frozen=True)
class Opponent:
    """An opponent that a person can choose."""

    value: str
    """Value in the form."""
    label: str
    player: CasualPlayer
    """The player, without an owner."""


def games_of(settings: Settings) -> list[str]:
    """Return the spec texts of the games that can be played, the course's own first."""
    return list(dict.fromkeys([settings.game, *settings.play_games]))


def reference_opponents(game: AnyGame) -> list[Opponent]:
    """Return the reference players of a game, the weakest first."""
    if not isinstance(game, REFERENCE_GAMES):
        return [Opponent(name, name, CasualPlayer(name, reference=name)) for name in GENERAL_OPPONENTS]
    notes = {LOWEST_LEVEL: "random moves", LOWEST_SEARCH: "looks ahead", HIGHEST_LEVEL: "the strongest"}
    found = []
    for level in range(LOWEST_LEVEL, HIGHEST_LEVEL + 1):
        name = f"ladder:{level}"
        note = f" ({notes[level]})" if level in notes else ""
        found.append(Opponent(name, f"Level {level}{note}", CasualPlayer(name, reference=name)))
    return found


async def own_opponents(request: Request) -> list[Opponent]:
    """Return the qualified versions of the current user's team, the newest first."""
    user = current_user(request)
    if user is None or user.team_id is None:
        return []
    versions = await in_thread(site_of(request).course.versions.of_team, user.team_id)
    return [
        Opponent(
            f"version:{one.number}",
            f"Version {one.number} of your bot",
            CasualPlayer(f"version {one.number}", version_id=one.id),
        )
        for one in versions
        if one.state is VersionState.QUALIFIED and not one.withdrawn
    ]


def owner_of(request: Request) -> str:
    """Return the person of a request, as games name them; empty for a visitor who has not played yet."""
    context = context_of(request)
    if context.user is not None:
        return f"account {context.user.id}"
    known = context.site.cookies.read(request.cookies, Cookie.PLAYER)
    return f"visitor {known}" if known else ""


def _identified(request: Request) -> tuple[str, str | None]:
    """Return the person of a request, and the text of the cookie that a new visitor needs."""
    owner = owner_of(request)
    if owner:
        return owner, None
    secret = token_urlsafe(16)
    return f"visitor {secret}", secret


def _to_game(request: Request, address: str, secret: str | None) -> Response:
    response = RedirectResponse(f"/play/{address}", 303)
    if secret is not None:
        site_of(request).cookies.write(response, Cookie.PLAYER, secret)
    return response


# Choosing a game.


async def choose(request: Request) -> Response:
    """Show the form for a new game; ``game`` and ``from`` of the query are a position to begin with."""
    query = request.query_params
    return await _choose(request, {name: query.get(name, "") for name in FIELDS})


FIELDS = ("game", "opponent", "side", "name", "from")


async def _choose(request: Request, given: dict[str, str], problem: str = "") -> Response:
    settings = settings_of(request)
    names = games_of(settings)
    start, rules = None, None
    if given["from"]:
        try:
            rules, start = await in_thread(_start, given)
        except CourseError as error:
            problem = problem or f"The position cannot be played: {error}"
    game = rules.name if rules is not None else given["game"]
    if game and game not in names:  # a replay may be of a game that is not offered otherwise
        names = [game, *names] if rules is not None else names
    chosen = parse_game(game if game in names else names[0])
    casual: CasualGames = site_of(request).service.casual
    casual.prepare()
    return render(
        request,
        "play.html",
        400 if problem else 200,
        active="play",
        problem=problem,
        games=[rules.name] if rules is not None else names,
        labels={name: game_label(name) for name in names},
        chosen=chosen.name,
        references=reference_opponents(chosen),
        own=await own_opponents(request),
        given=given if start is not None else {**given, "from": ""},
        sides=_side_labels(rules, start),
        picture=without_styles(svg_picture(rules, _state(rules, start.opening))) if rules and start else "",
        unfinished=[
            {"href": f"/play/{one.game.address}", "players": [player.name for player in one.game.players]}
            for one in casual.unfinished(owner_of(request) or "-")
        ],
    )


def _state(rules: AnyGame, opening: str) -> Any:
    steps = parse_opening(rules, opening)
    return steps[-1].state if steps else rules.initial_state()


def _side_labels(rules: AnyGame | None, start: Continuation | None) -> list[tuple[str, str]]:
    if rules is None or start is None:
        return [("first", "First player"), ("second", "Second player"), ("random", "Either, by lot")]
    state = _state(rules, start.opening)
    seats, mover = rules.seats(state), rules.to_move(state)
    labels = [f"{seat}{', to move' if index == mover else ''}" for index, seat in enumerate(seats)]
    return [("first", labels[0]), ("second", labels[1]), ("random", "Either, by lot")]


def _start(given: dict[str, str]) -> tuple[AnyGame, Continuation]:
    """Return the game and the position of a request.  Raises CourseError."""
    try:
        if len(given["from"]) > MOST_CHARACTERS_OF_POSITION:
            raise OpeningError("it has too many moves")
        rules = parse_game(given["game"])
        return rules, opening_at(rules, given["from"].split())
    except (SpecError, OpeningError) as error:
        raise CourseError(str(error)) from error


async def start(request: Request) -> Response:
    """Start a game."""
    site, form = site_of(request), await form_of(request)
    given = {name: text_of(form, name).strip() for name in FIELDS}
    owner, secret = _identified(request)
    address = address_key(context_of(request).address)
    if secret is None:  # a new visitor counts by address alone: a class behind one address begins together
        site.check_rate(site.limits.casual_starts, owner, "You begin games too quickly.")
    site.check_rate(site.limits.casual_address, address, "Too many games begin at your address.")
    try:
        opening = None
        game = given["game"] or settings_of(request).game
        if given["from"]:
            rules, opening = await in_thread(_start, given)
            game = rules.name
        elif game not in games_of(settings_of(request)):
            raise CourseError(f"{visible(game)} is not played here: choose one of the list")
        own = CasualPlayer(_name(form, YOUR_NAME), owner)
        other = await _opponent(request, given["opponent"], game)
        if given["side"] not in SIDES:
            raise CourseError("choose a side")
        is_second = given["side"] == "second" or (given["side"] == "random" and random.random() < 0.5)
        players = (other, own) if is_second else (own, other)
        started = await site.service.casual.start(game, players, opening)
    except CourseError as error:
        sentence = str(error)
        return await _choose(request, given, sentence[:1].upper() + sentence[1:] + ".")
    return _to_game(request, started.address, secret)


async def _opponent(request: Request, value: str, game: str) -> CasualPlayer:
    if value == A_PERSON:
        return CasualPlayer("Open seat")
    for one in [*reference_opponents(parse_game(game)), *await own_opponents(request)]:
        if one.value == value:
            return one.player
    raise CourseError("choose an opponent of the list: others do not play this game")


def _name(form: FormData, default: str) -> str:
    """Return the name for the page of the game.  Raises CourseError."""
    text = text_of(form, "name").strip()
    return person_name(text, "name") if text else default


# Playing.


async def _table(request: Request) -> Table:
    found: Table | None = await site_of(request).service.casual.table(request.path_params["address"])
    if found is None:
        raise NotFound("There is no such game, or it was over long ago and is not kept any more.")
    return found


async def game(request: Request) -> Response:
    """Show the board of a game."""
    table = await _table(request)
    side = table.side_of(owner_of(request) or "-")
    site = site_of(request)
    page = await casual_page(site.live_boards, table, side)
    position = await in_thread(_position_of, table)
    return render(
        request,
        "play_game.html",
        active="play",
        page=page,
        table=table,
        game=table.game,
        side=side,
        base=f"/play/{table.game.address}",
        link=f"{site_address(request)}/play/{table.game.address}",
        opponent=_opponent_value(table, side),
        position=position,
        may_play_again=side is not None
        and bool(position or table.game.game in games_of(settings_of(request))),
        sides=SIDES,
    )


def _position_of(table: Table) -> str:
    """Return the position in which a game began, for the form of the next game; empty if it has none."""
    opening = table.game.opening
    try:
        _start({"game": table.game.game, "from": opening})
    except CourseError:
        return ""
    return opening


def _opponent_value(table: Table, side: int | None) -> str:
    """Return the value of the opponent in the form for the next game."""
    if side is None:
        return ""
    other = table.game.players[1 - side]
    if other.version_id is not None:
        return f"version:{other.name.removeprefix('version ')}"
    return other.reference or A_PERSON


async def events(request: Request) -> Response:
    """Stream the states of a game, beginning with ``after`` plies of a ``revision`` that the reader has."""
    table = await _table(request)
    site, side = site_of(request), table.side_of(owner_of(request) or "-")
    after = number_in(request.query_params.get("after"), 0)
    revision = number_in(request.query_params.get("revision"), 0)

    async def produce(emit: Emit) -> None:
        known, seen = after, revision
        with site.service.casual.watch(table):
            while True:
                changed = table.changed
                state = await casual_state(site.live_boards, table, side, known, seen)
                await emit(state, event="state")
                known, seen = state["after"] + len(state["plies"]), state["revision"]
                if state["over"]:
                    return
                await changed.wait()

    return EventStream(site.streams, viewer_of(request), produce)


async def move(request: Request) -> Response:
    """Play a move, and return the new state."""
    table = await _table(request)
    site, owner, form = site_of(request), owner_of(request) or "-", await form_of(request)
    site.check_rate(site.limits.casual_moves, owner, "You move too quickly.")
    ply = number_in(text_of(form, "ply"), -1)
    await _do(site.service.casual.move(table, owner, ply, text_of(form, "move")))
    return await _state_after(request, table, form)


async def take_back(request: Request) -> Response:
    """Take the last move back."""
    table = await _table(request)
    await _do(site_of(request).service.casual.take_back(table, owner_of(request) or "-"))
    return await _state_after(request, table, await form_of(request))


async def resign(request: Request) -> Response:
    """Give the game up."""
    table = await _table(request)
    await _do(site_of(request).service.casual.resign(table, owner_of(request) or "-"))
    return await _state_after(request, table, await form_of(request))


async def retry(request: Request) -> Response:
    """Start the bot again after a failure."""
    table = await _table(request)
    if table.side_of(owner_of(request) or "-") is None:
        raise Conflict("You are not one of the players of this game.")
    site_of(request).service.casual.retry(table)
    return await _state_after(request, table, await form_of(request))


async def join(request: Request) -> Response:
    """Take the open seat."""
    table = await _table(request)
    form = await form_of(request)
    owner, secret = _identified(request)
    try:
        await site_of(request).service.casual.join(table, owner, _name(form, GUEST))
    except CourseError as error:
        raise Conflict(_sentence(error)) from error
    return _to_game(request, table.game.address, secret)


async def _do(action: Any) -> None:
    try:
        await action
    except CourseError as error:
        raise Conflict(_sentence(error)) from error


def _sentence(error: CourseError) -> str:
    text = str(error)
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


async def _state_after(request: Request, table: Table, form: FormData) -> Response:
    """Return the state with the plies that the page does not have; a page without scripts is shown again."""
    if "application/json" not in request.headers.get("accept", ""):
        return RedirectResponse(f"/play/{table.game.address}", 303)
    side = table.side_of(owner_of(request) or "-")
    after, revision = (number_in(text_of(form, name), 0) for name in ("after", "revision"))
    return JSONResponse(await casual_state(site_of(request).live_boards, table, side, after, revision))


GAME = "/play/{address}"
ROUTES = (
    Route("GET", "/play", choose, Access.PLAY, "play"),
    Route("POST", "/play", start, Access.PLAY, "play.start"),
    Route("GET", GAME, game, Access.PLAY, "play.game"),
    Route("GET", f"{GAME}/events", events, Access.PLAY, "play.events"),
    Route("POST", f"{GAME}/move", move, Access.PLAY, "play.move"),
    Route("POST", f"{GAME}/take-back", take_back, Access.PLAY, "play.take_back"),
    Route("POST", f"{GAME}/resign", resign, Access.PLAY, "play.resign"),
    Route("POST", f"{GAME}/retry", retry, Access.PLAY, "play.retry"),
    Route("POST", f"{GAME}/join", join, Access.PLAY, "play.join"),
)
