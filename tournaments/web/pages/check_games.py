"""Pages of the games of a version's check, for its team and lecturers."""

from dataclasses import dataclass

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from referee.errors import RefereeError
from referee.judge.results import GameRecord
from tournaments.database.base import StoreError
from tournaments.results.packing import unpacked
from tournaments.web.http.errors import NotFound
from tournaments.web.http.rendering import part, render
from tournaments.web.http.request_context import signed_in_user, site_of
from tournaments.web.http.routing import Access, Route, in_thread
from tournaments.web.pages.games import (
    BOTH,
    Bot,
    GamePage,
    file_handlers,
    may_play,
    play_link,
    replay_of,
)
from tournaments.web.pages.versions import VersionRecords, check_game_href, requested_version
from tournaments.web.views.loss_explanation import loss_explanation_of


@dataclass(frozen=True)
class ViewedCheckGame:
    """A game of a check as the current user may see it."""

    records: VersionRecords
    key: str
    bot: int
    """Number of the checked bot in the record."""
    record: GameRecord
    own: tuple[int, ...]
    """Players whose standard error this viewer may see."""
    is_whole: bool
    """True if this viewer may see all data, including those about our host."""


async def game_in_path(request: Request) -> ViewedCheckGame:
    """Return the game in the address.  Raises NotFound for games of others, too."""
    site, user, records = await requested_version(request)
    version_id, key = records.version.id, request.path_params["key"]
    stored = await in_thread(site.course.versions.checked_game, version_id, key)
    if stored is None:
        raise NotFound("This game is not kept: look at the page of the version for the games of its check.")
    try:
        record = await in_thread(unpacked, stored.packed)
    except RefereeError as error:
        message = f"version {version_id}, game {key}: {error}"
        raise StoreError(message, is_ours=True, is_damaged=True) from error
    own = BOTH if user.role.teaches else (stored.player,)
    return ViewedCheckGame(records, key, stored.player, record, own, user.role.teaches)


def game_page(found: ViewedCheckGame) -> GamePage:
    """Return the contents of the page."""
    keys, record = found.records.games, found.record
    version_id = found.records.version.id
    index = keys.index(found.key) if found.key in keys else None
    href = check_game_href(version_id, found.key)
    one, other = (
        Bot(
            name=player.name,
            href=None,
            stderr_href=f"{href}/stderr/{side + 1}" if side in found.own and record.stderr[side] else None,
        )
        for side, player in enumerate(record.players)
    )
    is_last = index is None or index + 1 == len(keys)
    return GamePage(
        key=found.key,
        href=href,
        title=f"{one.name} vs {other.name}",
        bots=(one, other),
        rulings=(),
        counts=True,
        previous=check_game_href(version_id, keys[index - 1]) if index else None,
        following=None if index is None or is_last else check_game_href(version_id, keys[index + 1]),
        list_href=f"/my/versions/{version_id}",
    )


async def check_game(request: Request) -> Response:
    """Show the page of a game."""
    site, user = site_of(request), signed_in_user(request)
    found = await game_in_path(request)
    record, records = found.record, found.records
    is_own = user.team_id == records.version.team_id
    has_lost = record.result.winner == 1 - found.bot  # the opponent loses on purpose to end a game
    lost = loss_explanation_of(record, found.own) if has_lost else None
    why = part("why.html", lost=lost, is_own=is_own)
    key = ("check", records.version.id, found.key, record.started_at, found.own, found.is_whole, why)

    async def make_replay() -> str:
        return await in_thread(replay_of, record, found.own, found.is_whole, why)

    return render(
        request,
        "game.html",
        active="my" if is_own else "teach",
        page=game_page(found),
        replay=Markup(await site.replays.get(key, make_replay)),
        competition=None,
        title=f"Check of version {records.version.number}",
        play_link=play_link(record) if may_play(request) else None,
    )


GAME = "/my/versions/{id:int}/games/{key}"
FILES = file_handlers(game_in_path)
ROUTES = (
    Route("GET", GAME, check_game, Access.SIGNED_IN, "check_game"),
    Route("GET", GAME + "/wire.txt", FILES.wire, Access.SIGNED_IN, "check_game_wire"),
    Route("GET", GAME + "/game.json", FILES.json, Access.SIGNED_IN, "check_game_json"),
    Route("GET", GAME + "/stderr/{player:int}", FILES.stderr, Access.SIGNED_IN, "check_game_stderr"),
)
