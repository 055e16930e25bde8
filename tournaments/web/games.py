"""A game's page: the replay, why it was lost, and the files of it that this viewer may have."""

import json
from collections.abc import Collection
from dataclasses import dataclass, replace

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from referee.results import GameRecord
from tournaments.course.model import Account, Competition
from tournaments.database.errors import StoreError
from tournaments.gamefiles import public_view, wire_text
from tournaments.report.pages import ruling_text
from tournaments.report.replay import replay_data
from tournaments.report.replay_page import replay_html
from tournaments.web.errors import Forbidden, NotFound
from tournaments.web.lost import lost_of
from tournaments.web.rendering import part, render
from tournaments.web.routing import Access, Route
from tournaments.web.shown import competition_of, shown_to
from tournaments.web.shows import Shown
from tournaments.web.site import me_of, site_of
from tournaments.web.threads import in_thread

BOTH = (0, 1)


@dataclass(frozen=True)
class Found:
    """A game as who asks may see it."""

    competition: Competition
    shown: Shown
    key: str
    """As the store has it."""
    record: GameRecord
    """With the names of this viewer."""
    own: tuple[int, ...]
    """The players whose standard error and the like this viewer may see."""
    is_whole: bool
    """Whether this viewer may see all: what is our host's, too."""


@dataclass(frozen=True)
class Bot:
    """One of the two."""

    name: str
    href: str | None
    stderr_href: str | None
    """None: not for this viewer, or it said nothing."""


@dataclass(frozen=True)
class GamePage:
    """What the page shows."""

    key: str
    href: str
    title: str
    bots: tuple[Bot, Bot]
    rulings: tuple[str, ...]
    counts: bool
    previous: str | None
    following: str | None


def own_players(shown: Shown, record: GameRecord, me: Account | None) -> tuple[int, ...]:
    """Players whose private parts somebody may see; the record has the names that are shown."""
    if me is None:
        return ()
    if me.role.teaches:
        return BOTH
    if me.team_id is None:
        return ()
    return tuple(side for side in BOTH if shown.team_of(record.players[side].name) == me.team_id)


def disguised(shown: Shown, record: GameRecord) -> GameRecord:
    """A record with the names that this viewer may see.  Raises NotFound if there is no pseudonym yet."""
    disguise = shown.names.disguise
    if disguise.on and any(player.name not in disguise.names for player in record.players):
        raise NotFound("This game has just been played. Try again in a few seconds.")
    return disguise.record(record)


def with_own_stderr(record: GameRecord, original: GameRecord, own: Collection[int]) -> GameRecord:
    """What a disguise takes away, and an author may see all the same."""
    lost = original.result.winner is not None and 1 - original.result.winner in own
    first, second = (text if side in own else "" for side, text in enumerate(original.stderr))
    note = original.result.note if lost else ""
    return replace(record, stderr=(first, second), result=replace(record.result, note=note))


def game_page(found: Found) -> GamePage:
    """Everything on the page."""
    shown, record = found.shown, found.record
    href = shown.links.game(found.key)
    kept, place = shown.view.kept, shown.places.get(shown.names.key(found.key))
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
        counts=place is None or shown.view.counts(kept[place]),
        previous=shown.links.game(kept[place - 1].key) if place else None,
        following=shown.links.game(kept[place + 1].key)
        if place is not None and place + 1 < len(kept)
        else None,
    )


def replay_of(found: Found, why: Markup) -> str:
    """The replay, with why the game was lost above it, which has the note already."""
    data = replay_data(found.record, public=not found.is_whole, own=found.own)
    return replay_html({**data, "note": ""} if why else data, why)


async def find(request: Request) -> Found:
    """The game of an address, as who asks may see it.  Raises NotFound."""
    site, me = site_of(request), me_of(request)
    competition = await competition_of(request)
    shown = await shown_to(request, competition)
    key = shown.key_at(request.path_params["key"])
    try:
        original = await site.service.contests.record(competition.id, key)
    except StoreError as error:
        if error.is_ours:
            raise
        raise NotFound("There is no such game in this competition, or it is not over yet.") from error
    record = disguised(shown, original)
    own = own_players(shown, record, me)
    if shown.names.on:
        record = with_own_stderr(record, original, own)
    return Found(competition, shown, key, record, own, me is not None and me.role.teaches)


async def game(request: Request) -> Response:
    """The page."""
    site, me = site_of(request), me_of(request)
    found = await find(request)
    lost = lost_of(found.record, found.own)
    is_own = lost is not None and me is not None and is_of(found.shown.team_of(lost.loser), me.team_id)
    why = part("why.html", lost=lost, is_own=is_own)
    key = (found.competition.id, found.key, found.own, found.is_whole, why)
    return render(
        request,
        "game.html",
        active="competitions",
        page=game_page(found),
        replay=Markup(await site.replays.of(key, lambda: replay_of(found, why))),
        competition=found.competition,
        title=found.shown.names.sentence(found.competition.title),
    )


def is_of(team_id: int | None, own_id: int | None) -> bool:
    """Whether a bot's team is the viewer's."""
    return team_id is not None and team_id == own_id


async def wire(request: Request) -> Response:
    """The conversation as text."""
    found = await find(request)
    return PlainTextResponse(_encoded(await in_thread(wire_text, found.record)))


async def game_json(request: Request) -> Response:
    """The record without what is private."""
    found = await find(request)
    text = await in_thread(lambda: json.dumps(public_view(found.record)))
    return Response(text, media_type="application/json")


async def stderr(request: Request) -> Response:
    """What a bot said on its standard error: for its team, and for lecturers."""
    found = await find(request)
    side = request.path_params["player"] - 1
    if side not in BOTH:
        raise NotFound
    if side not in found.own:
        raise Forbidden("What a bot writes to standard error is for its own team.")
    return PlainTextResponse(_encoded(found.record.stderr[side]))


def _encoded(text: str) -> bytes:
    """Names and lines can hold halves of characters, which UTF-8 has no form for."""
    return text.encode("utf-8", "backslashreplace")


GAME = "/competitions/{slug}/games/{key}"
ROUTES = (
    Route("GET", GAME, game, Access.PUBLIC, "game"),
    Route("GET", GAME + "/wire.txt", wire, Access.PUBLIC, "wire"),
    Route("GET", GAME + "/game.json", game_json, Access.PUBLIC, "game_json"),
    Route("GET", GAME + "/stderr/{player:int}", stderr, Access.SIGNED_IN, "stderr"),
)
