"""What a bot does after END, and what it leaves behind: the last part of an interview."""

import contextlib
import os
import select
from collections.abc import Callable, Iterator
from pathlib import Path

from protocol.codec import decode_bytes
from referee.bot import Bot, now
from referee.driver import LIMITS_POLL_S
from referee.interview_script import Seen

POLL_S = 0.0005
"""How often something is looked at that wakes nobody."""
LEFT_OPEN_S = 0.1
"""After a bot's end, the end of its output is waited for so long; then another process holds it."""
KEPT_BYTES = 4096
"""Kept of what a bot says after END: enough to quote."""
EXAMINED_BYTES = 1 << 20
"""Read of what a bot says after the end of the game: more is no more telling."""
READ_BYTES = 65536

Wait = Callable[[float], set[int]]
"""Waits for at most so many seconds; the descriptors that are ready."""


class Aftermath:
    """Listens on after the verdict, and writes down what it hears."""

    def __init__(self, seen: Seen, poll: select.poll) -> None:
        self._seen = seen
        self._poll = poll

    def watch(self, bot: Bot, grace_s: float, wait: Wait) -> None:
        """From END until the bot has ended by itself, for so many seconds at most; nothing is killed here."""
        began = now()
        until = began + grace_s
        while not bot.has_ended() and now() < until:
            self._listen(bot, wait(min(LIMITS_POLL_S, max(0.0, until - now()))))
            if not bot.has_ended():
                bot.limit_passed()  # which kills it
        if not bot.has_ended():
            self._seen.doing = bot.tree.doing() if bot.tree is not None else ""
            return
        self._seen.ended_us = round((now() - began) * 1e6)
        if bot.exit_descriptor is not None:  # it would wake us for ever
            self._poll.unregister(bot.exit_descriptor)
        until = now() + LEFT_OPEN_S
        while bot.output_ended_at is None and now() < until:
            self._listen(bot, wait(POLL_S))
        self._seen.left = sorted(_living(bot))
        self._seen.holds_output = bool(self._seen.left) and bot.output_ended_at is None

    def keep(self, data: bytes) -> None:
        """Take what it said after the end of the game."""
        seen = self._seen
        if len(seen.after_end) < KEPT_BYTES:
            seen.after_end = (seen.after_end + decode_bytes(data))[:KEPT_BYTES]
        seen.after_end_bytes += len(data)
        seen.after_end_lines += data.count(b"\n")

    def _listen(self, bot: Bot, ready: set[int]) -> None:
        if bot.stdout in ready and bot.output_ended_at is None:
            with contextlib.suppress(BlockingIOError):
                data = os.read(bot.stdout, READ_BYTES)
                if data:
                    self.keep(data)
                else:
                    bot.output_ended_at = now()
                if not data or self._seen.after_end_bytes > EXAMINED_BYTES:
                    self._poll.unregister(bot.stdout)
        if bot.errors in ready:
            read_errors(bot, self._poll)


def read_errors(bot: Bot, poll: select.poll) -> None:
    """Take what waits on standard error, which is ready; at its end, it is watched no more."""
    if not bot.read_errors():
        poll.unregister(bot.errors)


def _living(bot: Bot) -> Iterator[str]:
    """Names of the programs of a bot that live on, its own process having ended."""
    numbers = set(bot.tree.pids()) if bot.tree is not None else set()
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError):
            if os.getsid(int(folder.name)) == bot.pid:
                numbers.add(int(folder.name))
    for number in numbers - {bot.pid}:
        with contextlib.suppress(OSError, IndexError):
            name, _, rest = (
                (Path("/proc") / str(number) / "stat").read_text().partition("(")[2].rpartition(")")
            )
            if rest.split()[0] not in "ZX" and name != "bwrap":
                yield name
