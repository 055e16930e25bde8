"""The bot ``first_legal`` for any game: the first legal move in the order of the rule book, never a swap.

Usage: ``python -m sample_bots.first_move``.
"""

import sys
from typing import Any

from referee.games.catalog import AnyGame
from sample_bots.conversation import run_without_option


def choose(game: AnyGame, state: Any) -> Any:
    """Return the lowest move other than a swap; deterministic."""
    return next(move for move in game.legal_moves(state) if move != game.swap)


def main(arguments: list[str]) -> int:
    """Play one game; return the exit status."""
    return run_without_option("first_legal", choose, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
