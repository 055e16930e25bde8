"""Bots that use a given CPU time for each move, their games, and processes that keep a machine busy."""

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from referee.judge.clock import TimeControl
from referee.judge.limits import Limits
from referee.judge.results import GameRecord, Player
from referee.playing import Job, play_alone

SOURCES = Path(__file__).parent
THREADED = ("one", "thread", "threads", "pool", "child", "sleep")
"""The ways of busy_bot.cpp."""
KINDS = (*THREADED, "jvm")
SPIN = (sys.executable, "-S", "-E", "-c", "while True: pass")


class Busy:
    """Processes that compute, each in its own session, so that the scheduler groups none of them.

    They are the children of a helper, since a process that plays games ends all children that it has.
    """

    HELPER = (
        "import subprocess, sys\n"
        "spin = [subprocess.Popen(sys.argv[2:], start_new_session=True) for _ in range(int(sys.argv[1]))]\n"
        "sys.stdin.read()\n"
        "for each in spin: each.kill()\n"
        "for each in spin: each.wait()\n"
    )

    def __init__(self, count: int) -> None:
        self._count = count
        self._held = -1

    def __enter__(self) -> "Busy":
        ours, self._held = os.pipe()
        command = [sys.executable, "-S", "-E", "-c", self.HELPER, str(self._count), *SPIN]
        helper = os.fork()
        if helper == 0:  # its child is nobody's here
            os.setsid()
            subprocess.Popen(command, stdin=ours)
            os._exit(0)
        os.waitpid(helper, 0)
        os.close(ours)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._held)


def build(folder: Path, seconds: float) -> dict[str, Player]:
    """Compile the bots; return a player for each kind of those whose compiler is there."""
    players = {}
    if shutil.which("g++"):
        program = folder / "busy_bot"
        source = str(SOURCES / "busy_bot.cpp")
        subprocess.run(["g++", "-O1", "-pthread", "-o", str(program), source], check=True)
        for kind in THREADED:
            players[kind] = _player(kind, (str(program), kind, str(seconds)), folder)
    java = shutil.which("java")
    if java and shutil.which("javac"):
        subprocess.run(["javac", "-d", str(folder), str(SOURCES / "BusyBot.java")], check=True)
        # Two collecting threads whatever the host: their waits are what this bot is about.
        command = (java, "-XX:+UseParallelGC", "-XX:ParallelGCThreads=2", "-Xmx200m", "-cp", str(folder))
        players["jvm"] = _player("jvm", (*command, "BusyBot", str(seconds)), folder)
    return players


def _player(name: str, command: tuple[str, ...], folder: Path) -> Player:
    return Player(name, command, str(folder), reads=(str(folder),))


def play(player: Player, limit_s: float, game: str = "manchester") -> GameRecord:
    """Play a game of a bot against itself, with a limit for each move and no margin."""
    control = TimeControl(move_s=limit_s, margin_s=0.0, setup_s=0.0, start_s=60.0)
    return play_alone(Job("fair-clock", game, (player, player), control, Limits(end_grace_s=20.0)))


def ratios(record: GameRecord) -> list[float]:
    """Return charged time over used time for each move of a game, first turns left out.

    The first turn begins when the referee notices that START was taken, which is after the bot has begun.
    """
    found: list[float] = []
    for player in (0, 1):
        charged = [move.charged_us for move in record.moves if move.player == player]
        used = list(_numbers(record.stderr[player]))[: len(charged)]
        pairs = list(zip(charged, used, strict=True))
        found += [charged_us / 1e6 / seconds for charged_us, seconds in pairs[player == 0 :]]
    return found


def _numbers(text: str) -> Iterator[float]:
    for word in text.split():
        with contextlib.suppress(ValueError):
            yield float(word)
