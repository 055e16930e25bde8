"""Pages in a real browser: a position of a replay is played, and the settings have tabs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.reporting.replay_pages import at_ply
from tests.support.browser import chromium, watched_page
from tests.support.courses import NOW
from tests.web.played_course import Played, open_played
from tests.web.site import RunningSite, running_site
from tests.web.test_accessibility import sign_in
from tournaments.course.challenges import Side
from tournaments.course.model import BotChoice, CompetitionKind, CompetitionState

pytestmark = [pytest.mark.browser, pytest.mark.any_database]

KEY = "p0000001-1"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    with open_played(tmp_path_factory.mktemp("course")) as played:
        played.show("named")
        played.world.course.settings.change(play_for="everybody")
        yield played


@pytest.fixture(scope="module")
def site(played: Played) -> Iterator[RunningSite]:
    with running_site(played.world) as running:
        yield running


def test_the_position_that_a_replay_shows_is_played(
    played: Played, site: RunningSite, browser: Browser
) -> None:
    record = played.service.tournaments.stores[played.practice.id].record(KEY)
    with watched_page(browser, site=site.url, reduced_motion="reduce") as page:
        page.goto(f"{site.url}/competitions/practice/games/{KEY}#ply=2")
        at_ply(page, 2)
        page.keyboard.press("ArrowRight")
        at_ply(page, 3)
        page.get_by_role("link", name="Play this position").click()
        expect(page.locator("h1")).to_have_text("Play")
        moves = " ".join(move.move for move in record.moves[:3])
        assert parse_qs(urlsplit(page.url).query) == {"game": [record.game], "from": [moves]}
        expect(page.locator("input[name=from]")).to_have_value(moves)
        expect(page.locator(".play-picture svg")).to_be_visible()
        expect(page.get_by_text("From this position of a game of")).to_be_visible()


PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "reduced_motion": "reduce"}
HIDDEN_BESIDE = """() => [...document.querySelectorAll(".wide:has(> table.lines)")]
    .filter((box) => box.scrollWidth > box.clientWidth)
    .map((box) => `${box.ariaLabel}: ${box.scrollWidth} > ${box.clientWidth}`)"""


def test_lists_are_cards_on_a_phone(played: Played, site: RunningSite, browser: Browser) -> None:
    """No state and no result is beside the screen."""
    course, student, team = played.world.course, played.world.accounts["student"], played.world.teams[0]
    course.tokens.make(student.id, "a laptop with a long name", NOW, 30)
    course.competitions.set_state(played.cup.id, CompetitionState.FINISHED, "", NOW)
    games = course.competitions.add("challenges", "Challenges", CompetitionKind.CHALLENGE, {}, None, NOW)
    own = Side(BotChoice(version_id=played.versions["Team 1 v1"].id), "Team 1 v1", team.id)
    other = Side(BotChoice(reference="ladder:1"), "ladder:1", None)
    course.challenges.add(games.id, team.id, student.id, own, other, 2, "page", NOW, course.settings.load())
    with watched_page(browser, site=site.url, **PHONE) as page:
        for role, paths in (
            ("student", ("/my", "/my/challenges", "/account", "/competitions", "/bots/1", "/faults")),
            ("lecturer", ("/teach/tournaments", "/teach/submissions", "/teach/roster", "/teach/journal")),
        ):
            page.context.clear_cookies()
            sign_in(page, site, role)
            for path in paths:
                page.goto(site.url + path)
                assert page.locator(".wide > table.lines").count(), path
                assert page.evaluate(HIDDEN_BESIDE) == [], path


SEND_TWICE = """button => {
    const isSent = [];
    const hold = (event) => { isSent.push(!event.defaultPrevented); event.preventDefault(); };
    addEventListener("submit", hold);
    button.click();
    button.click();
    removeEventListener("submit", hold);
    return isSent;
}"""
"""Clicks twice before an answer, and returns which click would have sent the form; none does here."""


def test_a_second_click_imports_a_roster_once(site: RunningSite, browser: Browser) -> None:
    """The answer to the first click has the links, which are shown once."""
    with watched_page(browser, site=site.url) as page:
        sign_in(page, site, "lecturer")
        page.goto(f"{site.url}/teach/roster/import")
        page.get_by_label("Roster as CSV").fill("login,name,team\nnew-1,New 1,\nnew-2,New 2,\n")
        page.get_by_role("button", name="Preview").click()
        button = page.get_by_role("button", name="Import it")
        assert button.evaluate(SEND_TWICE) == [True, False]
        page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow'))")  # back from the answer
        button.click()
        expect(page.get_by_text("2 students were added")).to_be_visible()
        expect(page.get_by_text("/links/")).to_have_count(2)


def test_the_same_folder_is_chosen_again_after_it_was_refused(
    site: RunningSite, browser: Browser, tmp_path: Path
) -> None:
    (tmp_path / "bot.py").write_text("print(1)\n")
    with watched_page(browser, site=site.url) as page:
        page.route(f"{site.url}/my/upload", lambda route: route.fulfill(json={"error": "It has no bot."}))
        sign_in(page, site, "student")
        page.goto(f"{site.url}/my")
        for _ in range(2):
            with page.expect_file_chooser() as opened:
                page.get_by_role("button", name="Choose a folder").click()
            # A browser reports a choice only if the input had another one before.
            assert opened.value.element.evaluate("input => input.value") == ""
            opened.value.set_files(tmp_path)
            expect(page.locator("[data-refused]")).to_have_text("It has no bot.")


def shown_sections(page: Page) -> Locator:
    """Return the titles of the sections of settings that are visible."""
    return page.locator("fieldset.card > legend:visible")


def test_the_settings_have_tabs(played: Played, site: RunningSite, browser: Browser) -> None:
    before = played.world.course.settings.load()
    with watched_page(browser, site=site.url, reduced_motion="reduce") as page:
        sign_in(page, site, "lecturer")
        page.goto(f"{site.url}/teach/settings")
        everything = shown_sections(page).all_inner_texts()
        tabs = page.get_by_role("navigation", name="Sections")
        assert tabs.get_by_role("link").all_inner_texts() == ["All", *everything]
        for title in everything:
            tabs.get_by_role("link", name=title, exact=True).click()
            expect(shown_sections(page)).to_have_text([title])
        page.goto(f"{site.url}/teach/settings#upload_mb")  # the address to which a problem links
        expect(page.get_by_label("Largest upload in MiB")).to_be_visible()
        expect(shown_sections(page)).to_have_count(1)
        section = shown_sections(page).inner_text()
        page.get_by_label("Largest upload in MiB").fill("12.5")
        tabs.get_by_role("link", name="All", exact=True).click()
        expect(shown_sections(page)).to_have_text(everything)
        tabs.get_by_role("link", name=section, exact=True).click()
        page.get_by_role("button", name="Save the settings").click()
        expect(page.locator(".note")).to_be_visible()
    # The hidden sections are sent, too.
    assert played.world.course.settings.load() == before.model_copy(update={"upload_mb": 12.5})
