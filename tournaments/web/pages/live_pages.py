"""Pages of live games, their streams of moves, the stream of the list of games, and boards for frames."""

import math
import random
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import trio
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from referee.judge.verdict_text import visible
from tournaments.course.model import Competition
from tournaments.database.base import StoreError
from tournaments.reporting.site.replay import time_text
from tournaments.reporting.site.replay_page import live_html
from tournaments.results.store import Store
from tournaments.server.live_hub import Hub, LiveGame, NowPlaying, TooManyWatchersError, ended_game
from tournaments.web.http.errors import NotFound, Unavailable
from tournaments.web.http.rendering import render
from tournaments.web.http.request_body import number_in
from tournaments.web.http.request_context import site_of
from tournaments.web.http.routing import Access, Route
from tournaments.web.http.sse import FULL_RETRY_S, Emit, EventStream, viewer_of
from tournaments.web.views.names import Names
from tournaments.web.views.visibility import (
    competition_of,
    is_visible,
    names_for,
    titles_for,
    view_of,
)

MOST_SHOWN = 20
"""Most games in the list of live games."""
STANDINGS_INTERVAL_S = 10.0
"""Least seconds between two events about new standings, after each of which a reader requests the page."""
FEW_READERS = 100
"""With more readers events are sent less often, so that at most ten pages are requested a second."""
SPREAD_S = 1.0
"""Seconds over which events about the list are spread: serving 200 readers in the same moment would delay all
pages that are requested just then."""


async def live_game(request: Request) -> Response:
    """Show a live game, which scripts then update.  A game that is over redirects to its own page."""
    competition, names, game = await _live_game_in_path(request)
    if game is None:
        return RedirectResponse(_game_path(competition, request.path_params["key"]), 303)
    live = f"/competitions/{competition.slug}/live/{quote(names.key(game.key), safe='')}"
    return await _board_page(request, competition, names, game, f"{live}/events")


async def _board_page(
    request: Request,
    competition: Competition,
    names: Names,
    game: LiveGame,
    events: str,
    *,
    follows: bool = False,
) -> Response:
    """Show a game; ``events`` is the address of its stream.

    With ``follows`` the page goes on to the next game of its competition.
    """
    site = site_of(request)
    board = await site.live_boards.get(game)
    data = board.page((visible(names.shown(game.first)), visible(names.shown(game.second))))
    return render(
        request,
        "live.html",
        active="competitions",
        title=(await titles_for(request, [competition]))[competition.slug],
        competition=competition,
        game=game,
        players=data["players"],
        sentence=_sentence(game, names),
        remark=board.remark,
        replay=live_html(data) if data["board"] else "",
        clocks=_clocks(game, site.now().timestamp()),
        events=events,
        page=_game_path(competition, names.key(game.key)),
        follows=follows,
    )


async def embedded_board(request: Request) -> Response:
    """Show the game of a competition that is being played now, or its last one."""
    competition = await competition_of(request)
    names = await names_for(request, competition)
    hub = site_of(request).service.live
    now = next((game for game in hub.playing() if game.competition == competition.slug), None)
    if now is None:
        ended = (one for one in reversed(hub.games()) if one.competition == competition.slug and one.kept)
        now = next(ended, None) or await _last_game(request, competition)
    if now is None:
        return render(
            request,
            "no_game.html",
            title=(await titles_for(request, [competition]))[competition.slug],
            competition=competition,
        )
    return await _board_page(request, competition, names, now, _embedded_events(names, now), follows=True)


async def embedded_game(request: Request) -> Response:
    """Show one game, live or over."""
    competition, names, game = await _live_game_in_path(request)
    if game is None:
        shown = await view_of(request, competition)
        game = await _ended_game(request, competition, shown.key_at(request.path_params["key"]))
    return await _board_page(request, competition, names, game, _embedded_events(names, game))


def _embedded_events(names: Names, game: LiveGame) -> str:
    return f"/embed/{game.competition}/{quote(names.key(game.key), safe='')}/events"


async def _last_game(request: Request, competition: Competition) -> LiveGame | None:
    """Return the last game that was played in a competition; None if there is none."""
    tournaments = site_of(request).service.tournaments
    kept = {game.key for game in (await tournaments.summary(competition.id)).kept}
    stored = await tournaments.read(competition.id, Store.in_order)
    last = next((key for key in reversed(stored) if key in kept), None)
    return None if last is None else await _ended_game(request, competition, last)


async def _ended_game(request: Request, competition: Competition, key: str) -> LiveGame:
    """Return a game that is over, as the live page showed it at its end.  Raises NotFound."""
    try:
        record = await site_of(request).service.tournaments.record(competition.id, key)
    except StoreError as error:
        if error.is_ours:
            raise
        raise NotFound("There is no such game in this competition.") from error
    return ended_game(competition.slug, record)


async def live_game_events(request: Request) -> Response:
    """Stream the events of a game.

    ``state`` has the ``plies`` that follow the first ``after`` plies, and the clocks.  ``over`` has the
    verdict, first as a sentence, then also with the address of the game's page, or none where there is no
    record.  ``gone`` means that the game is not live any more.  The id is the number of plies that the reader
    has then.
    """
    site = site_of(request)
    hub = site.service.live
    competition, names, game = await _live_game_in_path(request)
    known = number_in(request.headers.get("last-event-id") or request.query_params.get("after"), 0, 9)
    if game is not None and not hub.has_room(game):
        raise Unavailable("Too many watch this game.", {"Retry-After": str(FULL_RETRY_S)})

    async def produce(emit: Emit) -> None:
        if game is None:
            await emit(None, event="gone")
            return
        try:
            with hub.watch_game(competition.slug, game.key) as states:
                sent = known
                async for state in states:
                    if await _shown(request, competition.slug) is None:
                        await emit(None, event="gone")
                        return
                    plies = (await site.live_boards.get(state)).plies[sent:]
                    news = {
                        "after": sent,
                        "plies": [ply | {"time": time_text(ply["charged_us"])} for ply in plies],
                    }
                    sent += len(plies)
                    await emit(
                        news | _clocks(state, site.now().timestamp()), event="state", event_id=str(sent)
                    )
                    if state.over is not None:
                        await emit(_verdict(state, competition, names), event="over")
        except (KeyError, TooManyWatchersError):  # since the checks above
            return

    return EventStream(site.streams, viewer_of(request), produce)


async def events(request: Request) -> Response:
    """Stream the list of live games.

    ``playing`` has the listed ``games``, and the number of ``more`` games.  ``standings`` means that
    the standings of the practice ladder have changed.  The id is the number of the standings that the reader
    has then.
    """
    site = site_of(request)
    reported = request.headers.get("last-event-id") or request.query_params.get("standings")

    async def produce(emit: Emit) -> None:
        shown: dict[str, Any] | None = None
        hub = site.service.live
        seen = hub.now_playing().standings if reported is None else number_in(reported, 0, 9)
        due = trio.current_time()
        phase = random.uniform(0.0, SPREAD_S)
        with hub.watch_list() as lists:
            now = await anext(lists)
            while True:
                rows = await _rows(request, now)
                if rows != shown:
                    shown = rows
                    await emit(rows, event="playing", event_id=str(seen))
                if now.standings != seen and trio.current_time() >= due:
                    seen, due = now.standings, trio.current_time() + standings_interval_s(hub.watchers)
                    await emit(None, event="standings", event_id=str(seen))
                with trio.CancelScope(deadline=due if now.standings != seen else math.inf):
                    await anext(lists)
                    await trio.sleep(phase)
                now = hub.now_playing()

    return EventStream(site.streams, viewer_of(request), produce)


def standings_interval_s(readers: int) -> float:
    """Return the seconds between two events about new standings, with this number of readers."""
    return STANDINGS_INTERVAL_S * max(1.0, readers / FEW_READERS)


async def _rows(request: Request, now: NowPlaying) -> dict[str, Any]:
    """Return the live games that the viewer may see, in the form that the page's script takes."""
    games = []
    shown: dict[str, tuple[Names, str] | None] = {}
    for game in now.games:
        slug = game.competition
        if slug not in shown:
            shown[slug] = None
            if (competition := await _shown(request, slug)) is not None:
                names = await names_for(request, competition)
                shown[slug] = names, names.sentence(competition.title)
        if (of_competition := shown[slug]) is not None:
            games.append((game, *of_competition))
    rows = [_row(*one) for one in games[:MOST_SHOWN]]
    return {"games": rows, "more": len(games) - len(rows)}


async def _shown(request: Request, slug: str) -> Competition | None:
    """Return a competition as it is now; None if it is hidden from the viewer, or was deleted."""
    site = site_of(request)
    found = await site.read_cache.get(site.course.competitions.by_slug, slug)
    return found if found is not None and is_visible(request, found) else None


def _row(game: LiveGame, names: Names, title: str) -> Mapping[str, str]:
    return {
        "href": f"/competitions/{game.competition}/live/{quote(names.key(game.key), safe='')}",
        "title": visible(title),
        "first": visible(names.shown(game.first)),
        "second": visible(names.shown(game.second)),
    }


async def _live_game_in_path(request: Request) -> tuple[Competition, Names, LiveGame | None]:
    """Return the competition in the address, its names, and the game if it is live.  Raises NotFound."""
    competition = await competition_of(request)
    names = await names_for(request, competition)
    hub = site_of(request).service.live
    return competition, names, game_at(hub, competition.slug, request.path_params["key"], names)


def game_at(hub: Hub, slug: str, shown_key: str, names: Names) -> LiveGame | None:
    """Return the game with a displayed key, if it is live or has just ended."""
    if not names.on:
        return hub.game(slug, shown_key)
    games = (game for game in hub.games() if game.competition == slug and names.key(game.key) == shown_key)
    return next(games, None)


def _game_path(competition: Competition, shown_key: str) -> str:
    return f"/competitions/{competition.slug}/games/{quote(shown_key, safe='')}"


def _clocks(game: LiveGame, now_s: float) -> dict[str, Any]:
    """Return the clocks at the start of the turn, the player on turn, and the time since then, in ms."""
    elapsed_s = 0.0 if game.turn_at is None else max(0.0, now_s - game.turn_at.timestamp())
    return {"clocks_ms": game.clocks_ms, "on_turn": game.on_turn, "elapsed_ms": round(1000 * elapsed_s)}


def _verdict(game: LiveGame, competition: Competition, names: Names) -> dict[str, Any]:
    verdict: dict[str, Any] = {"sentence": _sentence(game, names)}
    if game.kept is not None:
        verdict["href"] = _game_path(competition, names.key(game.key)) if game.kept else None
    return verdict


def _sentence(game: LiveGame, names: Names) -> str:
    """Return the verdict with the names that this viewer may see; empty while the game goes on."""
    if game.over is not None and not names.covers(game.first, game.second):
        return "The game is over."
    return visible(names.sentence(game.over or ""))


ROUTES = (
    Route("GET", "/competitions/{slug}/live/{key}", live_game, Access.PUBLIC, "live"),
    Route("GET", "/competitions/{slug}/live/{key}/events", live_game_events, Access.PUBLIC, "live_events"),
    Route("GET", "/events", events, Access.PUBLIC, "events"),
    Route("GET", "/embed/{slug}", embedded_board, Access.PUBLIC, "embed", embedded=True),
    Route("GET", "/embed/{slug}/{key}", embedded_game, Access.PUBLIC, "embed_game", embedded=True),
    Route(
        "GET", "/embed/{slug}/{key}/events", live_game_events, Access.PUBLIC, "embed_events", embedded=True
    ),
)
