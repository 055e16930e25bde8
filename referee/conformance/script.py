"""The opponent's script of a conformance game, and the observations beside the record.  Pure."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from protocol.codec import decode_bytes
from protocol.messages import Next
from referee.games.base import Side
from referee.games.catalog import AnyGame
from referee.judge.results import GameRecord
from referee.judge.runtime_messages import begins_error_message

FORFEIT_LINE = "the test opponent ends the game here"
"""The line by which the opponent loses on purpose: no message of the protocol."""
KEPT_BYTES = 4096
"""Bytes kept of the output after END: enough to quote."""

Choose = Callable[[AnyGame, Any], Any]
"""The opponent's choice of a move: (game, state) -> a legal move."""


@dataclass(frozen=True)
class TestOpponent:
    """The script of the opponent in a conformance game."""

    __test__ = False  # pytest collects classes of this name

    choose: Choose
    stops_at: int | None = None
    """Number of the reply, counted from 1, at which the opponent loses on purpose, so that the bot receives
    END while it waits; None to play on."""
    plays_on_after_swap: bool = False
    """True if the opponent ignores ``stops_at`` once the bot has swapped."""
    leaves_in: int | None = None
    """Number of the bot's turn in which the opponent's process is reported to have ended, so that the bot
    receives END while it thinks (in the next turn, if it has replied before the report); None to stay."""
    waits: bool = False
    """True if the opponent replies only when the bot has stopped sending (or QUIET_S has passed)."""


@dataclass(frozen=True, slots=True)
class FragmentedLine:
    """A line that came in several reads."""

    line: str
    count: int
    span_us: int
    """Microseconds from the first read to the last, less the bot's waits for a CPU."""


@dataclass(frozen=True, slots=True)
class UnexpectedLine:
    """A line that came while the bot was not on turn."""

    line: str
    after: str
    """The last line sent to the bot before that."""


@dataclass
class Observations:
    """Observations of the bot that are not in the record."""

    start_us: int | None = None
    """Microseconds from the start of the process until it took START; None if it did not."""
    stderr_before_start: int = 0
    """Bytes on standard error before START was taken."""
    stderr_bytes: int = 0
    """Bytes on standard error in all."""
    fragmented_lines: list[FragmentedLine] = field(default_factory=list)
    unexpected_lines: list[UnexpectedLine] = field(default_factory=list)
    long_line_bytes: int = 0
    """Bytes of a line that was too long, as many as were read; 0 if there was none."""
    has_long_line_ended: bool = False
    """True if the line feed of that line was read."""
    after_end: str = ""
    """The bot's output after the game had ended, cut after KEPT_BYTES."""
    after_end_bytes: int = 0
    after_end_lines: int = 0
    was_on_turn: bool = False
    """True if that output may be the bot's reply: the bot was on turn when the game ended."""
    ended_us: int | None = None
    """Charged time from END until the process had ended, in microseconds (referee/judge/clock.py); None if it
    had to be killed.  With the wall clock, and on systems without counters, all time is charged."""
    activity: str = ""
    """The bot's activity when it had to be killed, one of events.ACTIVITIES."""
    left_behind: list[str] = field(default_factory=list)
    """Names of the bot's programs that were alive after its own process had ended."""
    holds_output: bool = False
    """True if one of these programs holds the bot's standard output open."""
    cpu_us: int | None = None
    """CPU time from START to END, in microseconds; this and the next value are None where they were not
    read."""
    wait_us: int | None = None
    """Stalled time from START to END, in microseconds (referee/process/cpu_accounting.py)."""
    memory_bytes: int = 0
    """The highest memory reading, in bytes."""

    def add_output(self, data: bytes) -> None:
        """Add output that came after the end of the game."""
        if len(self.after_end) < KEPT_BYTES:
            self.after_end = (self.after_end + decode_bytes(data))[:KEPT_BYTES]
        self.after_end_bytes += len(data)
        self.after_end_lines += data.count(b"\n")

    def add_turns(self, record: GameRecord, index: int) -> None:
        """Find the lines that came out of turn, and whether the bot was on turn at the end."""
        last, early, on_turn, gives_up = "", 0, False, False
        for player, direction, line, _ in record.wire:
            if player != index:
                continue
            if direction == "from":
                if on_turn:
                    gives_up = begins_error_message(line)
                elif not gives_up:  # the lines of a runtime that gives up misunderstand no turn
                    early += 1
                    self.unexpected_lines.append(UnexpectedLine(line, last))
                on_turn = False
                continue
            last = line
            begins = index == Side.FIRST and not record.opening and line.startswith("START;")
            if begins or line.endswith(f";{Next.YOU}"):
                on_turn = not early  # else its earliest line was the reply
                early = max(0, early - 1)
        self.was_on_turn = on_turn and self.start_us is not None


@dataclass(frozen=True)
class ConformanceGame:
    """A completed conformance game."""

    record: GameRecord
    observed: Observations
