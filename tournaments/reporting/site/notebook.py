"""Replays in notebooks: each a page that needs no other file and no network, in a frame of its own.

The frame keeps styles, keys and scripts of the replays of several cells apart, and what a bot wrote out of
reach of the notebook: ``sandbox`` gives the page an origin of its own.
"""

from functools import cache
from html import escape
from pathlib import Path

from referee.judge.results import GameRecord
from tournaments.reporting.site.replay import replay_data
from tournaments.reporting.site.replay_page import replay_html

ASSETS = Path(__file__).parent / "assets"
HEIGHT_PX = 760
"""Height of the frame: the board with its buttons and the chart of times; the rest is scrolled to."""
STYLES = (
    "body { margin: 0 }\n"
    ".replay-link { display: none }\n"  # a cell has no address
    ".replay-page h1 { font-size: 1.15rem; margin-top: .25rem }\n"
)


def record_html(record: GameRecord) -> str:
    """Return the final board and the replay of a game for a notebook."""
    return (
        f'<iframe title="Replay" sandbox="allow-scripts" srcdoc="{escape(replay_document(record))}" '
        f'style="width: 100%; height: {HEIGHT_PX}px; border: 0"></iframe>'
    )


def replay_document(record: GameRecord) -> str:
    """Return a page with the replay of a game, which contains its styles and scripts."""
    data = replay_data(record)
    styles = _asset("replay.css") + _asset("pictures.css") + STYLES
    scripts = _asset("replay_board.js") + _asset("replay.js")
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="color-scheme" content="light dark">\n<title>Replay</title>\n'
        f"<style>\n{styles}</style>\n</head>\n<body>\n<main>\n{replay_html(data)}</main>\n"
        f"<script>\n{scripts}</script>\n</body>\n</html>\n"
    )


@cache
def _asset(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")
