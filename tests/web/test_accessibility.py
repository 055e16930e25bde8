"""Every page of the site passes axe-core, in both colour schemes, on a phone and on a desktop.

A public page is examined in all four combinations for visitors, and in one for each role that is signed in.
The world is one in which the tables, charts and forms of all pages have contents.
"""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.support.accessibility import ALL_LOOKS, ONE_LOOK, page_findings
from tests.support.browser import chromium, watched_page
from tests.support.courses import NOW
from tests.web.played_course import CHECK_GAME, LOST_BY_FAULT, Played, open_played
from tests.web.site import LOGINS, PASSWORD, RunningSite, running_site
from tournaments.course.mail.outbox import MailHome
from tournaments.course.model import LinkPurpose
from tournaments.server.checks.check_log import CheckLog
from tournaments.web.routes import ROUTES

pytestmark = [pytest.mark.browser, pytest.mark.any_database]

PUBLIC_PAGES = {
    "home": ["/"],
    "standings": ["/standings"],
    "competitions": ["/competitions"],
    "competition": ["/competitions/cup"],
    "games": ["/competitions/practice/games", "/competitions/practice/games?bot=nobody"],
    "game": [LOST_BY_FAULT, "/competitions/practice/games/p0000001-1", f"{LOST_BY_FAULT}#ply=3"],
    "embed": ["/embed/cup", "/embed/practice"],
    "embed_game": [f"/embed{LOST_BY_FAULT.removeprefix('/competitions').replace('/games', '')}"],
    "team": ["/bots/1"],
    "bot": ["/competitions/cup/bots/Team_1_v1"],
    "reference": ["/references/ladder:1"],
    "faults": ["/faults"],
    "help": ["/help"],
}
HELP_PAGES = {"help.page": ["/help/protocol", "/help/students"]}
STUDENT_PAGES = {
    "my": ["/my"],
    "challenges": ["/my/challenges"],
    "check_game": [CHECK_GAME],
    "version": ["/my/versions/1", "/my/versions/{failed}", "/my/versions/{queued}"],
    "account": ["/account"],
    "account.mail.link": ["/account/mail/confirm"],
}
LECTURER_PAGES = {
    "teach": ["/teach"],
    "teach.roster": ["/teach/roster"],
    "teach.roster.import": ["/teach/roster/import"],
    "teach.student": ["/teach/roster/1"],
    "teach.submissions": ["/teach/submissions"],
    "teach.settings": ["/teach/settings"],
    "teach.journal": ["/teach/journal"],
    "teach.tournaments": ["/teach/tournaments"],
    "teach.tournament.new": ["/teach/tournaments/new", "/teach/tournaments/new?format=swiss"],
    "teach.tournament": ["/teach/tournaments/cup"],
    "teach.marks": ["/teach/tournaments/cup/marks"],
    "teach.accounts": ["/teach/accounts"],
}
VISITOR_PAGES = {"sign-in": ["/sign-in"], "link": ["/links/{invitation}", "/links/{reset}"]}
"""Paths by the name of their route."""
PAGES = {
    "visitor": PUBLIC_PAGES | HELP_PAGES | VISITOR_PAGES,
    "student": PUBLIC_PAGES | STUDENT_PAGES,
    "admin": PUBLIC_PAGES | LECTURER_PAGES,
}
"""Role -> the pages for it; an admin's are a lecturer's, and one more."""
PAGES_OF_RUNNING_GAMES = {"live", "play", "play.game"}
"""Names of routes whose pages test_live_browser.py and test_play_browser.py examine."""
NO_PAGES = {
    "asset", "check_game_json", "check_game_stderr", "check_game_wire", "embed_events", "events", "feed",
    "feed.team", "game_json", "health", "live_events", "play.events", "source", "starter", "stderr",
    "teach.export", "teach.report", "teach.report.anonymous", "version_events", "wire",
}  # fmt: skip
"""Names of routes whose responses are files, streams or JSON."""
ERRORS = {
    "visitor": {"/nothing": 404, "/links/old": 404},
    "student": {"/teach": 403, "/my/versions/999": 404},
    "admin": {"/my": 403},
}
"""Role -> path -> status of an error page."""


def test_every_page_is_examined() -> None:
    routes = {route.name for route in ROUTES if route.method == "GET" and not route.api}
    examined = {name for pages in PAGES.values() for name in pages}
    assert routes - NO_PAGES - PAGES_OF_RUNNING_GAMES == examined


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    data, mail = tmp_path_factory.mktemp("course"), MailHome("home", b"key")
    with open_played(data, pairs=12, cup_rounds=3, mail=mail) as played:
        played.show("named")
        course, student = played.world.course, played.world.accounts["student"]
        course.addresses.enrol(student.id, "ada@example.org")
        course.addresses.begin(student.id, "ada@new.example.org", "confirm", NOW)
        for state in (course.outbox.failed, course.outbox.sent):
            course.links.make(student.id, LinkPurpose.RESET, NOW)
            state(course.outbox.due(NOW, 1)[0].id, "550 5.1.1 no such user", NOW)
        course.links.make(student.id, LinkPurpose.RESET, NOW)
        yield played


@pytest.fixture(scope="module")
def site(played: Played) -> Iterator[RunningSite]:
    with running_site(played.world) as running:
        yield running


def sign_in(page: Page, site: RunningSite, role: str) -> None:
    page.goto(f"{site.url}/sign-in")
    page.get_by_label("Login").fill(LOGINS[role])
    page.get_by_label("Password").fill(PASSWORD)
    page.locator("main").get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{site.url}/")


@pytest.mark.parametrize("role", PAGES)
@pytest.mark.long
def test_axe_finds_nothing(played: Played, site: RunningSite, browser: Browser, role: str) -> None:
    failed = played.fail(played.add_version(f"{role:e<64}"))
    queued = played.add_version(f"{role:f<64}")
    played.service.logs[queued.id] = CheckLog(["waiting"])  # goes on
    links, accounts = played.world.course.links, played.world.accounts
    values = {
        "failed": failed.id,
        "queued": queued.id,
        "invitation": links.make(accounts["other"].id, LinkPurpose.INVITATION, NOW),
        "reset": links.make(accounts["lecturer"].id, LinkPurpose.RESET, NOW),
    }
    troubles: list[str] = []
    with watched_page(browser, site=site.url, reduced_motion="reduce") as page:
        if role != "visitor":
            sign_in(page, site, role)
        for name, paths in PAGES[role].items():
            looks = ONE_LOOK[role] if role != "visitor" and name in PUBLIC_PAGES else ALL_LOOKS
            for path in paths:
                page.goto(site.url + path.format_map(values))
                troubles += page_findings(page, f"{role}, {path}", looks)
    assert troubles == []


@pytest.mark.parametrize("kind", ["groups", "knockout"])
def test_axe_finds_nothing_on_groups_and_brackets(
    played: Played, site: RunningSite, browser: Browser, kind: str
) -> None:
    bots = [f"ladder:{level}" for level in range(1, 9)]
    with played.tournament(kind, kind, bots), watched_page(browser, site=site.url) as page:
        page.goto(f"{site.url}/competitions/{kind}")
        assert page.locator("#bracket .chart").count() == 1
        assert page.locator("#groups table").count() == (2 if kind == "groups" else 0)
        assert page_findings(page, kind) == []


@pytest.mark.parametrize("role", ERRORS)
def test_axe_finds_nothing_on_error_pages(site: RunningSite, browser: Browser, role: str) -> None:
    troubles: list[str] = []
    with browser.new_context(reduced_motion="reduce") as context:  # an error page is an error of the console
        page = context.new_page()
        if role != "visitor":
            sign_in(page, site, role)
        for path, status in ERRORS[role].items():
            answer = page.goto(site.url + path)
            assert answer is not None
            assert answer.status == status, path
            troubles += page_findings(page, f"{role}, {path}")
    assert troubles == []
