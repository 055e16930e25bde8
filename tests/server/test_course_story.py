"""A course in a real browser: a student submits and climbs, a lecturer runs a tournament.

`kalarena serve --demo` is a process, and the browser must not report an error on any page.
"""

import csv
import io
import re
import shutil
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from playwright.sync_api import TimeoutError as PlaywrightTimeout

from tests.server.server_process import Served, served
from tests.support.browser import audit, chromium, focus_outline, overflow, watched_page
from tests.support.confinement import needs_sandbox
from tests.support.databases import database_of
from tournaments.course.course import Course

pytestmark = [pytest.mark.browser, pytest.mark.any_database]

PASSWORD = "a long password"
LIMIT_MS = 180_000
"""Bound for events that take seconds; on a busy machine, 60 s were not enough."""
CHOOSER_MS = 15_000
LINK_LINES = 9
"""Lines of a demo after its address: the links of the admin, three students and a lecturer."""
DEMO_BOTS = 2
DESKTOP, PHONE = {"width": 1280, "height": 800}, {"width": 360, "height": 740}
GAME = "manchester(4,3)"
"""A small board: games and checks are short."""
IDEAS = "    pits = len(own) - 1\n    # 1. "
"""Lines with which the Python starter begins to choose a pit."""
# It sows its fullest pit, and loses to first_legal and the first level of the ladder: it is sure to be last.
# It waits and computes: its games last until the browser shows them, and the longer, the busier the host is.
WEAK = """    import time
    time.sleep(0.1)
    until = time.process_time() + 0.03
    while time.process_time() < until:
        pass
    print("I give much", file=sys.stderr)
    return 1 + max((i for i in range(len(own) - 1) if own[i] > 0), key=lambda i: own[i])
"""
EMPTY_PIT = "    return 1\n"
"""Choice of a pit that may be empty."""
MARKS = """
max = 10
missing = "zero"

[[rule]]
name = "Place"
kind = "rank"
bands = [{ top = 1, marks = 10 }, { marks = 4 }]
"""


@dataclass(frozen=True)
class Story:
    """A demo course on a server, and a browser."""

    server: Served
    course: Course
    browser: Browser
    links: dict[str, str]
    """Login -> one-time link."""

    def stop_practice(self) -> None:
        """Leave the machine to the browser and to checks."""
        self.course.settings.change(practice_on=False)

    def go_on_with_practice(self) -> None:
        self.course.settings.change(practice_on=True)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """The data directory of a demo course whose bots have qualified, and the paths of its links."""
    needs_sandbox()
    data = tmp_path_factory.mktemp("demo") / "data"
    with Course(database_of(data).course()) as course:
        course.settings.change(game=GAME, references=["ladder:1"], practice_on=False)
        with served(data, "--demo", lines=LINK_LINES) as server:
            until = time.monotonic() + LIMIT_MS / 1000
            while len(course.versions.current()) < DEMO_BOTS:
                assert time.monotonic() < until
                time.sleep(0.1)
            server.assert_ends()
    return data, dict(re.findall(r"^  (\S+) +http://[^/]+(\S+)$", "\n".join(server.printed), re.MULTILINE))


@pytest.fixture
def story(demo: tuple[Path, dict[str, str]], tmp_path: Path, browser: Browser) -> Iterator[Story]:
    """A demo course of its own."""
    data, links = demo
    shutil.copytree(data, tmp_path / "data", symlinks=True)
    with Course(database_of(tmp_path / "data").course()) as course, served(tmp_path / "data") as server:
        yield Story(server, course, browser, {login: server.url + path for login, path in links.items()})
        server.assert_ends()


def accept(page: Page, link: str) -> None:
    """Open an invitation and choose a password."""
    page.goto(link)
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_label("The same again").fill(PASSWORD)
    page.get_by_role("button", name="Set the password and sign in").click()


def kit_with(kit: Path, ideas: str) -> dict[str, str]:
    """Return the files of a starter kit with code inserted into its bot; empty for the original."""
    with zipfile.ZipFile(kit) as archive:
        files = {name.partition("/")[2]: archive.read(name).decode() for name in archive.namelist()}
    assert files["bot.py"].count(IDEAS) == 1
    files["bot.py"] = files["bot.py"].replace(IDEAS, ideas + IDEAS)
    return files


def zipped(files: dict[str, str]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, text in files.items():
            archive.writestr(f"my-bot/{name}", text)
    return packed.getvalue()


def folder_of(directory: Path, files: dict[str, str]) -> Path:
    directory.mkdir()
    for name, text in files.items():
        (directory / name).write_text(text)
    return directory


def choose(page: Page, what: Path, ask: Callable[[], None]) -> None:
    """Open the file chooser; try again if it does not open.

    The browser permits a page to open it only for some seconds after a key.
    """
    for _ in range(5):
        with suppress(PlaywrightTimeout):
            with page.expect_file_chooser(timeout=CHOOSER_MS) as chooser:
                ask()
            chooser.value.set_files(what)
            return
    raise AssertionError("the file chooser did not open")


def drop(page: Page, folder: Path) -> None:
    """Drop a folder on the page, as from a file manager."""
    box = page.locator("[data-drop]").bounding_box()
    assert box is not None
    where = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}
    mouse = page.context.new_cdp_session(page)
    for kind in ("dragEnter", "dragOver", "drop"):
        data = {"items": [], "files": [str(folder)], "dragOperationsMask": 1}
        mouse.send("Input.dispatchDragEvent", {"type": kind, **where, "data": data})


def until_decided(page: Page, state: str) -> None:
    """Follow the log of a check to its end, when the page loads itself again."""
    page.wait_for_url(re.compile(r"/my/versions/\d+$"))
    expect(page.locator("#state")).to_have_text(re.compile("qualified|failed|stuck"), timeout=LIMIT_MS)
    assert page.locator("#state").inner_text() == state, page.locator("main").inner_text()


def rung(page: Page, site: str, name: str) -> tuple[int, int]:
    """Return rank and number of games of a bot on the ladder; (0, 0) if it is not there."""
    page.goto(f"{site}/standings")
    for row in page.locator("table.ladder tbody tr").all():
        if name in row.locator("th").inner_text():
            cells = row.locator("td").all_inner_texts()
            return int(cells[0]), int(cells[3])
    return 0, 0


def until_played(
    page: Page, site: str, name: str, games: int, comes_to: Callable[[int], bool] = lambda _: True
) -> int:
    """Return the rank of a bot after a number of games, as soon as it meets a condition."""
    for _ in range(LIMIT_MS // 1000):
        place, played = rung(page, site, name)
        if played >= games and comes_to(place):
            return place
        page.wait_for_timeout(1000)
    raise AssertionError(f"{name} played {played} games, of {games}, and is at place {place}")


def assert_fits(page: Page) -> None:
    """Check a page that tests/web/test_accessibility.py does not have, on a phone and for screen readers."""
    page.wait_for_load_state()
    for size in (PHONE, DESKTOP):
        page.set_viewport_size(size)  # type: ignore[arg-type]  # its own ViewportSize
        assert overflow(page) <= 0, page.url
    assert audit(page) == [], page.url


def watch_a_game_of(page: Page, site: str, name: str) -> None:
    """Follow a game on its live page until its end."""
    give_up = time.monotonic() + LIMIT_MS / 1000
    while time.monotonic() < give_up:
        page.goto(site)
        page.locator("[data-now-playing] a", has_text=name).first.click(timeout=LIMIT_MS)
        if not page.locator("[data-live-events]").get_attribute("data-live-events"):
            continue  # it was over before its page was there
        rows = page.locator(".replay-moves tbody tr")
        board = page.locator(".replay-scene").inner_html()
        begun = rows.count()  # after the picture: what comes from now on is not in it
        expect(page.locator(".live-badge")).to_have_text("over", timeout=LIMIT_MS)
        expect(page.locator(".live-verdict")).to_contain_text(re.compile("won|draw"))
        if rows.count() > begun:
            expect(page.locator("#replay:not([data-moving])")).to_be_visible()
            assert page.locator(".replay-scene").inner_html() != board
            page.get_by_role("link", name="The game's page").click()
            return
    raise AssertionError("no game was seen going on")


@pytest.mark.long
def test_a_student_submits_loses_learns_and_climbs(story: Story, tmp_path: Path) -> None:
    site = story.server.url
    with watched_page(story.browser, site=site, viewport=DESKTOP, accept_downloads=True) as page:
        accept(page, story.links["student-3"])
        expect(page).to_have_url(f"{site}/my")
        expect(page.get_by_role("heading", name="How to begin")).to_be_visible()
        with page.expect_download() as download:
            page.get_by_role("link", name="Python").click()
        kit = tmp_path / "kit.zip"
        download.value.save_as(kit)

        # A weak bot, as a zip.
        weak = {"name": "bot.zip", "mimeType": "application/zip", "buffer": zipped(kit_with(kit, WEAK))}
        page.get_by_label("Zip archive").set_input_files(weak)  # type: ignore[arg-type]  # its own FilePayload
        page.get_by_role("button", name="Submit").click()
        expect(page.get_by_role("log")).to_contain_text("as South against a test opponent", timeout=LIMIT_MS)
        expect(page.locator("#state")).to_have_text("checking")
        until_decided(page, "qualified")
        expect(page.locator(".item.passed").nth(10)).to_be_attached()
        expect(page.locator(".item.failed")).to_have_count(0)
        story.go_on_with_practice()
        watch_a_game_of(page, site, "Team 3 v1")

        # Why it lost; what it said is for its team alone.
        first_place = until_played(page, site, "Team 3 v1", 2, lambda place: place > 2)
        page.goto(f"{site}/competitions/practice/games")
        page.get_by_label("Bot").select_option("Team 3 v1")
        page.get_by_label("It").select_option("lost")
        page.get_by_role("button", name="Show").click()
        lost_game = page.locator("table.games tr", has_text="Team 1 v1").first.locator("a.key")
        for _ in range(LIMIT_MS // 500):  # they may not have met so far
            if lost_game.count():
                break
            page.wait_for_timeout(500)
            page.reload()
        story.stop_practice()
        lost_game.click()
        expect(page.get_by_role("heading", name="Why you lost")).to_be_visible()
        expect(page.locator("#why")).to_contain_text("By score")
        said = page.get_by_role("link", name=re.compile("^standard error of"))
        expect(said).to_have_text(["standard error of Team 3 v1"])
        path = said.get_attribute("href")
        assert path is not None
        assert "I give much" in page.request.get(site + path).text()
        seat = int(path[-1])
        other = page.request.get(f"{site}{path[:-1]}{3 - seat}")
        assert other.status in (403, 404)
        assert "own [" not in other.text()

        # A mistake, by dropping its folder: what played plays on.
        page.goto(f"{site}/my")
        drop(page, folder_of(tmp_path / "wrong", kit_with(kit, EMPTY_PIT)))
        until_decided(page, "failed")
        expect(page.locator(".conclusion")).to_contain_text("Version 1 stays the current one")
        expect(page.locator(".item.failed").first).to_contain_text("What to do")
        expect(page.locator(".item.failed", has_text="empty")).not_to_have_count(0)
        page.get_by_role("link", name="Submit a fix").click()

        # A better one, from a folder that is chosen.
        fixed = folder_of(tmp_path / "fixed", kit_with(kit, ""))
        choose(page, fixed, page.get_by_role("button", name="Choose a folder").click)
        until_decided(page, "qualified")
        expect(page.locator(".conclusion")).to_have_text("Qualified: this is the team's current version.")
        page.get_by_role("link", name="My bot").first.click()
        expect(page.locator("#versions tbody th")).to_have_text(["version 3", "version 2", "version 1"])
        expect(page.locator("#versions tbody td:last-child").first).to_have_text("plays")
        story.go_on_with_practice()
        until_played(page, site, "Team 3 v3", 6, lambda place: place < first_place)
        assert rung(page, site, "Team 3 v1") == (0, 0)
        page.goto(site)
        expect(page.locator("#mine")).to_contain_text("It plays.")


@pytest.mark.long
def test_a_lecturer_runs_a_tournament(story: Story, tmp_path: Path) -> None:
    site = story.server.url
    with watched_page(story.browser, site=site, viewport=DESKTOP, accept_downloads=True) as page:
        accept(page, story.links["lecturer"])
        expect(page).to_have_url(f"{site}/teach")
        story.go_on_with_practice()
        for team in ("Team 1 v1", "Team 2 v1"):
            until_played(page, site, team, 1)
        story.stop_practice()

        # The roster.
        page.goto(f"{site}/teach/roster")
        page.get_by_role("link", name="Import a roster").click()
        page.get_by_label("Roster as CSV").fill("login,name,team\nstudent-4,Student 4,Team 4\n")
        page.get_by_role("button", name="Preview").click()
        expect(page.get_by_role("heading", name="1 new student")).to_be_visible()
        page.get_by_role("button", name="Import it").click()
        expect(page.get_by_text("These links are shown once.")).to_be_visible()
        with page.expect_download() as download:
            page.get_by_role("link", name="Download as CSV").click()
        (row,) = csv.DictReader(download.value.path().read_text().splitlines())
        assert row["login"] == "student-4"
        with watched_page(story.browser, site=site, viewport=PHONE) as student:
            accept(student, row["link"])
            wrong = {"name": "bot.py", "mimeType": "text/plain", "buffer": b"print(\n"}
            student.get_by_label("Zip archive").set_input_files(wrong)  # type: ignore[arg-type]
            student.get_by_role("button", name="Submit").click()
            until_decided(student, "failed")

        # A tournament.
        page.goto(f"{site}/teach/tournaments")
        page.get_by_role("link", name="New tournament").first.click()
        page.get_by_label("Title").fill("Midterm")
        page.get_by_label("Rounds").fill("8")
        page.get_by_label("ladder:1", exact=True).check()
        page.get_by_role("button", name="Preview").click()
        expect(page.locator("#preview")).to_contain_text("48")
        page.get_by_role("button", name="Create the tournament").click()
        expect(page.get_by_role("button", name="Start")).to_be_visible()
        assert_fits(page)
        page.get_by_role("button", name="Start").click()
        page.get_by_role("button", name="Pause").click()
        expect(page.locator("h1")).to_contain_text("paused")
        page.get_by_role("button", name="Go on").click()
        expect(page.locator("h1")).to_contain_text("finished", timeout=LIMIT_MS)  # without loading it again
        expect(page.locator("progress")).to_have_js_property("value", 48)

        # Rulings.
        page.get_by_role("link", name="games", exact=True).click()
        page.locator("a.key").last.click()
        page.get_by_role("link", name="Rule on this game").click()
        game = page.get_by_label("Key").input_value()
        page.get_by_label("Reason").first.fill("played on a machine that failed")
        page.get_by_role("button", name="Rule").first.click()
        expect(page.locator("#rulings + ol")).to_contain_text("played on a machine that failed")
        page.get_by_role("link", name="Table").click()
        expect(page.locator("#standings")).to_be_visible()
        expect(page.locator("#standings tbody tr td:nth-child(4)")).to_have_count(3)
        played = page.locator("#standings tbody tr td:nth-child(4)").all_inner_texts()
        assert sorted(played) == ["31", "31", "32"]
        page.get_by_role("link", name="All games").click()
        page.locator("tr:not(.aside) a.key").first.click()
        page.get_by_role("link", name="Rule on this game").click()
        page.get_by_label("Ruling").first.select_option("replay")
        page.get_by_label("Reason").first.fill("a power cut")
        page.get_by_role("button", name="Rule").first.click()
        expect(page.locator("#rulings + ol li")).to_have_count(2)
        expect(page.locator("h1")).to_contain_text("finished", timeout=LIMIT_MS)

        # Marks.
        page.get_by_role("link", name="Marks").click()
        expect(page.get_by_label("Rules")).to_be_visible()
        assert_fits(page)
        page.get_by_label("Rules").fill(MARKS)
        page.get_by_role("button", name="Show the sheet").click()
        expect(page.get_by_role("region", name="Mark sheet")).to_contain_text("student-1")
        with page.expect_download() as download:
            page.get_by_role("button", name="Download CSV").click()
        marks = download.value.path().read_text()
        assert re.search("^.*student-1.*$", marks, re.MULTILINE)

        # What is going on in the course.
        page.goto(f"{site}/teach/settings")
        page.get_by_role("button", name="Freeze now").click()
        expect(page.get_by_text("Versions are frozen as of")).to_be_visible()
        page.get_by_role("navigation", name="For lecturers").get_by_role("link", name="Submissions").click()
        expect(page.get_by_role("region", name="Versions")).to_contain_text("Team 4 v1")
        page.get_by_role("link", name="Dashboard").click()
        stopped = page.locator("details.failed")
        stopped.first.click()
        expect(stopped.first).to_contain_text("Team 4 v1")
        page.get_by_role("link", name="Journal", exact=True).click()
        journal = page.get_by_role("region", name="Entries").inner_text()
        for entry in ("roster.import", "tournament.void", game, "tournament.replay", "marks.export"):
            assert entry in journal


def tab_to(page: Page, selector: str) -> None:
    """Press Tab until an element has the focus, which must always be visible."""
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement === document.body"):
            continue  # behind the last element there is none, and then the first
        assert focus_outline(page) > 0, page.evaluate("document.activeElement.outerHTML")
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
    raise AssertionError(f"the keyboard does not reach {selector}")


def test_a_keyboard_is_enough(story: Story, tmp_path: Path) -> None:
    site = story.server.url
    with watched_page(story.browser, site=site, viewport=DESKTOP) as page:
        accept(page, story.links["student-3"])
        kit = page.request.get(f"{site}/starters/python.zip").body()
        (tmp_path / "kit.zip").write_bytes(kit)
        tab_to(page, "header button")
        page.keyboard.press("Enter")
        expect(page).to_have_url(f"{site}/sign-in")
        page.keyboard.press("Tab")
        expect(page.locator(".skip")).to_be_in_viewport()
        tab_to(page, "#login")
        page.keyboard.type("student-3")
        tab_to(page, "#password")
        page.keyboard.type(PASSWORD)
        page.keyboard.press("Enter")
        expect(page).to_have_url(f"{site}/")
        tab_to(page, "main a.button")
        page.keyboard.press("Enter")
        expect(page).to_have_url(f"{site}/my")
        page.wait_for_load_state()
        tab_to(page, "#file")
        choose(page, tmp_path / "kit.zip", lambda: page.keyboard.press("Enter"))
        tab_to(page, "form[data-upload] button:not([type=button])")
        page.keyboard.press("Enter")
        until_decided(page, "qualified")
