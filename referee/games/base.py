"""The interface between games and the referee, the schedulers and the bots.

A game is a stateless rule book.  States and moves are immutable values; each has an exact text.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from referee.games.layout import Layout


class Side(IntEnum):
    """A player, identified by the first move of the game, and not by the seats, which can be swapped."""

    FIRST = 0
    SECOND = 1

    @property
    def other(self) -> "Side":
        """The opponent."""
        return _OTHER[self]


_OTHER = (Side.SECOND, Side.FIRST)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a finished game."""

    winner: Side | None
    """The winner; None for a draw."""
    score: tuple[int, int]
    """The deciding scores (seeds, stones) of FIRST and of SECOND."""
    reason: str = "score"
    """``score`` for a regular end, ``turn-cap`` where a house rule ended a game that might have gone on."""
    detail: str = ""
    """The cause of the end, for people, where the score does not say it all."""


LONGEST_FAULT = 32
"""Most characters of a fault's word, for which tables and databases have room."""


class MoveError(ValueError):
    """A move that cannot be played."""

    def __init__(self, fault: str, message: str) -> None:
        super().__init__(message)
        self.fault = fault
        """A stable word for machines, for example ``empty-pit``; of LONGEST_FAULT characters at most."""
        self.message = message
        """A sentence for people: the move, and why it cannot be played."""


class InvalidMoveError(MoveError):
    """The text does not name any move of this game (syntax)."""


class IllegalMoveError(MoveError):
    """The move is one of the game's, but not allowed in this position (rules)."""


class PositionError(ValueError):
    """A text that is not a position of this game."""


S = TypeVar("S")
M = TypeVar("M")


class Game(Protocol[S, M]):
    """A rule book.

    Contract, tested for every registered game in tests/games/test_games_contract.py:
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
        """Return the start position."""
        ...

    def to_move(self, state: S) -> Side:
        """Return the player to move; in a finished game, the player who would have been."""
        ...

    def seats(self, state: S) -> tuple[str, str]:
        """Return the names of the seats that FIRST and SECOND hold now, for example South and North."""
        ...

    def legal_moves(self, state: S) -> Sequence[M]:
        """Return all legal moves, sorted; empty if and only if the game is over."""
        ...

    def apply(self, state: S, move: M) -> S:
        """Return the state after a move, and leave ``state`` unchanged.  Raises IllegalMoveError."""
        ...

    def outcome(self, state: S) -> Outcome | None:
        """Return the result, or None while the game goes on."""
        ...

    def is_half_over(self, state: S) -> bool:
        """Return True if the game is half over; it stays True for the rest of the game.

        Two games with the same moves so far are near-copies: see docs/statistics.md.
        """
        ...

    def parse_move(self, state: S, text: str) -> M:
        """Return the move that a text names.  Raises InvalidMoveError (syntax, not legality)."""
        ...

    def format_move(self, state: S, move: M) -> str:
        """Return the canonical text of a move."""
        ...

    def board_text(self, state: S) -> str:
        """Return the position as it is sent to bots."""
        ...

    def layout(self, state: S) -> "Layout":
        """Return the description of the board from which texts and pictures are made."""
        ...

    def format_state(self, state: S) -> str:
        """Return the exact text of a state."""
        ...

    def parse_state(self, text: str) -> S:
        """Return the state that a text names.  Raises PositionError."""
        ...
