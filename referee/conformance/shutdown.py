"""Observation of a bot after END: its output, its end, and the processes that outlive it."""

import contextlib
import os
import select
from collections.abc import Callable, Iterator
from pathlib import Path

from protocol.codec import decode_bytes
from referee.conformance.script import Observations
from referee.errors import RefereeError
from referee.process.bot import Bot, now
from referee.process.turn_timer import Grace
from referee.session import LIMITS_POLL_S

POLL_S = 0.0005
"""Seconds between two checks of a condition for which there is no event to wait for."""
LEFT_OPEN_S = 0.1
"""Seconds of charged time to wait for the end of the output after the bot's end.  If the output is still open
then, another process holds it."""
KEPT_BYTES = 4096
"""Bytes kept of the output after END: enough to quote."""
EXAMINED_BYTES = 1 << 20
"""Bytes read of the output after the end of the game: more would not add information."""
READ_BYTES = 65536

Wait = Callable[[float], set[int]]
"""Function that waits for at most so many seconds and returns the descriptors that are ready."""


class ShutdownObserver:
    """Observes one bot after the verdict."""

    def __init__(self, observed: Observations, poll: select.poll) -> None:
        self._observed = observed
        self._poll = poll

    def observe(self, bot: Bot, grace: Grace, wait: Wait) -> None:
        """Observe the bot from END until it has ended by itself or the grace is over.

        Raises:
            RefereeError: The host kept the bot waiting for so long that its end could not be timed.
        """
        limits_due = now() + LIMITS_POLL_S
        while not bot.has_ended() and not grace.is_over():
            self._read(bot, wait(min(LIMITS_POLL_S, grace.left_s)))
            if now() >= limits_due and not bot.has_ended():
                bot.limit_passed()  # which kills it
                limits_due = now() + LIMITS_POLL_S
        if grace.is_hosts_fault and not bot.has_ended():
            raise RefereeError(
                f"this host kept {bot.player.name} waiting for a CPU for so long after END that its end "
                "could not be timed"
            )
        if not bot.has_ended():
            self._observed.activity = bot.tree.activity() if bot.tree is not None else ""
            return
        self._observed.ended_us = grace.spent_us()
        if bot.exit_descriptor is not None:  # it stays readable and would end every wait
            self._poll.unregister(bot.exit_descriptor)
        left_open = grace.again(LEFT_OPEN_S)
        while bot.output_ended_at is None and not left_open.is_over():
            self._read(bot, wait(POLL_S))
        self._observed.left_behind = sorted(_surviving_programs(bot))
        self._observed.holds_output = bool(self._observed.left_behind) and bot.output_ended_at is None

    def record_output(self, data: bytes) -> None:
        """Record output that came after the end of the game."""
        observed = self._observed
        if len(observed.after_end) < KEPT_BYTES:
            observed.after_end = (observed.after_end + decode_bytes(data))[:KEPT_BYTES]
        observed.after_end_bytes += len(data)
        observed.after_end_lines += data.count(b"\n")

    def _read(self, bot: Bot, ready: set[int]) -> None:
        if bot.stdout in ready and bot.output_ended_at is None:
            with contextlib.suppress(BlockingIOError):
                data = os.read(bot.stdout, READ_BYTES)
                if data:
                    self.record_output(data)
                else:
                    bot.output_ended_at = now()
                if not data or self._observed.after_end_bytes > EXAMINED_BYTES:
                    self._poll.unregister(bot.stdout)
        if bot.errors in ready:
            read_errors(bot, self._poll)


def read_errors(bot: Bot, poll: select.poll) -> None:
    """Read from standard error, which is ready; stop watching it at its end."""
    if not bot.read_errors():
        poll.unregister(bot.errors)


def _surviving_programs(bot: Bot) -> Iterator[str]:
    """Yield the names of the bot's programs that are still alive after its own process has ended."""
    pids = set(bot.tree.pids()) if bot.tree is not None else set()
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError):
            if os.getsid(int(entry.name)) == bot.pid:
                pids.add(int(entry.name))
    for pid in pids - {bot.pid}:
        with contextlib.suppress(OSError, IndexError):
            name, _, rest = Path(f"/proc/{pid}/stat").read_text().partition("(")[2].rpartition(")")
            if rest.split()[0] not in "ZX" and name != "bwrap":
                yield name
