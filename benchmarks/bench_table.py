"""Measures `kalarena tournament table` on a store of 100,000 games, as a process of its own.

The games are made up: forty bots of different strength in a round robin, every game different from all
others, each with the record of one of a few real games.  The median of several runs is printed beside the
target, and the CPU time, which says more on a machine that has other work.

The exit status is 0 whether or not the target is reached, 1 if the command fails.
"""

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from statistics import median

import trio

from referee.judge.clock import TimeControl
from referee.judge.results import GameRecord, Player
from referee.playing import Job, play_game
from tournaments.bots.resolve import resolve_bot
from tournaments.reporting.tournament_results import TournamentResults
from tournaments.results.game_summary import GameSummary, PackedGame
from tournaments.results.packing import Packed, joined, pack_small, parts_of
from tournaments.results.rulings import Rulings
from tournaments.results.store import Store
from tournaments.schedule.pairing import Pairing
from tournaments.schedule.plan import Plan

TARGET_S = 2.0
"""Target in seconds from the start of the command to the whole table: a wait that surprises nobody."""
TARGET_BYTES = 600
"""Bytes of a game in the store, with its entry in the hash chain: 60 MB for 100,000 games."""

BOTS = 40
"""As many as a course has groups."""
GAMES = 100_000
"""Over sixty rounds of them."""
GAME = "manchester"
CONTROL = TimeControl(move_s=10.0)
ELO_STEP = 20.0
"""Between neighbours: the first beats the last nearly always, neighbours are close."""
DRAWS = 0.1
PLAYED_BY = ("greedy", "first_legal", "random:1", "minimax:3", "random:2", "greedy", "minimax:4", "random:3")
"""Sample bots, each of which plays the next one; the games that are stored are copies of these."""
SANDBOX = "bubblewrap+cgroup"
"""Tier of a course's server."""
TOGETHER = 500
"""Games in a transaction."""

TABLE = [sys.executable, "-c", "from tournaments.cli.main import entry; entry()", "tournament", "table"]
"""The command of this source tree."""


def summary_of(games: int, bots: int) -> tuple[TournamentResults, list[Pairing]]:
    """A round robin of so many games, before the first one, and these games."""
    names = [f"bot {number:02d}" for number in range(1, bots + 1)]
    rounds = -(-games // (bots * (bots - 1)))
    plan = Plan(rounds=rounds, width=len(str(bots)))
    summary = TournamentResults("Benchmark", GAME, str(CONTROL), names, "points", plan)
    rulings = Rulings(names)
    return summary, list(plan.schedule(names, rulings.entrants).pairings(rulings.history))[:games]


def real_games() -> list[GameRecord]:
    """Return games that the sample bots really play, some of them with the counters of their turns."""
    players = [
        Player(name, resolve_bot(name, Path.cwd()).command, os.fspath(Path.cwd())) for name in PLAYED_BY
    ]
    pairs = zip(players, players[1:] + players[:1], strict=True)
    return [trio.run(play_game, Job("r001-01v02", GAME, pair, CONTROL)) for pair in pairs]


def made_up(
    summary: TournamentResults, pairings: list[Pairing], records: list[GameRecord]
) -> Iterator[PackedGame]:
    """Yield the games of the pairings.

    Each has the packed record of one of ``records``, with the players of its pairing: such a record has the
    size of a real one, and cannot be read.
    """
    dice = random.Random(0)
    likes = [GameSummary.of(record, 1) for record in records]
    parts = [parts_of(pack_small(record)) for record in records]
    players = {
        name: parts_of(
            pack_small(replace(records[0], players=(replace(records[0].players[0], name=name),) * 2))
        )
        for name in summary.file_bots
    }
    for number, pairing in enumerate(pairings):
        better = 1 / (1 + 10 ** ((pairing.first - pairing.second) * ELO_STEP / 400))
        winner = None if dice.random() < DRAWS else int(dice.random() > better)
        first, second = summary.file_bots[pairing.first], summary.file_bots[pairing.second]
        like, part = likes[number % len(likes)], parts[number % len(likes)]
        game = like._replace(
            key=pairing.key,
            round=pairing.round,
            first=first,
            second=second,
            winner=winner,
            pair=pairing.pair,
            sandbox=SANDBOX,
            fingerprint=f"{dice.getrandbits(64):016x}",
            line=f"{dice.getrandbits(64):016x}",
        )
        shared = (*part.shared[:2], players[first].shared[2], players[second].shared[3])
        yield PackedGame(game, joined(Packed(shared, pairing.key, part.own)))


def make_store(directory: Path, games: int, bots: int) -> None:
    """Make a store of made-up games, with a hash chain."""
    summary, pairings = summary_of(games, bots)
    packed = made_up(summary, pairings, real_games())
    with Store(directory / "results.db") as store:
        store.claim(summary.name, summary.config(), {})
        while batch := list(islice(packed, TOGETHER)):
            store.add_all(batch)


def _cpu_of_children() -> float:
    """Seconds, of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--games", type=int, default=GAMES)
    parser.add_argument("--bots", type=int, default=BOTS)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--keep", type=Path, metavar="DIR", help="make the store here, and leave it")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        directory: Path = arguments.keep or Path(temporary)
        directory.mkdir(parents=True, exist_ok=True)
        if not (directory / "results.db").exists():
            make_store(directory, arguments.games, arguments.bots)
        store_bytes = sum(path.stat().st_size for path in directory.glob("results.db*"))
        took = []
        cpu: list[float] = []
        before = _cpu_of_children()
        for _ in range(arguments.repeat):
            began = time.perf_counter()
            done = subprocess.run([*TABLE, os.fspath(directory)], capture_output=True, text=True, check=False)
            took.append(time.perf_counter() - began)
            cpu.append(_cpu_of_children() - before - sum(cpu))
            if done.returncode:
                print(done.stderr, file=sys.stderr)
                return 1
    found = median(took)
    if arguments.json:
        print(
            json.dumps(
                {
                    "games": arguments.games,
                    "bots": arguments.bots,
                    "table_s": took,
                    "cpu_s": cpu,
                    "store_bytes": store_bytes,
                }
            )
        )
    else:
        verdict = "reached" if found <= TARGET_S else "missed"
        runs = ", ".join(f"{one:.2f}" for one in took)
        print(f"table of {arguments.games} games of {arguments.bots} bots: {found:.2f} s, median of {runs}")
        size = store_bytes / arguments.games
        fits = "reached" if size <= TARGET_BYTES else "missed"
        print(f"store of {store_bytes / 1e6:.1f} MB, {size:.0f} bytes a game; target {TARGET_BYTES}, {fits}")
        print(f"CPU {median(cpu):.2f} s; target {TARGET_S:.1f} s, {verdict}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
