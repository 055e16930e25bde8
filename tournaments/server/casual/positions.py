"""Positions of casual games: the states of a game, and openings from which a bot can go on (pure)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from referee.games.base import MoveError, Side
from referee.games.catalog import AnyGame
from referee.games.opening import OpeningError, parse_opening


@dataclass(frozen=True, slots=True)
class Continuation:
    """An opening that leads to a position, for a new game of a bot."""

    opening: str
    """Text of the opening."""
    is_exchanged: bool
    """True if the players move in the other order in the new game, because they have swapped seats."""


def states_of(game: AnyGame, opening: str, moves: Sequence[str]) -> list[Any]:
    """Return the state after the opening, and that after each move.  Raises OpeningError, MoveError."""
    steps = parse_opening(game, opening)
    states = [steps[-1].state if steps else game.initial_state()]
    for text in moves:
        state = states[-1]
        states.append(game.apply(state, game.parse_move(state, text)))
    return states


def continuation(game: AnyGame, opening: str, moves: Sequence[str]) -> Continuation:
    """Return the opening with which a new game begins in the last position of a game.

    The swap is no part of an opening: after a swap, the new game begins from the board, and the players
    take the seats that they have.  Raises OpeningError if there is no such opening, or if the game is over;
    MoveError.
    """
    states = states_of(game, opening, moves)
    if not moves:
        return Continuation(opening, is_exchanged=False)
    state = states[-1]
    start = game.initial_state()
    swap = None if game.swap is None else game.format_move(start, game.swap)
    if swap not in moves and not _is_position(game, opening):
        text = " ".join([*opening.split(), *moves])
        parse_opening(game, text)
        return Continuation(text, is_exchanged=False)
    board, mover = game.board_text(state), game.seats(state)[game.to_move(state)]
    for text in (f"{board};{mover}", board):
        try:
            found = parse_opening(game, text)[-1].state
        except OpeningError:
            continue
        if game.seats(found)[game.to_move(found)] == mover:
            return Continuation(text, game.seats(found) != game.seats(state))
    raise OpeningError("no new game can begin in this position: its rules depend on the moves before")


def _is_position(game: AnyGame, opening: str) -> bool:
    return bool(opening) and parse_opening(game, opening)[0].move is None


def opening_at(game: AnyGame, words: Sequence[str]) -> Continuation:
    """Return the opening for a position of a recorded game: a position or not, then moves.

    Raises OpeningError with the reason if there is none.
    """
    texts = list(words)
    try:
        if texts and _is_position(game, texts[0]):
            return continuation(game, texts[0], texts[1:])
    except OpeningError:
        pass  # the first word is a move that is no opening by itself, or one that ends the game
    try:
        return continuation(game, "", texts)
    except MoveError as error:
        raise OpeningError(f"this position cannot be played: {error.message}") from error


def side_of(is_exchanged: bool, index: int) -> int:
    """Return the index of a player in the new game."""
    return int(Side(index).other) if is_exchanged else index
