"""Players for the opponents of interviews: functions of the position.  Pure."""

import zlib
from typing import Any

from referee.games.base import Side
from referee.games.catalog import AnyGame

LOOKED_AT = 60
"""Positions of a game in which extra turns are looked for: one game's worth."""


def varied(game: AnyGame, state: Any) -> Any:
    """Any legal move but the swap, the same one in the same position."""
    moves = without_swap(game, state)
    return moves[zlib.crc32(game.board_text(state).encode()) % len(moves)]


def swapping(game: AnyGame, state: Any) -> Any:
    """The swap if it is legal, else ``varied``."""
    swap = game.swap
    return swap if swap is not None and swap in game.legal_moves(state) else varied(game, state)


def chaining(game: AnyGame, state: Any) -> Any:
    """The last of the moves that give an extra turn, else ``varied``.

    In Kalah the last one is nearest to the store, and taking these first spoils none of the others.
    """
    again = [move for move in without_swap(game, state) if gives_extra_turn(game, state, move)]
    return again[-1] if again else varied(game, state)


def opening_with(number: int) -> Any:
    """A player whose first move is the legal move of this number, counted from 0; then ``varied``."""

    def choose(game: AnyGame, state: Any) -> Any:
        if state == game.initial_state():
            return without_swap(game, state)[number]
        return varied(game, state)

    return choose


def without_swap(game: AnyGame, state: Any) -> list[Any]:
    """The legal moves but the swap."""
    return [move for move in game.legal_moves(state) if game.swap is None or move != game.swap]


def has_extra_turns(game: AnyGame) -> bool:
    """Return whether a player can move twice in a row, by trying the first positions of the game."""
    state = game.initial_state()
    for _ in range(LOOKED_AT):
        if game.outcome(state) is not None:
            return False
        if any(gives_extra_turn(game, state, move) for move in without_swap(game, state)):
            return True
        state = game.apply(state, varied(game, state))
    return False


def has_swap(game: AnyGame) -> bool:
    """Return whether the second player may swap, by trying the first positions of the game.

    A rule book shows the swap only in a position where it is legal.
    """
    state = game.initial_state()
    for _ in range(LOOKED_AT):
        if game.outcome(state) is not None or game.to_move(state) is Side.SECOND:
            break
        state = game.apply(state, varied(game, state))
    return game.swap is not None and game.swap in game.legal_moves(state)


def gives_extra_turn(game: AnyGame, state: Any, move: Any) -> bool:
    """Return whether the mover is to move again after this move."""
    following = game.apply(state, move)
    return game.outcome(following) is None and game.to_move(following) is game.to_move(state)
