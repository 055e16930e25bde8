"""The report in a real browser, opened from the file system."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.reporting.reports import made, records_of, some, summary_of, write_store
from tests.support.browser import overflow, watched_page
from tournaments.reporting.site.pages import Pages
from tournaments.reporting.site.site import ASSETS
from tournaments.reporting.site.view import View
from tournaments.results.game_summary import GameSummary
from tournaments.results.journal import Action, Entry
from tournaments.schedule.plan import Plan

NAMES = ("<img src=x onerror=alert(1)>", "bob", "w" * 200, "dora")
PHONE = {"width": 360, "height": 640}
pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    void = Entry(Action.VOID, "r001-1v2", "the host slept", 1, "2026-02-03T04:05:06+00:00")
    folder = tmp_path_factory.mktemp("report") / "cup"
    return made(write_store(folder, NAMES, some, journal=[void], rounds=2))


def kinds(site: Path) -> list[Path]:
    """A page of each kind, with the longest name."""
    return [site / "index.html", site / "games.html", max(site.glob("bots/*")), min(site.glob("games/*"))]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_fit_a_phone(browser: Browser, site: Path, scheme: str) -> None:
    with watched_page(browser, color_scheme=scheme, viewport=PHONE) as page:
        for path in kinds(site):
            page.goto(path.as_uri())
            assert page.locator("h1").count() == 1
            assert overflow(page) <= 0, path
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, ground[4:-1].split(","))) < 200) == (scheme == "dark")


def test_it_can_be_printed(browser: Browser, site: Path) -> None:
    with watched_page(browser) as page:
        page.emulate_media(media="print")
        for path in kinds(site):
            page.goto(path.as_uri())
            assert not page.locator(".site").is_visible()
            assert page.locator("main").is_visible()
        page.goto((site / "index.html").as_uri())
        assert page.pdf(format="A4").startswith(b"%PDF")
        adjust = "getComputedStyle(document.querySelector('.cross td[class^=h]')).printColorAdjust"
        assert page.evaluate(adjust) == "exact"


@pytest.mark.parametrize("count", [2, 4, 16])
def test_the_names_of_a_bracket_are_as_large_as_other_text(browser: Browser, count: int) -> None:
    """However many rounds there are; on a phone a large one is pushed sideways."""
    plan = Plan(width=2, format={"kind": "knockout"})
    index = Pages(View(replace(summary_of([f"Bot {n}" for n in range(count)]), plan=plan))).index()
    style = (ASSETS / "report.css").read_text(encoding="utf-8")
    with watched_page(browser, viewport=PHONE) as page:
        page.set_content(re.sub("<(link|script)[^>]*>", "", index) + f"<style>{style}</style>")
        heights = page.locator("#bracket text.name").evaluate_all(
            "(names) => names.map((name) => name.getBoundingClientRect().height)"
        )
        assert len(heights) == count
        assert 12 <= min(heights) <= max(heights) <= 20
        assert overflow(page) <= 0


def shown(page: Page) -> list[list[str]]:
    """The games that a filter leaves."""
    rows = page.locator("#games tbody tr:visible")
    return [row.locator("td").all_inner_texts() for row in rows.all()]


def test_the_filter(browser: Browser, site: Path) -> None:
    with watched_page(browser) as page:
        page.goto((site / "games.html").as_uri())
        everything = shown(page)
        assert len(everything) == 24

        page.locator("[name=bot]").select_option(label="bob")
        assert shown(page) == [row for row in everything if "bob" in row]
        page.locator("[name=result]").select_option(label="second won")
        expected = [row for row in everything if "bob" in row and row[3] == "0–1"]  # noqa: RUF001
        assert shown(page) == expected
        assert page.locator("output").inner_text() == f"{len(expected)} of 24 games"

        page.locator("[name=bot]").select_option("")
        page.locator("[name=result]").select_option("")
        page.locator("[name=end]").select_option(label="any fault")
        assert shown(page) == [row for row in everything if row[6] in ("crlf", "timeout")]
        page.locator("[name=end]").select_option(label="crlf")
        assert shown(page) == [row for row in everything if row[6] == "crlf"]
        page.locator("[name=end]").select_option("")
        page.locator("[name=result]").select_option(label="set aside")
        assert [row[0] for row in shown(page)] == ["r001-1v2"]
    with watched_page(browser, java_script_enabled=False) as page:
        page.goto((site / "games.html").as_uri())
        assert len(shown(page)) == 24
        assert not page.locator("#filter").is_visible()


def test_the_filter_of_one_game_is_not_plural(browser: Browser) -> None:
    summary = summary_of(NAMES)
    summary.kept = [GameSummary.of(record, number) for number, record in records_of(summary)[:1]]
    script = (ASSETS / "report.js").read_text(encoding="utf-8")
    with watched_page(browser) as page:
        games = re.sub("<(link|script)[^>]*>", "", Pages(View(summary)).games())
        page.set_content(f"{games}<script>{script}</script>")
        expect(page.locator("output")).to_have_text("1 game")
        page.locator("[name=result]").select_option(label="set aside")
        expect(page.locator("output")).to_have_text("0 of 1 game")


def test_from_the_cross_table_to_a_game_and_on(browser: Browser, site: Path) -> None:
    with watched_page(browser) as page:
        page.goto((site / "index.html").as_uri())
        cell = page.locator(".cross td a").first
        cell.hover()
        assert page.locator(".cross thead .column").count() == 1
        cell.click()
        row = page.locator("tr:target")
        expect(row).to_have_count(1)
        row.locator(".chip").first.click()
        expect(page.get_by_role("link", name="next game")).to_be_visible()
        first = page.url
        page.get_by_role("link", name="next game").click()
        expect(page).not_to_have_url(first)
        page.get_by_role("link", name="previous game").click()
        expect(page).to_have_url(first)
        page.get_by_role("link", name="Cup").click()
        expect(page).to_have_url((site / "index.html").as_uri())


def test_a_ruling_stands_above_the_game(browser: Browser, site: Path) -> None:
    with watched_page(browser) as page:
        page.goto((site / "games" / "r001-1v2.html").as_uri())
        ruling = page.locator(".ruling").first
        assert "the host slept" in ruling.inner_text()
        places = [part.bounding_box() for part in (ruling, page.locator("h1"))]
        assert places[0] is not None
        assert places[1] is not None
        assert places[0]["y"] < places[1]["y"]
