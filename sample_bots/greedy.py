"""The greedy bot: the move with the best evaluation after it; the reply is ignored.

Usage: ``python -m sample_bots.greedy``.  The value of a move is the evaluation after it (in Kalah: the store
difference).  Among equal moves one with an extra turn is preferred, then the lowest.  A swap is evaluated
like any other move, so the bot takes the opponent's seat if that store has more seeds than the bot could win
at once.
"""

import sys
from typing import Any

from referee.games.catalog import AnyGame
from sample_bots.conversation import run_without_option
from sample_bots.evaluation import evaluation_of
from sample_bots.search import static_value


def choose(game: AnyGame, state: Any) -> Any:
    """Return the greedy move; deterministic."""
    mover = game.to_move(state)
    evaluate = evaluation_of(game)
    best_move, best_value = None, (0, False)
    for move in game.legal_moves(state):
        child = game.apply(state, move)
        value = (static_value(game, child, mover, evaluate), game.to_move(child) is mover)
        if best_move is None or value > best_value:
            best_move, best_value = move, value
    return best_move


def main(arguments: list[str]) -> int:
    """Play one game; return the exit status."""
    return run_without_option("greedy", choose, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
