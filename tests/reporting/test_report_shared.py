"""Reports of many games: their pages share files with data, and show the same as whole pages."""

import json
import re
import zlib
from base64 import b64decode
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from referee.version import VERSION
from tests.reporting.replay_pages import GAMES, at_ply, positions, shown
from tests.reporting.reports import made, some, write_store
from tests.support.browser import watched_page
from tests.support.builders import invoke
from tests.support.random_games import random_game
from tournaments.reporting.site.site import LARGE
from tournaments.results.journal import Action, Entry
from tournaments.results.store import Store

NAMES = ("<img src=x onerror=alert(1)>", "bob", "w" * 200, "dora")
LARGEST_LOADER = 1000
"""Bytes of a page that loads its game: 100,000 of them have 100 MB at most."""
VOID = Entry(Action.VOID, "r001-1v2", "the host slept", 1, "2026-02-03T04:05:06+00:00")
CONTENTS = """() => {
    const rest = document.body.cloneNode(true);
    const drawn = rest.querySelectorAll("script, #replay-still, .replay-scene, .replay-times svg");
    drawn.forEach((one) => one.remove());
    const links = [...rest.querySelectorAll("a")].map((one) => one.getAttribute("href"));
    return [rest.textContent.replace(/\\s+/g, ""), links];
}"""
"""The texts and links of a page, without spaces, and without what a script draws."""


def report(folder: Path, pages: str, *options: str) -> Path:
    """Make a report with pages of one kind; return its folder."""
    out = folder / pages
    result = invoke("tournament", "report", folder, "--pages", pages, "--out", out, *options)
    assert result.exit_code == 0, result.output
    return out


def data_of(path: Path) -> dict[str, Any]:
    """Return the data of a file that pages share."""
    found = re.fullmatch(r'kalarenaGames\("([^"]+)"\);\n', path.read_text())
    assert found
    data: dict[str, Any] = json.loads(zlib.decompress(b64decode(found[1])))
    return data


def test_pages_keep_their_names_and_are_small(tmp_path: Path) -> None:
    folder = tmp_path / "cup"
    write_store(folder, NAMES, some)
    whole, shared = report(folder, "whole"), report(folder, "shared")
    names = sorted(path.name for path in (whole / "games").iterdir())
    assert sorted(path.name for path in (shared / "games").iterdir()) == names
    assert max(path.stat().st_size for path in (shared / "games").iterdir()) < LARGEST_LOADER
    for name in ("index.html", "games.html"):
        assert (shared / name).read_bytes() == (whole / name).read_bytes()
    (data,) = (shared / "data").iterdir()
    assert len(data_of(data)["keys"]) == len(names)
    assert not (whole / "data").exists()
    assert len(names) < LARGE
    made(folder)
    assert not (folder / "report" / "data").exists()  # few games have whole pages by default


def test_shared_data_of_an_anonymous_report_have_pseudonyms(tmp_path: Path) -> None:
    folder = tmp_path / "cup"
    write_store(folder, ("alice", "bob", "carol"), some)
    shared = report(folder, "shared", "--anonymous")
    (path,) = (shared / "data").iterdir()
    text = json.dumps(data_of(path))
    assert "START;North" in text
    for secret in (
        "alice",
        "bob",
        "carol",
        "/home/",
        "/opt/python",
        "the-lecturers-machine",
        "private words",
    ):
        assert secret not in text


def test_a_browser_that_has_an_earlier_report_in_its_cache_loads_the_new_data(tmp_path: Path) -> None:
    folder = tmp_path / "cup"
    write_store(folder, NAMES, some)
    before = loaded(report(folder, "shared"))
    assert loaded(report(folder, "shared")) == before  # the cache is good
    with Store(folder / "results.db") as store:
        store.note(VOID)
    after = loaded(report(folder, "shared"))
    (script_before, data_before), (script_after, data_after) = before, after
    assert script_before == script_after == f"../assets/game_page.js?{VERSION}"
    assert data_before != data_after
    assert data_before.split("?")[0] == data_after.split("?")[0]


def loaded(shared: Path) -> list[str]:
    """Return the addresses of the scripts that every page of a game loads."""
    (found,) = {
        tuple(re.findall(r'<script defer src="([^"]+)">', path.read_text()))
        for path in (shared / "games").iterdir()
    }
    return list(found)


@pytest.mark.browser
def test_a_shared_page_shows_what_a_whole_page_shows(browser: Browser, tmp_path: Path) -> None:
    folder = tmp_path / "cup"
    write_store(folder, NAMES[:3], some, journal=[VOID])  # six games, with each of the five outcomes
    whole, shared = report(folder, "whole"), report(folder, "shared")
    with watched_page(browser, reduced_motion="reduce") as page:
        for path in sorted((whole / "games").iterdir()):
            seen = contents(page, shared / "games" / path.name)
            assert seen == contents(page, path), path.name
            assert page.locator("h1").count() == 1


def contents(page: Page, path: Path) -> Any:
    page.goto(path.as_uri())
    at_ply(page, 0)
    return page.evaluate(CONTENTS)


@pytest.mark.browser
@pytest.mark.parametrize("game", GAMES)
def test_every_position_of_a_shared_page_is_right(browser: Browser, tmp_path: Path, game: str) -> None:
    record = random_game(game)
    folder = tmp_path / "cup"
    write_store(
        folder, ("one", "two"), changed=lambda kept: replace(record, key=kept.key, players=kept.players)
    )
    shared = report(folder, "shared")
    expected = positions(record)
    with watched_page(browser, reduced_motion="reduce") as page:
        page.goto(f"{next((shared / 'games').iterdir()).as_uri()}#ply=3")
        at_ply(page, 3)
        page.keyboard.press("Home")
        for ply in range(len(expected)):
            at_ply(page, ply)
            assert shown(page) == expected[ply]
            page.keyboard.press("ArrowRight")
