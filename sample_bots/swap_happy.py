"""The swap-happy bot: swaps seats whenever that is legal, else plays its last legal move.

Usage: ``python -m sample_bots.swap_happy``.  It tests how a bot reacts to a swap, since the other bots of a
course rarely swap.
"""

import sys
from typing import Any

from referee.games.catalog import AnyGame
from sample_bots.conversation import run_without_option


def choose(game: AnyGame, state: Any) -> Any:
    """Return SWAP if it is legal, else the last legal move (in Kalah the pit nearest to the store)."""
    moves = game.legal_moves(state)
    return game.swap if game.swap is not None and game.swap in moves else moves[-1]


def main(arguments: list[str]) -> int:
    """Play one game; return the exit status."""
    return run_without_option("swap_happy", choose, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
