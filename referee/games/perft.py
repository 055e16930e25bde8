"""The count of move sequences, the standard test of a rule book."""

from typing import Any

from referee.games.base import Game


def perft(game: Game[Any, Any], state: Any, depth: int) -> int:
    """Return the number of move sequences of exactly ``depth`` plies from ``state``.

    One sowing is one ply and a swap is a ply; a finished game has no continuation; sequences that lead to the
    same position are not merged.
    """
    if depth <= 0:
        return 1
    moves = game.legal_moves(state)
    if depth == 1:
        return len(moves)
    return sum(perft(game, game.apply(state, move), depth - 1) for move in moves)
