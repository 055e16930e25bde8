"""What every game is to the referee, the schedulers and the bots.

A game is a stateless rule book.  States and moves are immutable values; each has an exact text.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol, TypeVar


class Side(IntEnum):
    """A player, by who made the first move of the game.  It never changes, whatever seats are swapped."""

    FIRST = 0
    SECOND = 1

    @property
    def other(self) -> "Side":
        """The opponent."""
        return _OTHER[self]


_OTHER = (Side.SECOND, Side.FIRST)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a finished game ended."""

    winner: Side | None
    """None is a draw."""
    score: tuple[int, int]
    """What decided it (seeds, stones), of FIRST and of SECOND."""
    reason: str = "score"
    """``score`` for a regular end, ``turn-cap`` where a house rule ended a game that might have gone on."""
    detail: str = ""
    """What ended it, for people, where the score does not say it all."""


class MoveError(ValueError):
    """A move that cannot be played."""

    def __init__(self, fault: str, message: str) -> None:
        super().__init__(message)
        self.fault = fault
        """A stable word for machines, for example ``empty-pit``."""
        self.message = message
        """A sentence for people: which move, and why not."""


class InvalidMoveError(MoveError):
    """The text is not the text of any move of this game (syntax)."""


class IllegalMoveError(MoveError):
    """The move is one of the game's, but not of this position (rules)."""


class PositionError(ValueError):
    """A text that is no position of this game."""


S = TypeVar("S")
M = TypeVar("M")


class Game(Protocol[S, M]):
    """A rule book.

    Contract, tested for every registered game in tests/test_games_contract.py:
    ``legal_moves`` is sorted, and empty exactly when ``outcome`` is not None; ``apply`` is pure and
    raises IllegalMoveError for every move that is not in ``legal_moves``; ``parse_move`` undoes
    ``format_move`` and ``parse_state`` undoes ``format_state``; every game ends.
    """

    @property
    def name(self) -> str:
        """The canonical spec text, for example ``manchester(6,4)``; the catalog parses it back."""
        ...

    @property
    def swap(self) -> M | None:
        """The pie rule's move, which the protocol writes as SWAP; None if the game has none."""
        ...

    def initial_state(self) -> S:
        """The start position."""
        ...

    def to_move(self, state: S) -> Side:
        """Who is to move; in a finished game, who would have been."""
        ...

    def seats(self, state: S) -> tuple[str, str]:
        """The names of the seats that FIRST and SECOND hold now, for example South and North."""
        ...

    def legal_moves(self, state: S) -> Sequence[M]:
        """All legal moves, sorted; empty if and only if the game is over."""
        ...

    def apply(self, state: S, move: M) -> S:
        """The state after a move.  Raises IllegalMoveError; changes nothing."""
        ...

    def outcome(self, state: S) -> Outcome | None:
        """The result, or None while the game goes on."""
        ...

    def parse_move(self, state: S, text: str) -> M:
        """The move that a text names.  Raises InvalidMoveError (syntax, not legality)."""
        ...

    def format_move(self, state: S, move: M) -> str:
        """The canonical text of a move."""
        ...

    def board_text(self, state: S) -> str:
        """The position as bots are sent it."""
        ...

    def format_state(self, state: S) -> str:
        """The exact text of a state."""
        ...

    def parse_state(self, text: str) -> S:
        """The state that a text names.  Raises PositionError."""
        ...
