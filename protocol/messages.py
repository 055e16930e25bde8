"""The messages of the protocol, as immutable values.

Source: the Manchester course's protocol, docs/protocol.md.  Moves, boards and seats are texts here; the game
defines their meaning.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class Next(StrEnum):
    """The last field of a CHANGE: the player to move after it."""

    YOU = "YOU"
    OPPONENT = "OPP"
    NOBODY = "END"
    """The game is over."""


@dataclass(frozen=True, slots=True)
class Start:
    """``START;<seat>``: the game begins; the field is the bot's seat."""

    seat: str


class Change(NamedTuple):
    """``CHANGE;<move>;<board>;<next>``: a move, the board after it, and the player to move next."""

    move: str
    board: str
    next: Next


@dataclass(frozen=True, slots=True)
class Time:
    """``TIME;<own ms>;<opponent ms>``: the time left on the clocks, for bots with the capability ``time``.

    It comes right before the line that gives the bot the turn.
    """

    own_ms: int
    opponent_ms: int


@dataclass(frozen=True, slots=True)
class End:
    """``END``: the game is over, and so is the conversation."""


class Move(NamedTuple):
    """``MOVE;<move>``: the bot's move."""

    move: str


@dataclass(frozen=True, slots=True)
class Swap:
    """``SWAP``: the bot takes the other seat (pie rule)."""


RefereeMessage = Start | Change | Time | End
"""Any message of the referee to a bot."""

BotMessage = Move | Swap
"""Any message of a bot to the referee."""

OPENING_WORD = "OPENING"
"""The move of a CHANGE that sets a position up before the first turn."""

SWAP_WORD = "SWAP"
"""The word for a swap, both as a bot's line and as the move of a CHANGE."""
