"""What an interview asks for, and what it has seen beside the record.  Pure."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from referee.games.catalog import AnyGame
from referee.results import GameRecord

Choose = Callable[[AnyGame, Any], Any]
"""The examiner's play: (game, state) -> one of the state's legal moves."""


@dataclass(frozen=True)
class Examiner:
    """What the opponent of an interview does."""

    choose: Choose
    stops_at: int | None = None
    """At its reply of this number, counted from 1, it loses on purpose, so that the bot hears END while it
    waits; None plays on."""
    plays_on_after_swap: bool = False
    """Whether it does not stop once the bot has swapped."""
    leaves_in: int | None = None
    """In the bot's turn of this number its process is said to have ended, so that the bot hears END while it
    thinks (in the next turn, if it has replied before that could be said); None stays."""
    waits: bool = False
    """Whether it replies only when the bot has fallen silent (or QUIET_S has passed)."""


@dataclass(frozen=True, slots=True)
class Pieces:
    """A line that came in several reads."""

    line: str
    count: int
    span_us: int
    """From the first read to the last."""


@dataclass(frozen=True, slots=True)
class Unasked:
    """A line that came while the bot was not on turn."""

    line: str
    after: str
    """The line that the bot had been sent last."""


@dataclass
class Seen:
    """What was seen beside the record."""

    start_us: int | None = None
    """From the start of the process until it took START; None if it did not."""
    stderr_before_start: int = 0
    """Bytes on standard error until then."""
    stderr_bytes: int = 0
    """Bytes on standard error in all."""
    pieces: list[Pieces] = field(default_factory=list)
    unasked: list[Unasked] = field(default_factory=list)
    after_end: str = ""
    """What it said after the game had ended, cut after KEPT_BYTES."""
    after_end_bytes: int = 0
    after_end_lines: int = 0
    was_on_turn: bool = False
    """Whether it may have said that as its reply: it was on turn when the game ended."""
    ended_us: int | None = None
    """From END until its process had ended; None if it had to be killed."""
    doing: str = ""
    """What it was doing when it had to be killed, one of events.DOING."""
    left: list[str] = field(default_factory=list)
    """Names of the programs that lived on when its own process had ended."""
    holds_output: bool = False
    """Whether one of these holds its standard output open."""
    cpu_us: int | None = None
    """CPU time from START to END; this and the next one are None where they were not read."""
    wait_us: int | None = None
    """How long one of its threads, the one that waited longest, was ready meanwhile and had no CPU."""
    memory_bytes: int = 0
    """The most that it was seen to hold."""


@dataclass(frozen=True)
class Interview:
    """One interview, whole."""

    record: GameRecord
    seen: Seen
