"""Games that go on, as people see them: pages, streams, and a real browser that follows."""

import json
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import trio
import trio.testing
from playwright.sync_api import Browser, Page, expect

from referee.judge.clock import TimeControl
from referee.judge.results import GameRecord
from referee.live_feed import Move, Snapshot
from referee.play import Job
from tests.browser import chromium, overflow, watched_page
from tests.builders import make_player
from tests.databases import database_of
from tests.random_games import game_of_length, random_game
from tests.replaying import at_ply, positions, shown
from tests.site_thread import RunningSite, running_site
from tests.web_played import open_played
from tests.web_site import NOW, World, open_world
from tournaments.course.model import CompetitionKind
from tournaments.server import live_hub
from tournaments.server.live_hub import Channel, Hub
from tournaments.web.http import sse
from tournaments.web.pages import live_pages
from tournaments.web.views.names import Names

LIMIT_S = 30
HOSTILE = "</script><b>&\"'"
"""As a bot's name."""


@dataclass
class Stand:
    """A site, and the hub that it shows."""

    world: World
    hub: Hub

    def start(
        self, record: GameRecord, key: str = "r001-1v2", names: tuple[str, str] = ("Ada", "Bob")
    ) -> Channel:
        players = (make_player(names[0]), make_player(names[1]))
        job = Job(key, record.game, players, TimeControl(game_s=60), opening=record.opening)
        return self.hub.started("practice", job)


@pytest.fixture
def stand(tmp_path: Path) -> Iterator[Stand]:
    hub = Hub(lambda: NOW)
    with open_world(database_of(tmp_path).course(), tmp_path, SimpleNamespace(live=hub)) as world:
        settings = world.course.settings.load()
        world.course.settings.save(settings.model_copy(update={"standings_for": "named"}))
        world.course.competitions.add("practice", "Practice", CompetitionKind.PRACTICE, {}, None, NOW)
        yield Stand(world, hub)


def tell(channel: Channel, record: GameRecord, until: int, over: str | None = None) -> None:
    """The game goes on to this move."""
    told = len(channel.game.moves)
    moves = tuple(Move(move.move, 1500) for move in record.moves[told:until])
    channel.snapshot(Snapshot(told, moves, (59_000, 8_000), 0 if over is None else None, over))


class Stream:
    """A reader of a stream that is asked for by hand."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str, Any]] = []
        """Kind, id, data."""
        self.status = 0
        self.gone = trio.Event()
        self.ended = trio.Event()
        self._news = trio.Event()
        self._left = ""
        self._asked = False

    async def receive(self) -> dict[str, Any]:
        if not self._asked:
            self._asked = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        self.status = message.get("status", self.status)
        self._left += message.get("body", b"").decode()
        *whole, self._left = self._left.split("\n\n")
        for text in whole:
            fields = dict(line.split(": ", 1) for line in text.split("\n") if ": " in line)
            if "data" in fields:
                found = fields.get("event", ""), fields.get("id", ""), json.loads(fields["data"])
                self.events.append(found)
        if message.get("more_body") is False:
            self.ended.set()
        self._news.set()
        await trio.lowlevel.checkpoint()

    async def until(self, number: int) -> list[tuple[str, str, Any]]:
        """The events, as soon as there are so many."""
        with trio.fail_after(LIMIT_S):
            while len(self.events) < number:
                self._news = trio.Event()
                await self._news.wait()
            await trio.lowlevel.checkpoint()
        return self.events


def scope_of(path: str, headers: dict[str, str]) -> dict[str, Any]:
    """A request as ASGI has it."""
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
async def streaming(stand: Stand, path: str, **headers: str) -> AsyncIterator[Stream]:
    stream = Stream()
    more = {name.replace("_", "-"): value for name, value in headers.items()}
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stand.world.app, scope_of(path, more), stream.receive, stream.send)
        yield stream
        stream.gone.set()
    assert stand.world.site.streams.number == 0
    assert stand.hub.watchers == 0


# Who may no longer see a stream.


def hide_from_visitors(world: World) -> None:
    settings = world.course.settings.load()
    world.course.settings.save(settings.model_copy(update={"standings_for": "nobody"}))


def hide_names(world: World) -> None:
    settings = world.course.settings.load()
    world.course.settings.save(settings.model_copy(update={"students_see_names": False}))


def disable(world: World) -> None:
    world.course.accounts.set_disabled(world.accounts["student"].id, True)


def end_session(world: World) -> None:
    world.course.sessions.end_all(world.accounts["student"].id)


@pytest.mark.parametrize(
    ("role", "change"),
    [
        ("visitor", hide_from_visitors),
        ("student", disable),
        ("student", end_session),
        ("student", hide_names),
    ],
)
@pytest.mark.parametrize("path", ["/events", "/competitions/practice/live/r001-1v2/events"])
async def test_a_stream_does_not_outlive_the_permission(
    stand: Stand, monkeypatch: pytest.MonkeyPatch, role: str, change: Callable[[World], None], path: str
) -> None:
    monkeypatch.setattr(sse, "RECHECK_S", 0.05)
    stand.start(random_game("manchester(3,3)", 1))
    async with stand.world.browser(role) as browser:
        cookie = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
    async with streaming(stand, path, cookie=cookie) as stream:
        await stream.until(1)
        with trio.move_on_after(0.3):  # some looks that find nothing changed
            await stream.ended.wait()
        assert not stream.ended.is_set()
        change(stand.world)
        with trio.fail_after(LIMIT_S):
            await stream.ended.wait()


# The page.


async def test_a_page_shows_how_the_game_stands(stand: Stand) -> None:
    record = game_of_length("manchester(3,3)", 6)
    channel = stand.start(record, names=("Ada", HOSTILE))
    tell(channel, record, 4)
    async with stand.world.browser() as browser:
        page = await browser.get("/competitions/practice/live/r001-1v2")
    assert page.status_code == 200
    assert HOSTILE not in page.text
    assert 'data-live-events="/competitions/practice/live/r001-1v2/events"' in page.text
    embedded = re.search(r'id="replay-data">(.*?)</script>', page.text, re.DOTALL)
    assert embedded is not None
    data = json.loads(embedded[1])
    assert [ply["move"] for ply in data["plies"]] == [move.move for move in record.moves[:4]]
    assert data["players"] == ["Ada", HOSTILE]
    assert data["live"] is True
    assert len(re.findall("<tr><td>", page.text)) == 4


async def test_a_game_that_is_not_being_played_leads_to_its_own_page(stand: Stand) -> None:
    async with stand.world.browser() as browser:
        answer = await browser.get("/competitions/practice/live/r9 <")
        assert answer.status_code == 303
        assert answer.headers["location"] == "/competitions/practice/games/r9%20%3C"
        assert (await browser.get("/competitions/none/live/r9")).status_code == 404
        assert (await browser.get("/competitions/none/live/r9/events")).status_code == 404


async def test_a_game_that_has_just_ended_says_so(stand: Stand) -> None:
    record = random_game("manchester(3,3)")
    stand.start(record).ended(record)
    async with stand.world.browser() as browser:
        page = (await browser.get("/competitions/practice/live/r001-1v2")).text
    assert 'data-live-events=""' in page
    assert 'href="/competitions/practice/games/r001-1v2"' in page
    assert record.result.detail.split(",")[0] in page


# The stream of a game.


async def test_a_stream_tells_what_the_reader_lacks_then_what_happens_until_the_end(stand: Stand) -> None:
    record = game_of_length("manchester(3,3)", 8)
    channel = stand.start(record)
    tell(channel, record, 4)
    async with streaming(stand, "/competitions/practice/live/r001-1v2/events?after=3") as stream:
        kind, number, state = (await stream.until(1))[0]
        assert (kind, number, state["after"]) == ("state", "4", 3)
        assert [ply["move"] for ply in state["plies"]] == [record.moves[3].move]
        assert state["plies"][0]["time"] == "1.50 ms"
        assert (state["clocks_ms"], state["on_turn"], state["elapsed_ms"]) == ([59_000, 8_000], 0, 0)
        tell(channel, record, 6)
        kind, number, state = (await stream.until(2))[1]
        assert (number, state["after"], len(state["plies"])) == ("6", 4, 2)
        tell(channel, record, len(record.moves), over="Ada won")
        *_, (kind, _, verdict) = await stream.until(4)
        assert (kind, verdict) == ("over", {"sentence": "Ada won"})
        channel.ended(record)
        *_, (kind, _, verdict) = await stream.until(6)
        assert kind == "over"
        assert verdict == {
            "sentence": record.result.detail,
            "href": "/competitions/practice/games/r001-1v2",
        }
        told = [ply["move"] for kind, _, state in stream.events if kind == "state" for ply in state["plies"]]
    assert told == [move.move for move in record.moves[3:]]


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
async def test_a_stream_goes_on_where_the_reader_is(
    stand: Stand, query: str, headers: dict[str, str], after: int
) -> None:
    record = game_of_length("manchester(3,3)", 8)
    tell(stand.start(record), record, 5)
    path = f"/competitions/practice/live/r001-1v2/events{query}"
    async with streaming(stand, path, **headers) as stream:
        ((_, _, state),) = await stream.until(1)
    assert state["after"] == after
    assert len(state["plies"]) == max(0, 5 - after)


async def test_a_game_that_failed_has_no_page(stand: Stand) -> None:
    channel = stand.start(random_game("manchester(3,3)"))
    channel.failed("The game was given up.")
    async with streaming(stand, "/competitions/practice/live/r001-1v2/events") as stream:
        *_, over = await stream.until(2)
    assert over == ("over", "", {"sentence": "The game was given up.", "href": None})


async def test_the_stream_of_a_game_that_is_forgotten_says_so(stand: Stand) -> None:
    async with streaming(stand, "/competitions/practice/live/r001-1v2/events") as stream:
        assert await stream.until(1) == [("gone", "", None)]


async def test_too_many_watchers_of_a_game_are_told_to_come_later(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_hub, "MOST_OF_GAME", 1)
    stand.start(random_game("manchester(3,3)"))
    path = "/competitions/practice/live/r001-1v2/events"
    async with streaming(stand, path) as stream, stand.world.browser() as browser:
        await stream.until(1)
        answer = await browser.get(path)
    assert answer.status_code == 503
    assert int(answer.headers["retry-after"]) > 0


async def test_a_hundred_watchers_of_a_fast_game(stand: Stand) -> None:
    """All see every move."""
    record = game_of_length("manchester", 60)
    channel = stand.start(record)
    streams = [Stream() for _ in range(100)]
    path = "/competitions/practice/live/r001-1v2/events"
    with trio.fail_after(LIMIT_S):
        async with trio.open_nursery() as nursery:
            for stream in streams:
                nursery.start_soon(stand.world.app, scope_of(path, {}), stream.receive, stream.send)
            for number in range(len(record.moves)):
                tell(channel, record, number + 1)
                await trio.sleep(0.005)
            channel.ended(record)
        await trio.lowlevel.checkpoint()
    for stream in streams:
        told = [ply["move"] for kind, _, state in stream.events if kind == "state" for ply in state["plies"]]
        assert told == [move.move for move in record.moves]
        assert stream.events[-1][0] == "over"
    assert stand.world.site.streams.number == stand.hub.watchers == 0


# The stream of what plays now.


async def test_what_plays_now(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_hub, "LIST_INTERVAL_S", 0.0)
    monkeypatch.setattr(live_pages, "STANDINGS_INTERVAL_S", 0.1)
    async with streaming(stand, "/events") as stream:
        ((kind, number, playing),) = await stream.until(1)
        assert (kind, number, playing) == ("playing", "0", {"games": [], "more": 0})
        channel = stand.start(random_game("manchester(3,3)"))
        *_, (_, _, playing) = await stream.until(2)
        href = "/competitions/practice/live/r001-1v2"
        assert playing["games"] == [{"href": href, "title": "Practice", "first": "Ada", "second": "Bob"}]
        stand.hub.standings_changed()
        assert (await stream.until(3))[-1] == ("standings", "1", None)
        stand.hub.standings_changed()
        stand.hub.standings_changed()  # both within the interval: told once, and not forgotten
        assert (await stream.until(4))[-1] == ("standings", "3", None)
        channel.failed("over")
        *_, (_, number, playing) = await stream.until(5)
        assert (number, playing["games"]) == ("3", [])


@pytest.mark.parametrize(("readers", "seconds"), [(0, 10.0), (100, 10.0), (200, 20.0), (1_000, 100.0)])
def test_many_readers_are_told_of_standings_less_often(readers: int, seconds: float) -> None:
    assert live_pages.standings_interval_s(readers) == pytest.approx(seconds)


async def test_a_reader_with_old_standings_is_told(stand: Stand) -> None:
    stand.hub.standings_changed()
    async with streaming(stand, "/events?standings=0") as stream:
        assert [kind for kind, _, _ in await stream.until(2)] == ["playing", "standings"]
    async with streaming(stand, "/events") as stream:
        assert [kind for kind, _, _ in await stream.until(1)] == ["playing"]
        await trio.testing.wait_all_tasks_blocked(0.05)
        assert len(stream.events) == 1


async def test_only_so_many_games_are_listed(stand: Stand) -> None:
    for number in range(live_pages.MOST_SHOWN + 3):
        stand.start(random_game("manchester(3,3)"), key=f"g{number}")
    async with streaming(stand, "/events") as stream:
        ((_, _, playing),) = await stream.until(1)
    assert (len(playing["games"]), playing["more"]) == (live_pages.MOST_SHOWN, 3)


async def test_streams_end_with_the_site(stand: Stand) -> None:
    async with streaming(stand, "/events") as stream:
        await stream.until(1)
        stand.world.site.closing.set()
        with trio.fail_after(LIMIT_S):
            await stream.ended.wait()


# Names that are hidden.


async def test_visitors_see_pseudonyms_everywhere(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    names = Names.hidden({"Ada": "Jade Wren", "Bob": "Onyx Kite"}, (), ("Ada", "Bob"))

    async def hidden(_request: object, _competition: object) -> Names:
        await trio.lowlevel.checkpoint()
        return names

    async def titles(_request: object, competitions: Any) -> dict[str, str]:
        await trio.lowlevel.checkpoint()
        return {one.slug: names.sentence(one.title) for one in competitions}

    monkeypatch.setattr(live_pages, "names_for", hidden)
    monkeypatch.setattr(live_pages, "titles_for", titles)
    record = random_game("manchester(3,3)")
    channel = stand.start(record)
    tell(channel, record, 5, over="Ada won: Bob gave up")
    key = names.key("r001-1v2")
    async with stand.world.browser() as browser:
        page = (await browser.get(f"/competitions/practice/live/{key}")).text
    channel.failed("Bob could not be started")
    texts = [page]
    for path in (f"/competitions/practice/live/{key}/events", "/events"):
        async with streaming(stand, path) as stream:
            await stream.until(1)
            await trio.testing.wait_all_tasks_blocked(0.05)
            texts.append(json.dumps(stream.events))
    assert "Jade Wren won: Onyx Kite gave up" in page
    assert "Onyx Kite could not be started" in texts[1]
    for text in texts:
        assert "Ada" not in text
        assert "Bob" not in text


# In a browser.


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture
def site(stand: Stand) -> Iterator[RunningSite]:
    with running_site(stand.world) as running:
        yield running


def follow(page: Page, site: RunningSite) -> None:
    """Open the page of the game, until its stream has begun."""
    with page.expect_request(lambda request: request.url.endswith("/events?after=4")):
        page.goto(f"{site.url}/competitions/practice/live/r001-1v2")
    expect(page.locator("[data-clock='1']")).to_have_text("0:08.0")


@pytest.mark.parametrize("game", ["manchester(3,3)", "kalamala+cap=40"])
def test_moves_appear_while_they_are_played(
    stand: Stand, site: RunningSite, browser: Browser, game: str
) -> None:
    record = game_of_length(game, 9)
    channel = site.do(stand.start, record)
    site.do(tell, channel, record, 4)
    with watched_page(browser, site=site.url) as page:
        follow(page, site)
        at_ply(page, 4)
        assert shown(page) == positions(record)[4]
        site.do(tell, channel, record, 6)
        at_ply(page, 6)
        expect(page.locator("#replay:not([data-moving])")).to_be_visible()
        assert shown(page) == positions(record)[6]
        assert page.locator(".replay-moves tbody tr").count() == 6
        expect(page.locator(".replay-moves tbody tr.now")).to_contain_text(record.moves[5].move)
        assert page.locator(".replay-times rect").count() == 6
        expect(page.locator(".live-badge")).to_have_text("live")
        assert "#" not in page.url
        site.do(tell, channel, record, len(record.moves), "Ada won")
        expect(page.locator(".live-verdict")).to_have_text("Ada won")
        site.do(channel.ended, record)
        expect(page.locator(".live-badge")).to_have_text("over")
        at_ply(page, len(record.moves))
        expect(page.locator("#replay:not([data-moving])")).to_be_visible()
        assert shown(page) == positions(record)[-1]
        link = page.get_by_role("link", name="The game's page")
        assert link.get_attribute("href") == "/competitions/practice/games/r001-1v2"


def test_who_looks_at_an_earlier_position_is_left_there(
    stand: Stand, site: RunningSite, browser: Browser
) -> None:
    record = game_of_length("manchester(3,3)", 9)
    channel = site.do(stand.start, record)
    site.do(tell, channel, record, 4)
    with watched_page(browser, site=site.url, reduced_motion="reduce") as page:
        follow(page, site)
        page.keyboard.press("ArrowLeft")
        at_ply(page, 3)
        site.do(tell, channel, record, 7)
        expect(page.locator(".replay-slider")).to_have_attribute("max", "7")
        at_ply(page, 3)
        assert shown(page) == positions(record)[3]
        page.keyboard.press("End")
        at_ply(page, 7)
        site.do(tell, channel, record, 8)  # at the end again, it goes on
        at_ply(page, 8)
        assert shown(page) == positions(record)[8]


def test_a_page_that_nobody_sees_has_no_stream(stand: Stand, site: RunningSite, browser: Browser) -> None:
    record = game_of_length("manchester(3,3)", 9)
    channel = site.do(stand.start, record)
    site.do(tell, channel, record, 4)
    hide = """(hidden) => {
        Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
        document.dispatchEvent(new Event("visibilitychange"));
    }"""
    with watched_page(browser, site=site.url, reduced_motion="reduce") as page:
        follow(page, site)
        page.evaluate(hide, True)
        streams = stand.world.site.streams
        page.wait_for_function("() => true")
        wait_until(page, lambda: site.do(lambda: streams.number) == 0)
        site.do(tell, channel, record, 8)
        at_ply(page, 4)
        page.evaluate(hide, False)
        at_ply(page, 8)
        assert shown(page) == positions(record)[8]


def test_a_narrow_window_needs_no_scrolling_sideways(
    stand: Stand, site: RunningSite, browser: Browser
) -> None:
    record = game_of_length("manchester", 9)
    site.do(tell, site.do(stand.start, record, "r001-1v2", ("Ada" * 12, "Bob" * 12)), record, 4)
    with watched_page(browser, site=site.url, viewport={"width": 360, "height": 740}) as page:
        follow(page, site)
        assert overflow(page) == 0


def test_the_first_page_shows_what_plays_and_new_standings(tmp_path: Path, browser: Browser) -> None:
    with open_played(tmp_path) as played, running_site(played.world) as site:
        played.world.course.settings.change(standings_for="named")
        hub = played.service.live
        players = (make_player("Team 1 v1"), make_player("Team 2 v1"))
        job = Job("p0000009-1", "kalah(4,3)", players, TimeControl(move_s=1))
        with watched_page(browser, site=site.url) as page:
            page.goto(site.url)
            now_playing = page.locator("[data-now-playing]")
            expect(now_playing).to_have_text("No game is being played just now.")
            channel = site.do(hub.started, "practice", job)
            link = now_playing.get_by_role("link", name="Team 1 v1 vs Team 2 v1")
            expect(link).to_have_attribute("href", "/competitions/practice/live/p0000009-1")
            site.do(channel.failed, "over")
            expect(now_playing).to_have_text("No game is being played just now.")
            page.evaluate("document.getElementById('ladder').replaceChildren()")
            site.do(hub.standings_changed)
            expect(page.locator("#ladder table")).to_be_visible(timeout=20_000)  # within seconds, spread


def wait_until(page: Page, holds: Any) -> None:
    """Look again and again, while the browser goes on."""
    for _ in range(1000):
        if holds():
            return
        page.wait_for_timeout(10)
    raise AssertionError("it never came")
