"""Live boards in frames of other sites: their headers, their games, and frames in a real browser."""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.reporting.replay_pages import at_ply, positions, shown
from tests.support.browser import chromium, watched_page
from tests.support.random_games import game_of_length
from tests.web.played_course import BOTS, Played, open_played, played_game
from tests.web.site import World, running_site
from tests.web.test_live import HOSTILE, LIVE, SMALL, publish, start, streaming
from tournaments.web.routes import ROUTES

pytestmark = pytest.mark.any_database

BOARD = "/embed/practice"
ORIGINS = ["https://www.example.org", "http://127.0.0.1:8080"]
OTHERS = (
    "/",
    "/standings",
    "/competitions/cup",
    "/competitions/practice/games/p0000003-1",
    "/teach/settings",
)


@pytest.fixture
def played(tmp_path: Path) -> Iterator[Played]:
    with open_played(tmp_path) as played:
        played.show("named")
        played.world.course.settings.change(embed_origins=ORIGINS)
        yield played


async def ancestors(world: World, role: str, path: str, status: int = 200) -> str:
    """Return the origins that may frame a page."""
    async with world.browser(role) as browser:
        answer = await browser.get(path)
    assert answer.status_code == status, path
    policy = answer.headers["content-security-policy"]
    return next(part for part in policy.split("; ") if part.startswith("frame-ancestors ")).partition(" ")[2]


async def test_only_boards_for_frames_may_be_framed(played: Played) -> None:
    world, allowed = played.world, " ".join(ORIGINS)
    assert {route.path for route in ROUTES if route.embedded} == {
        "/embed/{slug}", "/embed/{slug}/{key}", "/embed/{slug}/{key}/events",
    }  # fmt: skip
    for role in ("visitor", "lecturer"):
        assert await ancestors(world, role, BOARD) == allowed
        assert await ancestors(world, role, f"{BOARD}/p0000003-1") == allowed
    start(played, game_of_length(SMALL, 9))
    for path in OTHERS:
        assert await ancestors(world, "lecturer", path) == "'none'", path
    assert await ancestors(world, "visitor", "/sign-in") == "'none'"
    assert await ancestors(world, "visitor", "/nothing", 404) == "'none'"


async def test_nobody_frames_a_board_by_default(played: Played) -> None:
    played.world.course.settings.change(embed_origins=[])
    assert await ancestors(played.world, "visitor", BOARD) == "'none'"


async def test_a_board_shows_what_visitors_see_to_everybody(played: Played) -> None:
    world = played.world
    start(played, game_of_length(SMALL, 9), names=("Team 1 v1", "Team 2 v1"))
    for role in ("visitor", "student", "lecturer"):
        async with world.browser(role) as browser:
            played.show("named")
            answer = await browser.get(BOARD)
            assert "Team 1 v1" in answer.text
            assert "set-cookie" not in answer.headers
            for text in ("<form", "<nav", "<footer"):
                assert text not in answer.text
            played.show("anonymous")
            assert "Team 1" not in await browser.text(BOARD)
            played.show("nobody")
            answer = await browser.get(BOARD)
            assert answer.status_code == 403
            assert "Visitors see no games of this course" in answer.text
            assert answer.headers["content-security-policy"].count(ORIGINS[0]) == 1
    played.show("named")
    world.course.competitions.set_hidden(played.cup.id, True)
    assert "no such competition" in await world.page("lecturer", "/embed/cup", 404)


async def test_a_board_shows_the_running_game_or_the_last_one(played: Played) -> None:
    world, record = played.world, game_of_length(SMALL, 9)
    page = await world.page("visitor", BOARD)
    (last,) = (game.key for game in (await played.service.tournaments.summary(played.practice.id)).kept[-1:])
    assert 'data-live-events=""' in page
    assert f'href="/competitions/practice/games/{last}" target="_blank"' in page
    channel = start(played, record, names=("Ada", HOSTILE))
    publish(channel, record, 4)
    page = await world.page("visitor", BOARD)
    assert 'data-live-events="/embed/practice/r001-1v2/events"' in page
    assert "<b>" not in page
    start(played, record, "r002-1v2")
    channel.ended(record)
    assert "/embed/practice/r002-1v2/events" in await world.page("visitor", BOARD)
    assert 'data-live-events=""' in await world.page("visitor", f"{BOARD}/r001-1v2")
    assert 'data-live-events=""' in await world.page("visitor", f"{BOARD}/p0000003-1")
    await world.page("visitor", f"{BOARD}/made-up", 404)


async def test_the_last_game_is_the_one_that_was_stored_last(played: Played) -> None:
    """Games of a round are played at the same time, in another order than that of their keys."""
    store = played.service.tournaments.stores[played.practice.id]
    store.add(played_game("p0000000-1", *BOTS[:2], seed=1), 1)
    assert 'href="/competitions/practice/games/p0000000-1"' in await played.world.page("visitor", BOARD)


async def test_a_board_of_a_competition_without_games(tmp_path: Path) -> None:
    with open_played(tmp_path, pairs=0) as played:
        played.show("named")
        assert "No game has been played yet." in await played.world.page("visitor", BOARD)


async def test_the_stream_of_a_board(played: Played) -> None:
    record = game_of_length(SMALL, 9)
    publish(start(played, record), record, 4)
    async with streaming(played, f"{BOARD}/r001-1v2/events?after=2") as stream:
        ((kind, number, state),) = await stream.until(1)
    assert (kind, number, len(state["plies"])) == ("state", "4", 2)


async def test_a_lecturer_sees_the_line_for_a_page(played: Played) -> None:
    line = '&lt;iframe src="http://testserver/embed/cup"'
    assert line in await played.world.page("lecturer", "/teach/tournaments/cup")
    played.world.course.settings.change(embed_origins=[])
    assert line not in await played.world.page("lecturer", "/teach/tournaments/cup")


# In a real browser.


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@contextmanager
def other_site(frame: list[str]) -> Iterator[str]:
    """Serve a page with a frame of the address in ``frame``; yield its origin."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = f'<!DOCTYPE html><title>Course</title><iframe src="{frame[0]}"></iframe>'.encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_args: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.browser
def test_a_site_of_the_list_shows_the_moves_of_a_game_and_then_the_next(
    played: Played, browser: Browser
) -> None:
    record, frame = game_of_length(SMALL, 9), [""]
    with running_site(played.world) as site, other_site(frame) as origin:
        frame[0] = f"{site.url}{BOARD}"
        played.world.course.settings.change(embed_origins=[origin])
        channel = site.do(start, played, record)
        site.do(publish, channel, record, 4)
        with watched_page(browser, site="http://127.0.0.1:", reduced_motion="reduce") as page:
            with page.expect_request(lambda request: request.url.endswith("/events?after=4")):
                page.goto(f"{origin}/")
            board = page.frames[1]
            site.do(publish, channel, record, 7)
            at_ply(board, 7)
            assert shown(board) == positions(record)[7]
            expect(board.locator("nav, form, .replay-moves:visible")).to_have_count(0)
            following = site.do(start, played, record, "r002-1v2", ("Cleo", "Dan"))
            site.do(publish, following, record, 2)
            site.do(publish, channel, record, len(record.moves), "Ada won")
            site.do(channel.ended, record)
            expect(board.locator("h1")).to_contain_text("Cleo")
            at_ply(board, 2)


@pytest.mark.browser
@pytest.mark.parametrize("path", [BOARD, LIVE])
def test_browsers_refuse_a_board_on_other_sites_and_other_pages_on_all(
    played: Played, browser: Browser, path: str
) -> None:
    frame = [""]
    with running_site(played.world) as site, other_site(frame) as origin, browser.new_context() as context:
        frame[0] = f"{site.url}{path}"
        origins = ["https://www.example.org"] if path == BOARD else [origin]
        played.world.course.settings.change(embed_origins=origins)
        site.do(start, played, game_of_length(SMALL, 9))
        page = context.new_page()
        with page.expect_console_message(lambda message: "frame-ancestors" in message.text):
            page.goto(f"{origin}/")
        expect(page.frame_locator("iframe").locator(".replay-page")).to_have_count(0)
        page.frames[1].wait_for_url(re.compile("^chrome-error:"), wait_until="commit")
