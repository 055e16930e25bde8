"""Live games: their pages, their event streams, and the stream of the games that are being played."""

import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from referee.judge.clock import TimeControl
from referee.judge.results import GameRecord
from referee.live_feed import Move, Snapshot
from referee.playing import Job
from tests.support.builders import make_player
from tests.support.courses import NOW, use_link
from tests.support.random_games import game_of_length, random_game
from tests.support.tiers import slow
from tests.web.played_course import Played, open_played
from tests.web.site import World
from tournaments.course.model import LinkPurpose
from tournaments.server import live_hub
from tournaments.server.live_hub import Channel
from tournaments.web.http import sse
from tournaments.web.pages import live_pages

pytestmark = pytest.mark.any_database

LIMIT_S = 120
HOSTILE = "</script><b>&\"'"
"""A name of a bot."""
LIVE = "/competitions/practice/live/r001-1v2"
SMALL = "manchester(3,3)"


@pytest.fixture
def played(tmp_path: Path) -> Any:
    with open_played(tmp_path, pairs=0) as played:
        played.show("named")
        yield played


def start(
    played: Played,
    record: GameRecord,
    key: str = "r001-1v2",
    names: tuple[str, str] = ("Ada", "Bob"),
    competition: str = "practice",
) -> Channel:
    players = (make_player(names[0]), make_player(names[1]))
    job = Job(key, record.game, players, TimeControl(game_s=60), opening=record.opening)
    return played.service.live.started(competition, job)


def publish(channel: Channel, record: GameRecord, until: int, over: str | None = None) -> None:
    """Publish the moves of a game up to a ply, and perhaps its verdict."""
    known = len(channel.game.moves)
    moves = tuple(Move(move.move, 1500) for move in record.moves[known:until])
    channel.snapshot(Snapshot(known, moves, (59_000, 8_000), 0 if over is None else None, over))


class Stream:
    """A client of an event stream, as an ASGI server sees it."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str, Any]] = []
        """Kind, id, data."""
        self.gone = trio.Event()
        self.ended = trio.Event()
        self._received = trio.Event()
        self._rest = ""
        self._has_requested = False

    async def receive(self) -> dict[str, Any]:
        if not self._has_requested:
            self._has_requested = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        self._rest += message.get("body", b"").decode()
        *whole, self._rest = self._rest.split("\n\n")
        for text in whole:
            fields = dict(line.split(": ", 1) for line in text.split("\n") if ": " in line)
            if "data" in fields:
                event = fields.get("event", ""), fields.get("id", ""), json.loads(fields["data"])
                self.events.append(event)
        if message.get("more_body") is False:
            self.ended.set()
        self._received.set()
        await trio.lowlevel.checkpoint()

    async def until(self, number: int) -> list[tuple[str, str, Any]]:
        """Return the events as soon as there are this many."""
        with trio.fail_after(LIMIT_S):
            while len(self.events) < number:
                self._received = trio.Event()
                await self._received.wait()
            await trio.lowlevel.checkpoint()
        return self.events

    @property
    def moves(self) -> list[str]:
        return [ply["move"] for kind, _, state in self.events if kind == "state" for ply in state["plies"]]


def scope_of(path: str, headers: dict[str, str]) -> dict[str, Any]:
    """Return the ASGI scope of a request."""
    address, _, query = path.partition("?")
    return {
        "type": "http",
        "method": "GET",
        "path": address,
        "query_string": query.encode(),
        "headers": [(k.encode(), v.encode()) for k, v in ({"host": "testserver"} | headers).items()],
        "client": ("192.0.2.1", 1),
        "server": ("testserver", 80),
        "scheme": "http",
    }


@asynccontextmanager
async def streaming(played: Played, path: str = f"{LIVE}/events", **headers: str) -> AsyncIterator[Stream]:
    stream = Stream()
    scope = scope_of(path, {name.replace("_", "-"): value for name, value in headers.items()})
    async with trio.open_nursery() as nursery:
        nursery.start_soon(played.world.app, scope, stream.receive, stream.send)
        yield stream
        stream.gone.set()
    assert played.world.site.streams.number == 0
    assert played.service.live.watchers == 0


# Permissions.


def disable(world: World) -> None:
    world.course.accounts.set_disabled(world.accounts["student"].id, True)


def reset_password(world: World) -> None:
    link = world.course.links.make(world.accounts["student"].id, LinkPurpose.RESET, NOW)
    use_link(world.course, link, "another long password", NOW)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("role", "change"),
    [
        ("visitor", lambda world: world.course.settings.change(standings_for="nobody")),
        ("student", disable),
        ("student", reset_password),
        ("student", lambda world: world.course.settings.change(students_see_names=False)),
    ],
    ids=["hidden from visitors", "account disabled", "password reset", "names hidden"],
)
@pytest.mark.parametrize("path", ["/events", f"{LIVE}/events"])
async def test_a_stream_does_not_outlive_the_permission(
    played: Played, monkeypatch: pytest.MonkeyPatch, role: str, change: Callable[[World], None], path: str
) -> None:
    monkeypatch.setattr(sse, "RECHECK_S", 0.05)
    start(played, random_game(SMALL))
    async with played.world.browser(role) as browser:
        cookie = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
    async with streaming(played, path, cookie=cookie) as stream:
        await stream.until(1)
        with trio.move_on_after(0.15):  # some checks that find the permission unchanged
            await stream.ended.wait()
        assert not stream.ended.is_set()
        change(played.world)
        with trio.fail_after(LIMIT_S):
            await stream.ended.wait()


async def test_visitors_see_pseudonyms_everywhere(played: Played) -> None:
    played.show("anonymous")
    record = random_game(SMALL)
    channel = start(played, record, names=("Team 1 v1", "Team 2 v1"))
    publish(channel, record, 5, over="Team 1 v1 won: Team 2 v1 gave up")
    async with streaming(played, "/events") as stream:
        ((_, _, playing),) = await stream.until(1)
    path = playing["games"][0]["href"]
    names = playing["games"][0]["first"], playing["games"][0]["second"]
    page = await played.world.page("visitor", path)
    assert f"{names[0]} won: {names[1]} gave up" in page
    channel.failed("Team 2 v1 could not be started")
    async with streaming(played, f"{path}/events") as stream:
        events = json.dumps(await stream.until(2))
    assert f"{names[1]} could not be started" in events
    for text in (path, page, events, json.dumps(playing)):
        assert not re.search("Team.?[12]", text)


# The page.


async def test_a_page_shows_the_moves_so_far(played: Played) -> None:
    record = game_of_length(SMALL, 6)
    publish(start(played, record, names=("Ada", HOSTILE)), record, 4)
    page = await played.world.page("visitor", LIVE)
    assert HOSTILE not in page
    assert f'data-live-events="{LIVE}/events"' in page
    embedded = re.search(r'id="replay-data">(.*?)</script>', page, re.DOTALL)
    assert embedded is not None
    data = json.loads(embedded[1])
    assert [ply["move"] for ply in data["plies"]] == [move.move for move in record.moves[:4]]
    assert (data["players"], data["live"]) == (["Ada", HOSTILE], True)
    assert len(re.findall("<tr><td>", page)) == 4


async def test_pages_of_games_that_are_not_being_played(played: Played) -> None:
    record = random_game(SMALL)
    async with played.world.browser() as browser:
        answer = await browser.get("/competitions/practice/live/r9 <")
        assert answer.status_code == 303
        assert answer.headers["location"] == "/competitions/practice/games/r9%20%3C"
        for path in ("/competitions/none/live/r9", "/competitions/none/live/r9/events"):
            await browser.text(path, 404)
        start(played, record).ended(record)
        page = await browser.text(LIVE)
    for text in (
        'data-live-events=""',
        'href="/competitions/practice/games/r001-1v2"',
        record.result.detail.split(",")[0],
    ):
        assert text in page


# The stream of a game.


async def test_a_stream_has_the_missing_moves_then_the_new_ones_until_the_end(played: Played) -> None:
    record = game_of_length(SMALL, 8)
    channel = start(played, record)
    publish(channel, record, 4)
    async with streaming(played, f"{LIVE}/events?after=3") as stream:
        kind, number, state = (await stream.until(1))[0]
        assert (kind, number, state["after"]) == ("state", "4", 3)
        assert [ply["move"] for ply in state["plies"]] == [record.moves[3].move]
        assert state["plies"][0]["time"] == "1.50 ms"
        assert (state["clocks_ms"], state["on_turn"], state["elapsed_ms"]) == ([59_000, 8_000], 0, 0)
        publish(channel, record, 6)
        kind, number, state = (await stream.until(2))[1]
        assert (number, state["after"], len(state["plies"])) == ("6", 4, 2)
        publish(channel, record, len(record.moves), over="Ada won")
        *_, (kind, _, verdict) = await stream.until(4)
        assert (kind, verdict) == ("over", {"sentence": "Ada won"})
        channel.ended(record)
        *_, (kind, _, verdict) = await stream.until(6)
        href = "/competitions/practice/games/r001-1v2"
        assert (kind, verdict) == ("over", {"sentence": record.result.detail, "href": href})
    assert stream.moves == [move.move for move in record.moves[3:]]


async def test_streams_that_are_open_do_not_show_what_was_hidden(
    played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_hub, "LIST_INTERVAL_S", 0.0)
    record = game_of_length(SMALL, 8)
    channel = start(played, record)
    publish(channel, record, 4)
    competitions = played.world.course.competitions
    practice = competitions.by_slug("practice")
    assert practice is not None
    async with streaming(played, f"{LIVE}/events") as game, streaming(played, "/events") as games:
        await game.until(1)
        assert (await games.until(1))[0][2]["games"]
        competitions.set_hidden(practice.id, True)
        publish(channel, record, 6)
        assert (await game.until(2))[1] == ("gone", "", None)
        await game.ended.wait()
        start(played, random_game(SMALL), "r001-2v1")
        assert (await games.until(2))[1][2]["games"] == []


@pytest.mark.parametrize(
    ("query", "headers", "after"),
    [
        ("", {}, 0),
        ("?after=2", {"last_event_id": "3"}, 3),
        ("?after=-1", {}, 0),
        ("?after=1e3", {}, 0),
        ("?after=99999999999999999999", {}, 0),
        ("?after=99", {}, 99),
        ("", {"last_event_id": "\u0663"}, 0),
    ],
)
async def test_a_stream_begins_after_the_last_known_move(
    played: Played, query: str, headers: dict[str, str], after: int
) -> None:
    record = game_of_length(SMALL, 8)
    publish(start(played, record), record, 5)
    async with streaming(played, f"{LIVE}/events{query}", **headers) as stream:
        ((_, _, state),) = await stream.until(1)
    assert (state["after"], len(state["plies"])) == (after, max(0, 5 - after))


async def test_the_streams_of_failed_and_unknown_games_end(played: Played) -> None:
    async with streaming(played) as stream:
        assert await stream.until(1) == [("gone", "", None)]
    start(played, random_game(SMALL)).failed("The game was given up.")
    async with streaming(played) as stream:
        *_, over = await stream.until(2)
    assert over == ("over", "", {"sentence": "The game was given up.", "href": None})


async def test_too_many_watchers_of_a_game_are_sent_away(
    played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_hub, "MOST_OF_GAME", 1)
    start(played, random_game(SMALL))
    async with streaming(played) as stream, played.world.browser() as browser:
        await stream.until(1)
        answer = await browser.get(f"{LIVE}/events")
    assert answer.status_code == 503
    assert int(answer.headers["retry-after"]) > 0


@pytest.mark.parametrize("watchers", [10, *slow(100)])
async def test_all_watchers_of_a_fast_game_see_every_move(played: Played, watchers: int) -> None:
    record = game_of_length(SMALL, 12)
    channel = start(played, record)
    streams = [Stream() for _ in range(watchers)]
    with trio.fail_after(LIMIT_S):
        async with trio.open_nursery() as nursery:
            for stream in streams:
                scope = scope_of(f"{LIVE}/events", {})
                nursery.start_soon(played.world.app, scope, stream.receive, stream.send)
            for number in range(len(record.moves)):
                publish(channel, record, number + 1)
                await trio.sleep(0.005)
            channel.ended(record)
        await trio.lowlevel.checkpoint()
    for stream in streams:
        assert stream.moves == [move.move for move in record.moves]
        assert stream.events[-1][0] == "over"
    assert played.world.site.streams.number == played.service.live.watchers == 0


# The stream of the games that are being played.


async def test_the_stream_of_games_and_standings(played: Played, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_hub, "LIST_INTERVAL_S", 0.0)
    monkeypatch.setattr(live_pages, "STANDINGS_INTERVAL_S", 0.1)
    hub = played.service.live
    async with streaming(played, "/events") as stream:
        assert await stream.until(1) == [("playing", "0", {"games": [], "more": 0})]
        channel = start(played, random_game(SMALL))
        *_, (_, _, playing) = await stream.until(2)
        assert playing["games"] == [{"href": LIVE, "title": "Practice", "first": "Ada", "second": "Bob"}]
        hub.standings_changed()
        assert (await stream.until(3))[-1] == ("standings", "1", None)
        hub.standings_changed()
        hub.standings_changed()  # two changes within the interval are one event
        assert (await stream.until(4))[-1] == ("standings", "3", None)
        channel.failed("over")
        *_, (_, number, playing) = await stream.until(5)
        assert (number, playing["games"]) == ("3", [])
    async with streaming(played, "/events?standings=0") as stream:  # a reader with old standings
        assert [kind for kind, _, _ in await stream.until(2)] == ["playing", "standings"]
    async with streaming(played, "/events") as stream:
        await stream.until(1)
        await trio.testing.wait_all_tasks_blocked(0.05)
        assert [kind for kind, _, _ in stream.events] == ["playing"]


@pytest.mark.parametrize(("readers", "seconds"), [(0, 10.0), (100, 10.0), (200, 20.0), (1_000, 100.0)])
def test_many_readers_are_sent_standings_less_often(readers: int, seconds: float) -> None:
    assert live_pages.standings_interval_s(readers) == pytest.approx(seconds)


async def test_hidden_games_take_no_room_in_the_list(played: Played) -> None:
    played.world.course.competitions.set_hidden(played.cup.id, True)
    for number in range(live_pages.MOST_SHOWN + 3):
        start(played, random_game(SMALL), key=f"g{number}", competition="cup")
    start(played, random_game(SMALL))
    async with streaming(played, "/events") as stream:
        ((_, _, playing),) = await stream.until(1)
    assert ([game["href"] for game in playing["games"]], playing["more"]) == ([LIVE], 0)


async def test_the_list_of_games_is_bounded_and_ends_with_the_site(played: Played) -> None:
    for number in range(live_pages.MOST_SHOWN + 3):
        start(played, random_game(SMALL), key=f"g{number}")
    async with streaming(played, "/events") as stream:
        ((_, _, playing),) = await stream.until(1)
        assert (len(playing["games"]), playing["more"]) == (live_pages.MOST_SHOWN, 3)
        played.world.site.closing.set()
        with trio.fail_after(LIMIT_S):
            await stream.ended.wait()
