"""Small games for tests of engines, and waiting for what they start."""

import sys
from collections.abc import Callable
from pathlib import Path

import trio

from referee.judge.clock import TimeControl
from referee.judge.results import Player
from referee.playing import Job
from tests.process.test_faults import honest, scripted
from tournaments.engines.base import OnStart

LIMIT_S = 300
"""Bound for what takes a second or two."""
LOOK_S = 0.02
"""Seconds between two checks of a condition without an event."""


def job(first: Player | None = None, second: Player | None = None, key: str = "r001-1v2") -> Job:
    """A small game; between honest bots unless others are given."""
    return Job(key, "kalah(4,3)", (first or honest(), second or honest()), TimeControl(move_s=60))


def unhurried() -> Player:
    """A bot whose games last so long that they overlap on a busy machine, and that are not over at once."""
    return scripted("--do", "slow", "--reply", "1000")


def assassin(folder: Path) -> Player:
    """A bot that kills the process that started it."""
    program = folder / "assassin.py"
    program.write_text("import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\n")
    return Player("assassin", (sys.executable, "-S", "-E", str(program)), str(folder))


def noted(begun: list[str], key: str) -> OnStart:
    """A callback that records the beginning of a game."""
    return lambda _host: begun.append(key)


async def becomes(
    condition: Callable[[], bool],
    within_s: float,
    seen: Callable[[], object] = lambda: "",
    every_s: float = LOOK_S,
) -> None:
    """Wait for a condition that no event reports; if it does not come true, show what is seen instead."""
    until = trio.current_time() + within_s
    while not condition():
        assert trio.current_time() < until, seen()
        await trio.sleep(every_s)


def command_line(pid: int) -> str:
    """The command line of a process; empty if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""
