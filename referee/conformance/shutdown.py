"""Observation of a bot after END: its output, its end, and the processes that outlive it."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from referee.conformance.script import Observations
from referee.errors import RefereeError
from referee.process.bot import Bot
from referee.process.turn_timer import Grace
from referee.session import Session

POLL_S = 0.0005
"""Seconds between two checks of a condition for which there is no event to wait for."""
LEFT_OPEN_S = 0.1
"""Seconds of charged time to wait for the end of the output after the bot's end.  If the output is still open
then, another process holds it."""


async def observe_shutdown(bot: Bot, observed: Observations, session: Session, grace_s: float) -> None:
    """Observe the bot from END until it has ended by itself or the grace is over.

    Raises:
        RefereeError: The host kept the bot waiting for so long that its end could not be timed.
    """
    grace = Grace(session.timer, bot.index, grace_s)
    await session.wind_down(lambda: 0.0 if grace.is_over() else max(POLL_S, grace.left_s))
    if grace.is_hosts_fault and not bot.has_ended():
        raise RefereeError(
            f"this host kept {bot.player.name} waiting for a CPU for so long after END that its end "
            "could not be timed"
        )
    if not bot.has_ended():
        observed.activity = bot.tree.activity() if bot.tree is not None else ""
        return
    observed.ended_us = grace.spent_us()
    left_open = grace.again(LEFT_OPEN_S)
    while bot.output_ended_at is None and not left_open.is_over():
        session.timer.mark()
        await session.drain_once(POLL_S)
    observed.left_behind = sorted(_surviving_programs(bot))
    observed.holds_output = bool(observed.left_behind) and bot.output_ended_at is None


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
