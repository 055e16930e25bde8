"""Compares our referee with a C referee of a few lines (referee.c), in one run and with the same bots.

Both play the same game of two bots that answer at once (instant_bot.c), again and again with fresh
processes, so all time that passes is the referee's, the kernel's and the process starts'.  Neither side
knows of the other: each is a program that prints numbers (referee.c, our_referee.py); here they are run
in turn, several times over, and the medians compared.  What the figures mean is said below the table.

The exit status is 0 whether or not the targets are reached, 1 if the two referees did not play the same
game, 2 if there is no C compiler.
"""

import argparse
import contextlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent

PAIRS = ((("",), ("last",)), (("",), ("swap",)), (("last",), ("last", "swap")), (("",), ("",)))
"""Arguments of the first and the second bot.  The first pair is timed; all must play alike."""

MAX_WALL_RATIO = 6.0
MAX_CPU_PER_GAME_MS = 2.5
MIN_GAMES_PER_S = 100.0
"""The targets of docs/design.md."""

NOTES = """\
wall per move: from the second bot's first reply until the last END is written, so without process starts.
  On one CPU it is what the two referees do; on several, the kernel's waking of another CPU comes on top.
CPU per game: of the referee's process, without that of starting processes, which is measured by itself: C
  before the first START and after the last END, ours by starting and reaping two bots that end at once.
games/s: everything counted.  C runs one process for each game at a time, ours the tournaments' local
  engine with warm workers{tournament}.
"""


@dataclass(frozen=True)
class Cost:
    """What one referee costs, in one run of many games."""

    wall_per_move_us: float
    cpu_per_move_us: float
    """Of the referee, without process starts."""
    cpu_per_game_ms: float
    """Of the referee, without process starts."""
    start_cpu_per_game_ms: float
    """Of the referee, for the start and the end of both bots' processes."""
    game: str
    """The moves that were played, and the final board."""

    @classmethod
    def of(cls, numbers: dict[str, Any]) -> "Cost":
        games, moves = numbers["games"], numbers["moves"]
        start = numbers["start_cpu_s"] if "start_cpu_s" in numbers else numbers["total_cpu_s"] - numbers["play_cpu_s"]
        cpu = numbers["total_cpu_s"] - start
        return cls(
            # The second reply opens the window, so two moves of each game are not in it.
            wall_per_move_us=numbers["moving_wall_s"] / (moves - 2 * games) * 1e6,
            cpu_per_move_us=cpu / moves * 1e6,
            cpu_per_game_ms=cpu / games * 1e3,
            start_cpu_per_game_ms=start / games * 1e3,
            game=f"{numbers['game']} -> {numbers['board']}",
        )
