"""Players in a session; a player without a process, such as a person or a service, begins here."""

import contextlib
import os
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator

from protocol.codec import decode_bytes
from protocol.lines import LineBuffer
from referee.judge.events import (
    Event,
    InputClosed,
    LimitPassed,
    LineReceived,
    LineTooLong,
    OutputClosed,
    ProcessEnded,
    Sent,
)
from referee.judge.limits import Limits
from referee.judge.record_rows import KeptFile
from referee.judge.results import Player
from referee.judge.stderr import StderrBuffer
from referee.process.process_tree import ProcessTree

now = time.monotonic
"""Clock of all stamps and deadlines, in seconds."""
USUAL_LIMITS = Limits()
READ_BYTES = 4096
"""Bytes of one read of the output: a move is below 20, and a small buffer is a quick one."""
DRAIN_READS = 256
"""Maximum number of reads in one call when a player has ended: a bot's descendant may write for ever."""


class SessionPlayer(ABC):
    """A player in a session: by itself one without a process, whose lines come from elsewhere.

    A subclass overrides ``receive``, and has ``send`` called for each of the player's lines and ``end`` when
    the player has gone; both may be called from any thread, and at any time.  Time is charged by the wall
    clock.  ``referee.process.bot.Bot`` replaces all methods by those of a process.

    The session waits for the descriptors; no method blocks for long.
    """

    errors: int | None = None
    """Descriptor of standard error; None if ``stderr`` is filled in another way."""
    exit_descriptor: int | None = None
    """Descriptor that is readable when the player has ended; None where only ``has_ended`` shows this."""
    is_near_a_limit = False
    """True if limits are to be checked more often."""
    is_observed = False
    """True if the player's behaviour is examined: it is never suspended, and the moment in which it has read
    START is noted closely."""

    def __init__(self, index: int, player: Player, limits: Limits = USUAL_LIMITS) -> None:
        self.index = index
        self.player = player
        self.limits = limits
        self.stdout = -1
        """Descriptor of the player's lines, after ``wait_ready``."""
        self.stderr = StderrBuffer(limits.stderr_bytes)
        self.status: int | None = None
        """The exit status, once the player has ended; negative is a signal's number."""
        self.ended_at: float | None = None
        """Time at which the end of the player was noticed; None while it lives."""
        self.output_ended_at: float | None = None
        """Time of the end of the output; None while it is open."""
        self._lines = LineBuffer(limits.line_bytes)
        self._overflow_reported = False
        self._has_sent = False
        self._lock = threading.Lock()
        """Held while a pipe is written or closed: another file may have a closed descriptor's number."""
        self._final_status: int | None = None
        """The status that ``end`` was called with."""
        self._pipes: tuple[int, int, int, int] | None = None
        """Both ends of the pipe of lines, and of that of the end."""

    @property
    def tree(self) -> ProcessTree | None:
        """The player's processes, whose counters the fair clock reads; None if there are none."""
        return None

    @property
    def pid(self) -> int:
        """The number of the player's process."""
        return os.getpid()

    @property
    def unfinished(self) -> str:
        """The output after the last line feed."""
        return decode_bytes(self._lines.unfinished)

    @property
    def runtime_settings(self) -> dict[str, str]:
        """The environment variables that pass the player's limits to its runtime."""
        return {}

    @property
    def peak_memory_bytes(self) -> int | None:
        """Peak memory of all processes together; None where it is not counted."""
        return None

    @abstractmethod
    def receive(self, line: str) -> None:
        """Process a line of the referee.  This is the method to override; it must not block."""

    def send(self, line: str) -> None:
        """Send a line of the player to the referee.

        The line is lost after 64 KB that the referee has not read: that many are a flood.
        """
        self._pass_on(1, line.encode()[: self.limits.line_bytes + 1] + b"\n")

    def end(self, status: int = 0, errors: str = "") -> None:
        """End the player, with an exit status and a text that is kept as its standard error."""
        self.stderr.feed(errors.encode("utf-8", "replace"))
        self._final_status = status
        self._pass_on(3, b"!")  # it is never read, so that the descriptor stays readable

    def _pass_on(self, end: int, data: bytes) -> None:
        with self._lock:
            if self._pipes:  # else the game is over
                with contextlib.suppress(BlockingIOError):
                    os.write(self._pipes[end], data)

    # The session and ``playing`` call the rest.

    def wait_ready(self) -> None:
        """Wait until the player can receive lines."""
        self._pipes = (*os.pipe(), *os.pipe())
        self.stdout, _, self.exit_descriptor, _ = self._pipes
        for descriptor in self._pipes:
            os.set_blocking(descriptor, False)

    def write(self, line: str) -> Event:
        """Send a line to the player, whole or not at all, and return the event of the outcome."""
        if self.status is not None:
            return InputClosed(self.index, now())
        self.receive(line)
        return Sent(self.index, now(), line)

    def has_read_all(self) -> bool:
        """Return True if the player has read all lines."""
        return True

    def has_closed_input(self) -> bool:
        """Return True if the player reads no more lines."""
        return self.has_ended()

    def read_output(self) -> list[Event]:
        """Read once, and return the events of the lines that are now complete."""
        try:
            data = os.read(self.stdout, READ_BYTES)
        except BlockingIOError:
            return []
        at = now()
        if not data:
            self.output_ended_at = at
            return []
        self._has_sent = True
        lines = self._lines.feed(data)
        events: list[Event]
        if len(lines) == 1:  # as it nearly always is, and a comprehension costs a call
            events = [LineReceived(self.index, at, decode_bytes(lines[0]))]
        else:
            events = [LineReceived(self.index, at, decode_bytes(line)) for line in lines]
        if self._lines.overflow is not None and not self._overflow_reported:
            self._overflow_reported = True
            events.append(LineTooLong(self.index, at, decode_bytes(self._lines.overflow)))
        return events

    def read_errors(self) -> bool:
        """Read once from standard error; return False at its end, or if nothing was there."""
        return False

    def discard_output(self) -> bool:
        """Read once after the game; return False at the end of the output, or if nothing was there."""
        return bool(self.read_output())

    def has_ended(self) -> bool:
        """Return True if the player has ended."""
        if self.status is None and self._final_status is not None:
            self.status, self.ended_at = self._final_status, now()
        return self.status is not None

    def closed_input_event(self, event: InputClosed, within_s: float) -> Event:
        """Return the event of the player's end if it comes within this time; otherwise ``event``."""
        return self.exited_event() if self.has_ended() else event

    def drain(self) -> Iterator[Event]:
        """Yield the events of the last lines of a player that has ended, and read its standard error."""
        yield from self.read_output()

    def drain_errors(self) -> None:
        """Read all that is available on standard error."""
        for _ in range(DRAIN_READS):
            if not self.read_errors():
                return

    def exited_event(self) -> ProcessEnded:
        """Return the event of the player's end; to be called only after ``has_ended``."""
        assert self.status is not None
        assert self.ended_at is not None
        return ProcessEnded(self.index, self.ended_at, self.status, "", self.stderr.last_words())

    def output_closed_event(self) -> OutputClosed:
        """Return the event of an end of output that was not followed by an end of the player."""
        assert self.output_ended_at is not None
        return OutputClosed(self.index, self.output_ended_at, self.unfinished)

    def limit_passed(self) -> LimitPassed | None:
        """Check the limits; end the player and return the event if it exceeds one."""
        return None

    def written_files(self) -> tuple[KeptFile, ...]:
        """Return the files that the player wrote; to be called after its end and before ``close``."""
        return ()

    def kill(self) -> None:
        """End the player at once.  Never fails."""
        if self.status is None:
            self.status, self.ended_at = 0, now()

    def close(self) -> str:
        """Close all descriptors; to be called after ``kill``.

        Returns:
            A sentence on what could not be ended, or an empty text.
        """
        with self._lock:
            for descriptor in self._pipes or ():
                os.close(descriptor)
            self._pipes = None
        return ""
