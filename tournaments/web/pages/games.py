"""Page of a game: the replay, the explanation of the loss, and the files that the viewer may read."""

import json
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol
from urllib.parse import quote, urlencode

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from referee.judge.results import GameRecord, Reason
from tournaments.course.competitions import REMOTE
from tournaments.course.model import Account, Challenge, Competition, CompetitionKind
from tournaments.database.base import StoreError
from tournaments.reporting.site.pages import ruling_text
from tournaments.reporting.site.replay import replay_data
from tournaments.reporting.site.replay_page import replay_html
from tournaments.results.game_files import public_view, wire_text
from tournaments.server.challenges.challenge_games import game_of
from tournaments.web.http.errors import Forbidden, NotFound
from tournaments.web.http.rendering import part, render
from tournaments.web.http.request_context import current_user, settings_of, site_of
from tournaments.web.http.routing import Access, Handler, Route, in_thread
from tournaments.web.pages.live_pages import game_at
from tournaments.web.views.challenge_view import own_players_of
from tournaments.web.views.competition_view import ViewedCompetition
from tournaments.web.views.loss_explanation import loss_explanation_of
from tournaments.web.views.visibility import competition_of, this_viewer, view_of

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
    challenge: Challenge | None = None
    """The challenge that the game belongs to."""


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
    list_href: str | None
    """Address of the list with the game; None if this viewer has none."""


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


def game_page(found: ViewedGame, keys: Sequence[str] | None = None) -> GamePage:
    """Return the contents of a game's page.  ``keys`` are those of its challenge's games."""
    shown, record = found.shown, found.record
    href = shown.links.game(found.key)
    index: int | None
    list_href: str | None
    if keys is None:
        kept, index = shown.view.kept, shown.indices.get(shown.names.key(found.key))
        keys = [game.key for game in kept]
        counts = index is None or shown.view.counts(kept[index])
        list_href = f"/competitions/{found.competition.slug}/games"
    else:
        index, counts = keys.index(found.key) if found.key in keys else None, True
        list_href = None if found.is_whole else "/my/challenges"
    names = [player.name for player in record.players]
    one, other = (
        Bot(
            name=name,
            href=shown.bot_href(name) if found.challenge is None else challenged_href(shown, name),
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
        counts=counts,
        previous=shown.links.game(keys[index - 1]) if index else None,
        following=shown.links.game(keys[index + 1]) if index is not None and index + 1 < len(keys) else None,
        list_href=list_href,
    )


def challenged_href(shown: ViewedCompetition, name: str) -> str | None:
    """Return the address of a bot's page by its name in a challenge; None without one."""
    entrant = shown.entrants.get(name)
    if entrant is None:
        return None
    if entrant.team_id is not None:
        return None if shown.names.on else f"/bots/{entrant.team_id}"
    is_player = entrant.reference is not None and not entrant.reference.startswith(REMOTE)
    return f"/references/{quote(entrant.reference or '', safe='')}" if is_player else None


def replay_of(record: GameRecord, own: Collection[int], is_whole: bool, why: Markup) -> str:
    """Return the replay below the explanation of the loss, which contains the note already.

    Args:
        record: The record with the names that the viewer may see.
        own: Players whose private data the viewer may see.
        is_whole: True if the viewer may see all data.
        why: The explanation; empty if there is none.
    """
    data = replay_data(record, public=not is_whole, own=own)
    return replay_html({**data, "note": ""} if why else data, why)


async def game_in_path(request: Request) -> ViewedGame:
    """Return the game in the address, as the current user may see it.  Raises NotFound."""
    site, user = site_of(request), current_user(request)
    competition = await competition_of(request, challenges=True)
    shown = await view_of(request, competition)
    shown_key = request.path_params["key"]
    # The page of a live game links to this one at its end, before a summary has the game.
    live = game_at(site.service.live, competition.slug, shown_key, shown.names)
    key = shown.key_at(shown_key) if live is None else live.key
    challenge: Challenge | None = None
    if competition.kind is CompetitionKind.CHALLENGE:
        challenge = await _challenge_of(request, competition, key)
    try:
        original = await site.service.tournaments.record(competition.id, key)
    except StoreError as error:
        if error.is_ours:
            raise
        raise NotFound("There is no such game in this competition, or it is not over yet.") from error
    record = anonymized(shown, original)
    own = own_players(shown, record, user)
    if challenge is not None and user is not None and not user.role.teaches:
        own = own_players_of(challenge, key, user.team_id)
    if shown.names.on:
        record = with_own_stderr(record, original, own)
    is_whole = user is not None and user.role.teaches
    return ViewedGame(competition, shown, key, record, own, is_whole, challenge)


async def _challenge_of(request: Request, competition: Competition, key: str) -> Challenge:
    """Return the challenge of a game, which both of its teams and lecturers may see.  Raises NotFound."""
    site, user, game = site_of(request), current_user(request), game_of(key)
    found = None if game is None else await in_thread(site.course.challenges.get, game.challenge_id)
    if found is not None and found.competition_id == competition.id and user is not None:
        teams = {found.team_id, found.opponent_team_id} - {None}
        if user.role.teaches or user.team_id in teams:
            return found
    raise NotFound("There is no such game in this competition, or it is not over yet.")


async def game(request: Request) -> Response:
    """Show the page of a game."""
    site, user = site_of(request), current_user(request)
    found = await game_in_path(request)
    lost = loss_explanation_of(found.record, found.own)
    is_own = lost is not None and user is not None and is_of(found.shown.team_of(lost.loser), user.team_id)
    keys: list[str] | None = None
    if found.challenge is not None:
        games = await site.service.challenges.games([found.challenge])
        keys = [one.key for one in games[found.challenge.id]]
    why = part("why.html", lost=lost, is_own=is_own)
    viewer = this_viewer(request)  # the names in the replay depend on it
    key = (found.competition.id, found.key, viewer, found.own, found.is_whole, why)

    async def make_replay() -> str:
        return await in_thread(replay_of, found.record, found.own, found.is_whole, why)

    return render(
        request,
        "game.html",
        active="competitions",
        page=game_page(found, keys),
        replay=Markup(await site.replays.get(key, make_replay)),
        competition=found.competition,
        title=found.shown.names.sentence(found.competition.title),
        play_link=play_link(found.record) if may_play(request) else None,
    )


def may_play(request: Request) -> bool:
    """Return True if the current user may play casual games."""
    play_for = settings_of(request).play_for
    return play_for == "everybody" or (play_for == "accounts" and current_user(request) is not None)


def play_link(record: GameRecord) -> dict[str, str]:
    """Return the address for playing a game's last position, and the data for those of other positions.

    After the last move of a game that was not ended by a fault, there is nothing to play.
    """
    is_over = record.result.reason in (Reason.SCORE, Reason.TURN_CAP)
    most = len(record.moves) - 1 if is_over else len(record.moves)
    words = " ".join([record.opening, *(move.move for move in record.moves[:most])]).strip()
    query = urlencode({"game": record.game, "from": words})
    return {"href": f"/play?{query}", "opening": record.opening, "most": str(most)}


def is_of(team_id: int | None, own_id: int | None) -> bool:
    """Return True if a bot's team is the viewer's."""
    return team_id is not None and team_id == own_id


class FoundGame(Protocol):
    """A game as the current user may see it."""

    @property
    def record(self) -> GameRecord:
        """The record with the names that this viewer may see."""
        ...

    @property
    def own(self) -> tuple[int, ...]:
        """Players whose standard error this viewer may see."""
        ...


class FileHandlers(NamedTuple):
    """Handlers of the files of a game."""

    wire: Handler
    """Sends the conversation as text."""
    json: Handler
    """Sends the record as JSON, without private data."""
    stderr: Handler
    """Sends all that is kept of a bot's standard error, to its team and to lecturers only."""


def file_handlers(game_in_path: Callable[[Request], Awaitable[FoundGame]]) -> FileHandlers:
    """Return the handlers of a game's files; ``game_in_path`` finds the game in the request's address."""

    async def wire(request: Request) -> Response:
        found = await game_in_path(request)
        return PlainTextResponse(encoded(await in_thread(wire_text, found.record)))

    async def game_json(request: Request) -> Response:
        found = await game_in_path(request)
        text = await in_thread(lambda: json.dumps(public_view(found.record)))
        return Response(text, media_type="application/json")

    async def stderr(request: Request) -> Response:
        found = await game_in_path(request)
        side = request.path_params["player"] - 1
        if side not in BOTH:
            raise NotFound
        if side not in found.own:
            raise Forbidden("What a bot writes to standard error is for its own team.")
        return PlainTextResponse(encoded(found.record.stderr[side]))

    return FileHandlers(wire, game_json, stderr)


def encoded(text: str) -> bytes:
    """Encode a text as UTF-8; lone surrogates, which names and lines can contain, become escapes."""
    return text.encode("utf-8", "backslashreplace")


GAME = "/competitions/{slug}/games/{key}"
FILES = file_handlers(game_in_path)
ROUTES = (
    Route("GET", GAME, game, Access.PUBLIC, "game"),
    Route("GET", GAME + "/wire.txt", FILES.wire, Access.PUBLIC, "wire"),
    Route("GET", GAME + "/game.json", FILES.json, Access.PUBLIC, "game_json"),
    Route("GET", GAME + "/stderr/{player:int}", FILES.stderr, Access.SIGNED_IN, "stderr"),
)
