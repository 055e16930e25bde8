"""Page of a game: the replay, the explanation of the loss, and the files that the viewer may read."""

import json
from collections.abc import Collection
from dataclasses import dataclass, replace

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from referee.judge.results import GameRecord
from tournaments.course.model import Account, Competition
from tournaments.database.base import StoreError
from tournaments.reporting.site.pages import ruling_text
from tournaments.reporting.site.replay import replay_data
from tournaments.reporting.site.replay_page import replay_html
from tournaments.results.game_files import public_view, wire_text
from tournaments.web.http.errors import Forbidden, NotFound
from tournaments.web.http.rendering import part, render
from tournaments.web.http.request_context import current_user, site_of
from tournaments.web.http.routing import Access, Route, in_thread
from tournaments.web.views.competition_view import ViewedCompetition
from tournaments.web.views.loss_explanation import loss_explanation_of
from tournaments.web.views.visibility import competition_of, view_of

BOTH = (0, 1)


@dataclass(frozen=True)
class ViewedGame:
    """A game as the current user may see it."""

    competition: Competition
    shown: ViewedCompetition
    key: str
    """Key of the game in the store."""
    record: GameRecord
    """The record with the names that this viewer may see."""
    own: tuple[int, ...]
    """Players whose private data, such as standard error, this viewer may see."""
    is_whole: bool
    """True if this viewer may see all data, including those about our host."""


@dataclass(frozen=True)
class Bot:
    """One of the two bots of a game."""

    name: str
    href: str | None
    stderr_href: str | None
    """None if this viewer may not see the standard error, or if it is empty."""


@dataclass(frozen=True)
class GamePage:
    """Contents of a game's page."""

    key: str
    href: str
    title: str
    bots: tuple[Bot, Bot]
    rulings: tuple[str, ...]
    counts: bool
    previous: str | None
    following: str | None


def own_players(shown: ViewedCompetition, record: GameRecord, user: Account | None) -> tuple[int, ...]:
    """Return the players whose private data an account may see; the record has the displayed names."""
    if user is None:
        return ()
    if user.role.teaches:
        return BOTH
    if user.team_id is None:
        return ()
    return tuple(side for side in BOTH if shown.team_of(record.players[side].name) == user.team_id)


def anonymized(shown: ViewedCompetition, record: GameRecord) -> GameRecord:
    """Return the record with the names that the viewer may see.  Raises NotFound without a pseudonym."""
    anonymizer = shown.names.anonymizer
    if anonymizer.on and any(player.name not in anonymizer.names for player in record.players):
        raise NotFound("This game has just been played. Try again in a few seconds.")
    return anonymizer.record(record)


def with_own_stderr(record: GameRecord, original: GameRecord, own: Collection[int]) -> GameRecord:
    """Restore what the anonymizer removed but an author may see: standard error and the note."""
    lost = original.result.winner is not None and 1 - original.result.winner in own
    first, second = (text if side in own else "" for side, text in enumerate(original.stderr))
    note = original.result.note if lost else ""
    return replace(record, stderr=(first, second), result=replace(record.result, note=note))


def game_page(found: ViewedGame) -> GamePage:
    """Return the contents of a game's page."""
    shown, record = found.shown, found.record
    href = shown.links.game(found.key)
    kept, index = shown.view.kept, shown.indices.get(shown.names.key(found.key))
    names = [player.name for player in record.players]
    one, other = (
        Bot(
            name=name,
            href=shown.bot_href(name),
            stderr_href=f"{href}/stderr/{side + 1}" if side in found.own and record.stderr[side] else None,
        )
        for side, name in enumerate(names)
    )
    return GamePage(
        key=shown.names.key(found.key),
        href=href,
        title=" vs ".join(names),
        bots=(one, other),
        rulings=tuple(map(ruling_text, shown.view.rulings.get(found.key, ()))),
        counts=index is None or shown.view.counts(kept[index]),
        previous=shown.links.game(kept[index - 1].key) if index else None,
        following=shown.links.game(kept[index + 1].key)
        if index is not None and index + 1 < len(kept)
        else None,
    )


def replay_of(found: ViewedGame, why: Markup) -> str:
    """Return the replay below the explanation of the loss, which contains the note already."""
    data = replay_data(found.record, public=not found.is_whole, own=found.own)
    return replay_html({**data, "note": ""} if why else data, why)


async def game_in_path(request: Request) -> ViewedGame:
    """Return the game in the address, as the current user may see it.  Raises NotFound."""
    site, user = site_of(request), current_user(request)
    competition = await competition_of(request)
    shown = await view_of(request, competition)
    key = shown.key_at(request.path_params["key"])
    try:
        original = await site.service.tournaments.record(competition.id, key)
    except StoreError as error:
        if error.is_ours:
            raise
        raise NotFound("There is no such game in this competition, or it is not over yet.") from error
    record = anonymized(shown, original)
    own = own_players(shown, record, user)
    if shown.names.on:
        record = with_own_stderr(record, original, own)
    return ViewedGame(competition, shown, key, record, own, user is not None and user.role.teaches)


async def game(request: Request) -> Response:
    """Show the page of a game."""
    site, user = site_of(request), current_user(request)
    found = await game_in_path(request)
    lost = loss_explanation_of(found.record, found.own)
    is_own = lost is not None and user is not None and is_of(found.shown.team_of(lost.loser), user.team_id)
    why = part("why.html", lost=lost, is_own=is_own)
    key = (found.competition.id, found.key, found.own, found.is_whole, why)
    return render(
        request,
        "game.html",
        active="competitions",
        page=game_page(found),
        replay=Markup(await site.replays.get(key, lambda: in_thread(replay_of, found, why))),
        competition=found.competition,
        title=found.shown.names.sentence(found.competition.title),
    )


def is_of(team_id: int | None, own_id: int | None) -> bool:
    """Return True if a bot's team is the viewer's."""
    return team_id is not None and team_id == own_id


async def wire(request: Request) -> Response:
    """Send the conversation as text."""
    found = await game_in_path(request)
    return PlainTextResponse(_encoded(await in_thread(wire_text, found.record)))


async def game_json(request: Request) -> Response:
    """Send the record as JSON, without private data."""
    found = await game_in_path(request)
    text = await in_thread(lambda: json.dumps(public_view(found.record)))
    return Response(text, media_type="application/json")


async def stderr(request: Request) -> Response:
    """Send a bot's standard error, to its team and to lecturers only."""
    found = await game_in_path(request)
    side = request.path_params["player"] - 1
    if side not in BOTH:
        raise NotFound
    if side not in found.own:
        raise Forbidden("What a bot writes to standard error is for its own team.")
    return PlainTextResponse(_encoded(found.record.stderr[side]))


def _encoded(text: str) -> bytes:
    """Encode a text as UTF-8; lone surrogates, which names and lines can contain, become escapes."""
    return text.encode("utf-8", "backslashreplace")


GAME = "/competitions/{slug}/games/{key}"
ROUTES = (
    Route("GET", GAME, game, Access.PUBLIC, "game"),
    Route("GET", GAME + "/wire.txt", wire, Access.PUBLIC, "wire"),
    Route("GET", GAME + "/game.json", game_json, Access.PUBLIC, "game_json"),
    Route("GET", GAME + "/stderr/{player:int}", stderr, Access.SIGNED_IN, "stderr"),
)
