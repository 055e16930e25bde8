"""Classification of a player's end by what was seen of its cause (pure)."""

import signal

from referee.errors import RefereeError
from referee.judge.events import BotExited, LimitPassed, NotStarted, ProcessEnded
from referee.judge.limits import Limits
from referee.judge.runtime_messages import NEARLY_ALL

KILLED = (-signal.SIGKILL, 128 + signal.SIGKILL)
"""Exit statuses of a killed process, and of a shell whose program was killed."""


def classified(end: ProcessEnded, name: str, limits: Limits | None) -> BotExited | LimitPassed | NotStarted:
    """Return the event that the end of a player is.

    A limit that was reported before is not reported again.

    Args:
        end: What was seen.
        name: The player's name.
        limits: The player's limits; None if it has none.

    Raises:
        RefereeError: The sandbox or the host failed, and not the bot.
    """
    if not end.is_reported and limits is not None:
        if end.group_kills is not None:
            own, all_kills = end.group_kills
            if own and all_kills:
                used_mb = max(end.held_mb, limits.memory_mb)
                return LimitPassed(end.player, end.at, "memory", used_mb, limits.memory_mb)
            if all_kills:
                raise RefereeError(f"{name} was killed within its limit: the host has no memory left")
        elif end.status in KILLED and end.host_kills:
            raise RefereeError(
                f"{name} was killed while this host, or what we may use of it, had no memory left"
            )
        if end.sandbox_fault is not None:
            raise RefereeError(f"the sandbox of {name} failed: {end.sandbox_fault}")
        if end.not_executed is not None:
            return NotStarted(end.player, end.at, end.not_executed, end.why_other)
        if end.new_files > limits.directory_files:
            return LimitPassed(end.player, end.at, "files", end.new_files, limits.directory_files)
    is_near = limits is not None and end.held_mb >= NEARLY_ALL * limits.memory_mb
    held_mb = end.held_mb if is_near else 0
    return BotExited(*end[:5], held_mb, end.full)
