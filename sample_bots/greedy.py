"""The greedy bot: the move that looks best at once, without a thought for the reply.

Usage: ``python -m sample_bots.greedy``.  A move is worth the evaluation after it (in Kalah: the store
difference); among equals one with an extra turn is preferred, then the lowest.  A swap is judged like
any other move, so the bot takes the opponent's seat if the seeds in that store are more than it could
win for its own.
"""

import sys
from typing import Any

from referee.games.catalog import AnyGame
from sample_bots.conversation import run_without_option
from sample_bots.evaluation import evaluation_of
from sample_bots.search import static_value


def choose(game: AnyGame, state: Any) -> Any:
    """The greedy move; deterministic."""
    mover = game.to_move(state)
    evaluate = evaluation_of(game)
    best_move, best_worth = None, (0, False)
    for move in game.legal_moves(state):
        child = game.apply(state, move)
        worth = (static_value(game, child, mover, evaluate), game.to_move(child) is mover)
        if best_move is None or worth > best_worth:
            best_move, best_worth = move, worth
    return best_move


def main(arguments: list[str]) -> int:
    """Play one game; return the exit status."""
    return run_without_option("greedy", choose, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
