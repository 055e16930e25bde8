"""Benchmark of `kalarena verify` on a store of made-up games, with one process and with one on each core.

Two bots really play two games, which are stored again for many rounds.  Each game has a record and belongs
to the schedule, so that nothing is wrong.  The wall time of each run and the CPU time of all processes are
printed.

The exit status is 0, or 1 if the command fails.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import trio

from benchmarks.bench_table import CONTROL, GAME, _cpu_of_children, summary_of
from referee.judge.results import GameRecord, Player
from referee.playing import Job, play_game
from referee.sandbox.host_resources import core_count
from tournaments.bots.resolve import resolve_bot
from tournaments.results.game_summary import PackedGame
from tournaments.results.store import Store

GAMES = 4000
TOGETHER = 500
"""Games in a transaction."""
VERIFY = [sys.executable, "-c", "from tournaments.cli.main import entry; entry()", "verify"]
"""The command of this source tree."""


def make_store(directory: Path, games: int) -> None:
    """Make a store of made-up games between two bots, with a chain."""
    summary, pairings = summary_of(games, 2)
    records = {first: _played(summary.file_bots[first], summary.file_bots[1 - first]) for first in (0, 1)}
    packed = [
        PackedGame.of(replace(records[one.first], key=one.key), one.round, one.pair) for one in pairings
    ]
    with Store(directory / "results.db") as store:
        store.claim(summary.name, summary.config(), {})
        for begin in range(0, len(packed), TOGETHER):
            store.add_all(packed[begin : begin + TOGETHER])


def _played(first: str, second: str) -> GameRecord:
    """Play a game of two bots that are part of Kalarena, and return its record."""
    command = resolve_bot("greedy", Path.cwd()).command
    players = (Player(first, command, os.fspath(Path.cwd())), Player(second, command, os.fspath(Path.cwd())))
    return trio.run(play_game, Job("r001-1v2", GAME, players, CONTROL))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--games", type=int, default=GAMES)
    parser.add_argument("--jobs", type=int, default=core_count())
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        make_store(directory, arguments.games)
        for jobs in sorted({1, arguments.jobs}):
            began, before = time.perf_counter(), _cpu_of_children()
            command = [*VERIFY, os.fspath(directory), "--jobs", str(jobs)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                print(done.stdout + done.stderr, file=sys.stderr)
                return 1
            took, cpu = time.perf_counter() - began, _cpu_of_children() - before
            print(
                f"verify of {arguments.games} games, {jobs} at a time: {took:.1f} s, "
                f"{arguments.games / took:.0f} games/s, CPU {cpu:.1f} s"
            )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
