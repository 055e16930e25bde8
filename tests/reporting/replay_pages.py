"""Pages of games as tests of the replay use them: written to a folder, and read from a browser."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import Frame, Page, expect

from referee.games.catalog import parse_game
from referee.judge.results import GameRecord
from tournaments.reporting.board.board_renderer import contents
from tournaments.reporting.site import replay
from tournaments.reporting.site.replay import replay_data
from tournaments.reporting.site.replay_page import replay_html

ASSETS = [
    Path(replay.__file__).with_name("assets") / name
    for name in ("pictures.css", "replay.css", "replay.js", "replay_board.js")
]
GAMES = ["manchester(3,3)", "kalamala+cap=40"]
"""One of which has a swap, and one has pieces."""
FURTHER_GAMES = ["oware", "connect-four"]
"""Games in files of their own, drawn from their layouts: pits, and a grid.  For the fixture of this name."""
WHOLE_PLY_MS = 5_000
"""Longer than any animation of a ply: replay.js gives one at most 1.7 s, except a sowing of more than 37
seeds, none of which is in these games; twice that at half speed."""
Write = Callable[[GameRecord], str]
"""Writes the page of a record, and returns its address."""


def write_page(folder: Path, record: GameRecord) -> str:
    """Write the page of a record, with its assets beside it, and return its address."""
    (folder / "assets").mkdir(exist_ok=True)
    for asset in ASSETS:
        shutil.copy(asset, folder / "assets")
    path = folder / "game.html"
    path.write_text(whole_page(replay_data(record)), encoding="utf-8")
    return path.as_uri()


def whole_page(data: dict[str, Any]) -> str:
    """Return a page with nothing but a replay, whose assets are in the folder ``assets`` beside it."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<title>Game</title>\n'
        '<link rel="stylesheet" href="assets/replay.css">\n'
        '<link rel="stylesheet" href="assets/pictures.css">\n'
        '<script defer src="assets/replay_board.js"></script>\n'
        '<script defer src="assets/replay.js"></script>\n'
        f"</head>\n<body>\n<main>\n{replay_html(data)}</main>\n</body>\n</html>\n"
    )


def positions(record: GameRecord) -> list[list[str]]:
    """Return the content of each cell after each ply, as in the page's attributes."""
    rules = parse_game(record.game)
    states = [rules.initial_state()]
    for move in record.moves:
        states.append(rules.apply(states[-1], rules.parse_move(states[-1], move.move)))
    return [["" if one is None else str(one) for one in contents(rules, state)] for state in states]


def shown(page: Page | Frame) -> list[str]:
    """Return the current content of each cell of the board."""
    found: list[str] = page.evaluate(
        "[...document.querySelectorAll('[data-cell]')].map((cell) => cell.getAttribute('data-content'))"
    )
    return found


def moving(page: Page) -> bool:
    """Return True if an animation runs."""
    return page.locator("#replay").get_attribute("data-moving") is not None


def at_ply(page: Page | Frame, ply: int) -> None:
    """Expect that the page shows a ply."""
    expect(page.locator("#replay")).to_have_attribute("data-ply", str(ply))


def stop_clock(page: Page) -> None:
    """Stop the clock of a page, so that only ``page.clock.run_for`` advances it."""
    # The clock runs until the browser takes the order, which must be before the moment that it names.
    page.clock.pause_at(page.evaluate("Date.now()") / 1000 + 600)
