"""The minimax bot: alpha-beta search to a fixed depth.

Usage: ``python -m sample_bots.minimax [DEPTH]``, default 4, at most 20.  A ply is one move, so a turn of
several sowings has several plies.  The pie rule needs no special code: the opponent's swap is one of the
replies in the opener's search.

Time per move at manchester, measured in three games against itself (Python 3.11, one core): depth 4
median 1 ms, longest 2 ms; depth 6 median 3 ms, longest 18 ms; depth 8 median 28 ms, longest 183 ms.
CPU time per move at kalamala, after 4 random turns: depth 2 median 2 ms, longest 0.32 s (six games); depth 3
median 24 ms, longest 0.72 s (two games).
"""

import sys
from typing import Any

from referee.games.catalog import AnyGame
from sample_bots.conversation import Choose, run
from sample_bots.evaluation import evaluation_of
from sample_bots.options import BadOptionError, parse_depth
from sample_bots.search import AlphaBeta

DEFAULT_DEPTH = 4


def minimax_mover(depth: int) -> Choose:
    """Return a player that looks ``depth`` plies ahead; deterministic."""

    def choose(game: AnyGame, state: Any) -> Any:
        move, _ = AlphaBeta(game, evaluation_of(game)).best(state, depth)
        return move

    return choose


def main(arguments: list[str]) -> int:
    """Play one game; return the exit status."""
    try:
        depth = parse_depth(" ".join(arguments)) if arguments else DEFAULT_DEPTH
    except BadOptionError as error:
        print(error, file=sys.stderr)
        return 2
    return run(minimax_mover(depth))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
