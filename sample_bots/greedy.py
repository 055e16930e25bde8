"""The greedy bot: the move that looks best at once, without a thought for the reply.

Usage: ``python -m sample_bots.greedy``.  A move is worth the evaluation after it (in Kalah: the store
difference); among equals one with an extra turn is preferred, then the lowest.
"""

import sys
from typing import Any

from referee.games.catalog import AnyGame
from sample_bots.conversation import run
from sample_bots.evaluation import evaluation_of
from sample_bots.search import static_value


def choose(game: AnyGame, state: Any) -> Any:
    """The greedy move; deterministic."""
    mover = game.to_move(state)
    evaluate = evaluation_of(game)
    best_move, best_worth = None, (0, False)
    for move in game.legal_moves(state):
        if move == game.swap:
            continue
        child = game.apply(state, move)
        worth = (static_value(game, child, mover, evaluate), game.to_move(child) is mover)
        if best_move is None or worth > best_worth:
            best_move, best_worth = move, worth
    # A swap leaves the opponent with the choice that we have just made.  So it is good exactly if our
    # own best move would still leave us behind.
    if game.swap in game.legal_moves(state) and best_worth < (0, False):
        return game.swap
    return best_move


def main(arguments: list[str]) -> int:
    """Play one game; return the exit status."""
    if arguments:
        print("greedy takes no option", file=sys.stderr)
        return 2
    return run(choose)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
