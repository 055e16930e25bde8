"""The opener's first turn in Kalah: all ways to play it, and their values by long searches.

The values decide about the swap.  ``make_first_turns.py`` searches them; the file ``first_turns.json`` has
the values of the usual boards and the commands that made them.
"""

import json
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from referee.games.kalah import Kalah, KalahState, Phase

MOST_TURNS = 300
"""Maximum number of first turns that are considered.  The usual boards have fewer than 50, but on a board of
30 pits with a seed each they cannot be enumerated."""

FILE = "first_turns.json"
"""Name of the file with the values, in the folder of this module."""


class FirstTurn(NamedTuple):
    """One way to play the first turn, or the rest of it."""

    moves: tuple[int, ...]
    """The pits; never empty."""
    state: KalahState
    """State after the turn: the opponent is to decide, or the game is over."""


class StoredValue(NamedTuple):
    """Value of the board after a first turn, by a long search."""

    turn: tuple[int, ...]
    """The pits of the turn."""
    value: float
    """Final lead of the opener in seeds if nobody swaps.  Above 0 the opponent should swap."""
    depth: int
    """Depth of the search in plies."""
    proven: bool


def first_turns(game: Kalah, state: KalahState) -> list[FirstTurn]:
    """Return the turns of a state in phase OPENING or REPEATING, one for each resulting state.

    If there are more than MOST_TURNS, the longest are left out.
    """
    unfinished = [FirstTurn((), state)]
    finished: dict[KalahState, FirstTurn] = {}
    seen = {state}
    for turn in unfinished:  # the list grows in the loop, so shorter turns come first
        for pit in game.legal_moves(turn.state):
            after = game.apply(turn.state, pit)
            longer = FirstTurn((*turn.moves, pit), after)
            if after.phase is Phase.REPEATING or (after.phase is Phase.PLAY and after.seat == state.seat):
                if after not in seen and len(seen) < MOST_TURNS:
                    seen.add(after)
                    unfinished.append(longer)
            elif after not in finished and len(finished) < MOST_TURNS:
                finished[after] = longer
    return sorted(finished.values())


def variant_key(game: Kalah) -> str:
    """Return the name of a variant in the file: its board and the rules that the values depend on.

    K6 never changes who wins, and is left out.
    """
    return (
        f"({game.pits},{game.seeds}) end={game.end} empty-capture={_yes(game.empty_capture)} "
        f"first-move-repeats={_yes(game.first_move_repeats)}"
    )


def stored_values(game: Kalah) -> dict[tuple[int, ...], StoredValue]:
    """Return board of the protocol -> its value; empty if the variant is not in the file."""
    if not game.pie:
        return {}
    return {
        tuple(one["board"]): StoredValue(tuple(one["turn"]), one["value"], one["depth"], one["proven"])
        for one in _file()["variants"].get(variant_key(game), ())
    }


@cache
def _file() -> Any:
    return json.loads(resources.files(__package__).joinpath(FILE).read_text(encoding="utf-8"))


def _yes(on: bool) -> str:
    return "yes" if on else "no"
