"""What the first turns of the usual boards are worth, by long searches made beforehand.

The searches are made by ``python -m sample_bots.strong.kalah_swaps_make``; the file says with what settings.
"""

import json
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from referee.games.kalah import Kalah

FILE = "kalah_swaps.json"
"""Beside this module."""


class Kept(NamedTuple):
    """What is known of the board after a first turn."""

    turn: tuple[int, ...]
    """The pits that lead to it."""
    value: float
    """Seeds that the opener will be ahead at the end if nobody swaps.  Above 0 the opponent should swap."""
    depth: int
    """Plies that were looked ahead."""
    proven: bool


def key_of(game: Kalah) -> str:
    """The name of a variant in the file: its board and the rules that the values depend on.

    K6 never changes who wins, and is left out.
    """
    return (
        f"({game.pits},{game.seeds}) end={game.end} empty-capture={_yes(game.empty_capture)} "
        f"first-move-repeats={_yes(game.first_move_repeats)}"
    )


def swaps_of(game: Kalah) -> dict[tuple[int, ...], Kept]:
    """Board of the protocol -> what is known of it; empty if the variant is not in the file."""
    if not game.pie:
        return {}
    return {
        tuple(one["board"]): Kept(tuple(one["turn"]), one["value"], one["depth"], one["proven"])
        for one in _file()["variants"].get(key_of(game), ())
    }


@cache
def _file() -> Any:
    return json.loads(resources.files(__package__).joinpath(FILE).read_text(encoding="utf-8"))


def _yes(on: bool) -> str:
    return "yes" if on else "no"
