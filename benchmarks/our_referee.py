"""The same program as referee.c, with our referee: plays games between two bots, prints the same numbers.

usage: python -m benchmarks.our_referee GAMES CONCURRENCY FIRST [ARGUMENT...] -- SECOND [ARGUMENT...]

CONCURRENCY 0 plays in this process, one game after the other, and counts its CPU; 1 or more plays through
the tournaments' local engine, so many games at once in worker processes, and counts only the wall time.
Prints one JSON object: the keys of referee.c that can be measured from outside of the referee.
"""

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import trio

from referee.clock import TimeControl
from referee.play import Job, play_game
from referee.results import GameRecord, Player

GAME = "manchester"
CONTROL = TimeControl(move_s=10.0)
WARM_UP_GAMES = 3
"""Imports, caches and worker processes are not what is measured."""


def cpu_s() -> float:
    """User and system time of this process so far."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def make_job(number: int, commands: list[list[str]]) -> Job:
    cwd = str(Path.cwd())
    first, second = (Player(Path(command[0]).name, tuple(command), cwd, "") for command in commands)
    return Job(f"bench-{number}", GAME, (first, second), CONTROL)


def phases_s(record: GameRecord) -> tuple[float, float]:
    """Wall time of "moving" and of "play", as referee.c defines them."""
    sent = [line.at_us for line in record.wire if line.direction == "to"]
    replies = [line.at_us for line in record.wire if line.direction == "from"]
    return (sent[-1] - replies[1]) / 1e6, (sent[-1] - sent[0]) / 1e6


def start_only(commands: list[list[str]], games: int) -> float:
    """CPU of this process per game for nothing but the start and the end of the two bots' processes."""
    before = cpu_s()
    for _ in range(games):
        for command in commands:
            subprocess.Popen(
                [command[0], "exit"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
            ).communicate()  # fmt: skip
    return (cpu_s() - before) / games


async def play_here(commands: list[list[str]], games: int) -> list[GameRecord]:
    return [await play_game(make_job(number, commands)) for number in range(games)]
