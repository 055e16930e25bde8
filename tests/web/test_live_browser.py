"""Live games in a real browser: moves appear, an earlier position stays, hidden pages have no stream."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from referee.judge.results import GameRecord
from tests.reporting.replay_pages import at_ply, positions, shown
from tests.support.accessibility import DESKTOP, PHONE, page_findings
from tests.support.browser import chromium, watched_page
from tests.support.courses import NOW
from tests.support.random_games import game_of_length
from tests.web.played_course import Played, open_played
from tests.web.site import RunningSite, running_site
from tests.web.test_accessibility import sign_in
from tests.web.test_live import LIVE, SMALL, publish, start
from tournaments.course.model import CompetitionState
from tournaments.server.live_hub import Channel

pytestmark = pytest.mark.any_database

HIDE = """(hidden) => {
    Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture
def played(tmp_path: Path) -> Iterator[Played]:
    with open_played(tmp_path) as played:
        played.show("named")
        yield played


@pytest.fixture
def site(played: Played) -> Iterator[RunningSite]:
    with running_site(played.world) as running:
        yield running


def start_game(
    played: Played, site: RunningSite, game: str = SMALL, names: tuple[str, str] = ("Ada", "Bob")
) -> tuple[GameRecord, Channel]:
    """Start a game, and publish its first four moves."""
    record = game_of_length(game, 9)
    channel = site.do(start, played, record, "r001-1v2", names)
    site.do(publish, channel, record, 4)
    return record, channel


def follow(page: Page, site: RunningSite) -> None:
    """Open the page of the game, until its stream has begun."""
    with page.expect_response(lambda answer: answer.url.endswith("/events?after=4")):
        page.goto(f"{site.url}{LIVE}")
    expect(page.locator("[data-clock='1']")).to_have_text("0:08.0")


@pytest.mark.parametrize("game", [SMALL, pytest.param("kalamala+cap=40", marks=pytest.mark.browser)])
def test_moves_appear_while_they_are_played(
    played: Played, site: RunningSite, browser: Browser, game: str
) -> None:
    record, channel = start_game(played, site, game)
    with watched_page(browser, site=site.url) as page:
        follow(page, site)
        at_ply(page, 4)
        assert shown(page) == positions(record)[4]
        site.do(publish, channel, record, 6)
        at_ply(page, 6)
        expect(page.locator("#replay:not([data-moving])")).to_be_visible()
        assert shown(page) == positions(record)[6]
        assert page.locator(".replay-moves tbody tr").count() == 6
        expect(page.locator(".replay-moves tbody tr.now")).to_contain_text(record.moves[5].move)
        assert page.locator(".replay-times rect").count() == 6
        expect(page.locator(".live-badge")).to_have_text("live")
        assert "#" not in page.url
        site.do(publish, channel, record, len(record.moves), "Ada won")
        expect(page.locator(".live-verdict")).to_have_text("Ada won")
        site.do(channel.ended, record)
        expect(page.locator(".live-badge")).to_have_text("over")
        at_ply(page, len(record.moves))
        expect(page.locator("#replay:not([data-moving])")).to_be_visible()
        assert shown(page) == positions(record)[-1]
        link = page.get_by_role("link", name="The game's page")
        assert link.get_attribute("href") == "/competitions/practice/games/r001-1v2"


@pytest.mark.browser
def test_an_earlier_position_stays_while_moves_are_played(
    played: Played, site: RunningSite, browser: Browser
) -> None:
    record, channel = start_game(played, site)
    with watched_page(browser, site=site.url, reduced_motion="reduce") as page:
        follow(page, site)
        page.keyboard.press("ArrowLeft")
        at_ply(page, 3)
        site.do(publish, channel, record, 7)
        expect(page.locator(".replay-slider")).to_have_attribute("max", "7")
        at_ply(page, 3)
        assert shown(page) == positions(record)[3]
        page.keyboard.press("End")
        at_ply(page, 7)
        site.do(publish, channel, record, 8)  # at the end again, the page follows
        at_ply(page, 8)
        assert shown(page) == positions(record)[8]


@pytest.mark.browser
def test_a_hidden_page_has_no_stream(played: Played, site: RunningSite, browser: Browser) -> None:
    record, channel = start_game(played, site)
    streams = played.world.site.streams
    with watched_page(browser, site=site.url, reduced_motion="reduce") as page:
        follow(page, site)
        page.evaluate(HIDE, True)
        for _ in range(6000):
            if site.do(lambda: streams.number) == 0:
                break
            page.wait_for_timeout(10)
        assert site.do(lambda: streams.number) == 0
        site.do(publish, channel, record, 8)
        at_ply(page, 4)
        page.evaluate(HIDE, False)
        at_ply(page, 8)
        assert shown(page) == positions(record)[8]


@pytest.mark.browser
def test_axe_finds_nothing(played: Played, site: RunningSite, browser: Browser) -> None:
    record, channel = start_game(played, site, "manchester", ("Ada" * 12, "Bob" * 12))
    with watched_page(browser, site=site.url, reduced_motion="reduce") as page:
        follow(page, site)
        assert page_findings(page, "a running game") == []
        site.do(publish, channel, record, len(record.moves), "Ada won")
        site.do(channel.ended, record)
        expect(page.locator(".live-badge")).to_have_text("over")
        expect(page.get_by_role("link", name="The game's page")).to_be_visible()
        assert page_findings(page, "its end") == []


@pytest.mark.browser
def test_axe_finds_nothing_on_another_board(played: Played, site: RunningSite, browser: Browser) -> None:
    start_game(played, site, "kalamala+cap=40")
    with watched_page(browser, site=site.url, reduced_motion="reduce") as page:
        follow(page, site)
        assert page_findings(page, "Kalamala", ((PHONE, "dark"), (DESKTOP, "light"))) == []


@pytest.mark.browser
def test_the_first_page_shows_running_games_and_new_standings(
    played: Played, site: RunningSite, browser: Browser
) -> None:
    with watched_page(browser, site=site.url) as page:
        page.add_init_script("Math.random = () => 0.1")  # new standings are loaded within 1 s, not 10 s
        page.goto(site.url)
        now_playing = page.locator("[data-now-playing]")
        expect(now_playing).to_have_text("No game is being played just now.")
        names = ("Team 1 v1", "Team 2 v1")
        channel = site.do(start, played, game_of_length(SMALL, 9), "p0000009-1", names)
        link = now_playing.get_by_role("link", name="Team 1 v1 vs Team 2 v1")
        expect(link).to_have_attribute("href", "/competitions/practice/live/p0000009-1")
        site.do(channel.failed, "over")
        expect(now_playing).to_have_text("No game is being played just now.")
        page.evaluate("document.getElementById('ladder').replaceChildren()")
        site.do(played.service.live.standings_changed)
        expect(page.locator("#ladder table")).to_be_visible()


KEEP_QUESTIONS = """() => {
    window.questions = [];
    window.confirm = (question) => { window.questions.push(question); return false; };
}"""
"""Answers each question of the page with no, and keeps the questions."""


NOTE_EVENTS = """
Math.random = () => 0;  // a part of the page is replaced at once after a change
EventSource.prototype.addEventListener = function (type, listener) {
    EventTarget.prototype.addEventListener.call(this, type, (event) => {
        listener(event);
        document.documentElement.dataset.event = type;
    });
};"""
"""Gives the root element the type of the stream's latest event."""


def refresh(page: Page, played: Played, site: RunningSite) -> None:
    """Let a page with NOTE_EVENTS request its address again; it replaces its parts a moment later."""
    expect(page.locator("html[data-event=playing]")).to_be_attached()  # the stream has begun
    with page.expect_response(page.url):
        site.do(played.service.live.standings_changed)


@pytest.mark.browser
def test_delete_asks_after_the_buttons_were_replaced(
    played: Played, site: RunningSite, browser: Browser
) -> None:
    played.world.course.competitions.set_state(played.cup.id, CompetitionState.FINISHED, "", NOW)
    with watched_page(browser, site=site.url) as page:
        page.add_init_script(NOTE_EVENTS)
        sign_in(page, site, "lecturer")
        page.goto(f"{site.url}/teach/tournaments/cup")
        page.evaluate(KEEP_QUESTIONS)
        page.evaluate("document.querySelector('[data-refresh=actions]').classList.add('old')")
        refresh(page, played, site)
        expect(page.locator("[data-refresh=actions].old")).to_have_count(0)
        page.get_by_role("button", name="Delete").click()
        assert page.evaluate("questions") == ["Delete this tournament? Nobody sees it any more."]
        expect(page.get_by_role("button", name="Delete")).to_be_visible()
    assert played.service.tournaments.requests == []


@pytest.mark.browser
def test_a_table_with_the_focus_is_updated(played: Played, site: RunningSite, browser: Browser) -> None:
    with watched_page(browser, site=site.url, viewport={"width": 420, "height": 900}) as page:
        page.add_init_script(NOTE_EVENTS)
        box = page.get_by_role("region", name="Standings")
        link = page.get_by_role("region", name="Cross table").get_by_role("link", name="Team 2 v1")
        for focused in (box, link):
            page.goto(f"{site.url}/competitions/cup")
            focused.focus()
            left = box.evaluate("box => { box.scrollLeft = 40; return box.scrollLeft; }")
            assert left > 0
            page.evaluate("document.querySelector('#standings tbody').replaceChildren()")
            refresh(page, played, site)
            expect(box.locator("tbody tr")).to_have_count(3)
            expect(focused).to_be_focused()
            assert box.evaluate("box => box.scrollLeft") == left


@pytest.mark.browser
def test_columns_are_marked_in_a_cross_table_that_was_updated(
    played: Played, site: RunningSite, browser: Browser
) -> None:
    with watched_page(browser, site=site.url) as page:
        page.add_init_script(NOTE_EVENTS)
        page.goto(f"{site.url}/competitions/cup")
        cross = page.get_by_role("region", name="Cross table")
        page.evaluate("document.querySelector('.cross tbody').replaceChildren()")
        refresh(page, played, site)
        cells = cross.locator("tbody tr").first.locator("td")
        for number in (2, 3):
            cells.nth(number).hover()
            head = cross.locator("thead").locator("th, td").nth(number + 1)
            expect(cross.locator("thead .column")).to_have_count(1)
            expect(head).to_have_class(re.compile(r"\bcolumn\b"))


@pytest.mark.browser
def test_what_a_reader_has_opened_stays_open(played: Played, site: RunningSite, browser: Browser) -> None:
    with watched_page(browser, site=site.url) as page:
        page.add_init_script(NOTE_EVENTS)
        page.goto(f"{site.url}/competitions/cup")
        numbers = page.get_by_text("In numbers", exact=True)
        is_open = "summary => summary.parentElement.open"
        was_open = numbers.evaluate(is_open)
        numbers.click()
        page.evaluate("document.querySelector('#standings tbody').replaceChildren()")
        refresh(page, played, site)
        expect(page.get_by_role("region", name="Standings").locator("tbody tr")).to_have_count(3)
        assert numbers.evaluate(is_open) is not was_open


@pytest.mark.browser
def test_a_button_that_is_being_pressed_stays_until_its_click(
    played: Played, site: RunningSite, browser: Browser
) -> None:
    with watched_page(browser, site=site.url) as page:
        page.add_init_script(NOTE_EVENTS)
        sign_in(page, site, "lecturer")
        page.goto(f"{site.url}/teach/tournaments/cup")
        page.get_by_role("button", name="Pause").hover()
        page.mouse.down()
        page.evaluate(
            "for (const part of document.querySelectorAll('[data-refresh]')) part.classList.add('old')"
        )
        refresh(page, played, site)
        expect(page.locator("[data-refresh].old")).to_have_count(1)
        with page.expect_response(f"{site.url}/teach/tournaments/cup/pause"):
            page.mouse.up()
    assert played.service.tournaments.requests == [("pause", played.cup.id)]
