"""Pages of games as tests of the replay see them: written to a folder, and read from a browser."""

import shutil
from pathlib import Path

from playwright.sync_api import Page, expect

from referee.games.catalog import parse_game
from referee.judge.results import GameRecord
from tests.test_replay_page import ASSETS
from tournaments.reporting.board.board_renderer import contents
from tournaments.reporting.site.replay import replay_data
from tournaments.reporting.site.replay_page import standalone_page

GAMES = ["manchester(3,3)", "kalamala+cap=40"]
"""One of which has a swap, and one has pieces."""
WHOLE_PLY_MS = 5_000
"""Longer than any animation of a ply: the most that replay.js gives one is 1.7 s, but for a sowing of more
than 37 seeds, none of which is in these games; twice that at half speed."""


def write_page(folder: Path, record: GameRecord) -> str:
    """Write the page of a record, with its assets beside it, and say where it is."""
    (folder / "assets").mkdir(exist_ok=True)
    for asset in ASSETS:
        shutil.copy(asset, folder / "assets")
    path = folder / "game.html"
    path.write_text(standalone_page(replay_data(record)), encoding="utf-8")
    return path.as_uri()


def positions(record: GameRecord) -> list[list[str]]:
    """What each cell holds after each ply, as the page has it in its attributes."""
    rules = parse_game(record.game)
    states = [rules.initial_state()]
    for move in record.moves:
        states.append(rules.apply(states[-1], rules.parse_move(states[-1], move.move)))
    return [["" if one is None else str(one) for one in contents(rules, state)] for state in states]


def shown(page: Page) -> list[str]:
    """What each cell of the board holds now."""
    found: list[str] = page.evaluate(
        "[...document.querySelectorAll('[data-cell]')].map((cell) => cell.getAttribute('data-content'))"
    )
    return found


def moving(page: Page) -> bool:
    return page.locator("#replay").get_attribute("data-moving") is not None


def at_ply(page: Page, ply: int) -> None:
    expect(page.locator("#replay")).to_have_attribute("data-ply", str(ply))
