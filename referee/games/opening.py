"""Openings: the positions or moves before the first turn.  Text <-> opening, for every game.

An opening is a position, or moves from the start position, written with spaces between them.
"""

from dataclasses import dataclass
from typing import Any

from referee.games.base import Game, MoveError, PositionError


class OpeningError(ValueError):
    """A text that is not an opening of this game; the message gives the reason."""


@dataclass(frozen=True)
class Step:
    """One announcement of an opening."""

    move: str | None
    """The move's text; None for a position that was set up outright."""
    state: Any
    """The state after this step."""


def parse_opening(game: Game[Any, Any], text: str) -> list[Step]:
    """Return the steps of an opening.  Raises OpeningError.

    An empty text is the game's own start, without a step.  The swap is not part of an opening, and a game
    must not be over after it.
    """
    words = text.split()
    if not words:
        return []
    try:
        steps = [Step(None, _position(game, text))]
    except PositionError as error:
        if len(words) == 1 and not _is_move(game, words[0]):
            raise OpeningError(f"{text!r} is neither a move nor a position: {error}") from error
        steps = _play(game, words)
    if game.outcome(steps[-1].state) is not None:
        raise OpeningError(f"{text!r}: the game is over after this opening")
    return steps


def _position(game: Game[Any, Any], text: str) -> Any:
    """Return the state of a position that can be announced to bots.  Raises PositionError, OpeningError.

    Bots receive the board and, in the last field of the line, the player to move, and must be able to derive
    the state from these; a state with more to it (a history, a swap to come) is refused.
    """
    state = game.parse_state(text)
    board = game.board_text(state)
    parsed = game.parse_state(board)
    if game.to_move(parsed) is not game.to_move(state):
        parsed = game.parse_state(f"{board};{game.seats(parsed)[game.to_move(state)]}")
    if parsed != state:
        raise OpeningError(
            f"{text!r} contains more than the board and the side to move, and bots receive nothing else; "
            "begin with moves instead"
        )
    return state


def _is_move(game: Game[Any, Any], word: str) -> bool:
    try:
        game.parse_move(game.initial_state(), word)
    except MoveError:
        return False
    return True


def _play(game: Game[Any, Any], words: list[str]) -> list[Step]:
    steps = []
    state = game.initial_state()
    for number, word in enumerate(words, 1):
        try:
            move = game.parse_move(state, word)
            if game.swap is not None and move == game.swap:
                raise OpeningError(
                    f"move {number}: the swap is no part of an opening, but the bots' own choice"
                )
            state = game.apply(state, move)
        except MoveError as error:
            raise OpeningError(f"move {number}: {error.message}") from error
        steps.append(Step(game.format_move(state, move), state))
    return steps
