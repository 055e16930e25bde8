"""The swap-happy bot: takes the other seat whenever it may, else plays its last legal move.

Usage: ``python -m sample_bots.swap_happy``.  An opponent for those who have never been swapped: the course's
bots hardly ever swap at the first move.
"""

import sys
from typing import Any

from referee.games.catalog import AnyGame
from sample_bots.conversation import run_without_option


def choose(game: AnyGame, state: Any) -> Any:
    """SWAP if it is legal, else the last of the legal moves (in Kalah the pit nearest to the store)."""
    moves = game.legal_moves(state)
    return game.swap if game.swap is not None and game.swap in moves else moves[-1]


def main(arguments: list[str]) -> int:
    """Play one game; return the exit status."""
    return run_without_option("swap_happy", choose, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
