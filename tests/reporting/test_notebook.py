"""Replays in notebooks: one frame that holds everything, and nothing of a bot outside of it."""

import re
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest
from playwright.sync_api import Browser, FrameLocator, Page, expect

from referee.judge.record_rows import WireLine
from referee.judge.results import GameRecord
from tests.reporting.replay_pages import positions
from tests.support.browser import watched_page
from tests.support.builders import make_player
from tests.support.random_games import random_game

GAME = "kalah(3,2)"
EVIL = '</script><script>document.title="taken"</script>"><img src=x onerror=alert(1)>'


def evil(record: GameRecord) -> GameRecord:
    """The record with markup wherever a bot or its author can write."""
    lines = [WireLine(0, "from", EVIL, 5)]
    return replace(
        record,
        players=(make_player(EVIL), make_player("'\"" + EVIL)),
        wire=[*record.wire, *lines],
        stderr=(EVIL, EVIL),
        result=replace(record.result, detail=EVIL, note=EVIL),
    )


def shown(record: GameRecord) -> str:
    """Return the HTML of a record in a notebook, by the installed entry point."""
    html = record._repr_html_()
    assert html is not None, "the entry point kalarena.notebook is not installed: run `make`"
    return html


def test_a_record_is_one_frame_in_a_notebook() -> None:
    html = shown(evil(random_game(GAME)))
    found = re.fullmatch(
        r'<iframe title="Replay" sandbox="allow-scripts" srcdoc="([^"<>]*)" style="[^"<>]*"></iframe>', html
    )
    assert found is not None
    page = unescape(found[1])
    assert EVIL not in page
    assert page.count("</script>") == 2  # of the data and of the code, which holds none
    assert page.count("<script") == 2
    assert not re.search(r"<[^<>]*\b(?:src|href)=(?!\"#)", page)
    assert not re.search(r"url\(|@import", page)


def test_each_record_draws_itself() -> None:
    first, second = shown(random_game(GAME)), shown(random_game("kalamala+cap=40"))
    assert first != second
    assert "kalarena-picture" in first


def frame(page: Page, number: int) -> FrameLocator:
    """The replay of a cell."""
    return page.locator("iframe").nth(number).content_frame


@pytest.mark.browser
def test_two_cells_are_replayed_without_a_network(browser: Browser, tmp_path: Path) -> None:
    record, other = random_game(GAME), evil(random_game("kalamala+cap=40"))
    path = tmp_path / "notebook.html"
    path.write_text(
        f'<!DOCTYPE html><meta charset="utf-8"><title>Notebook</title><div>{shown(record)}</div>'
        f"<div>{shown(other)}</div>",
        encoding="utf-8",
    )
    expected = positions(record)
    with watched_page(browser, reduced_motion="reduce") as page:
        page.goto(path.as_uri())
        first, second = frame(page, 0), frame(page, 1)
        for one in (first, second):
            expect(one.locator("#replay")).to_be_visible()
            expect(one.locator("#replay-still")).to_be_hidden()
            expect(one.locator("#replay")).to_have_attribute("data-ply", "0")
        first.locator("[data-do=last]").click()
        expect(first.locator("#replay")).to_have_attribute("data-ply", str(len(record.moves)))
        cells = first.locator("[data-cell]").evaluate_all(
            "cells => cells.map((cell) => cell.getAttribute('data-content'))"
        )
        assert cells == expected[-1]
        expect(second.locator("#replay")).to_have_attribute("data-ply", "0")
        second.locator("[data-do=next]").click()
        second.locator(".replay-moves tbody tr").nth(4).click()
        expect(second.locator("#replay")).to_have_attribute("data-ply", "5")
        second.locator("body").press("ArrowLeft")
        expect(second.locator("#replay")).to_have_attribute("data-ply", "4")
        expect(second.locator("h1")).to_contain_text(EVIL)
        assert page.title() == "Notebook"
        assert page.evaluate("location.hash") == ""
