"""Measures `kalarena tournament report` on forty bots that met four times each, as a process of its own.

One real game of about as many moves as a game of the course has is kept 3,120 times under other names, with
results and times that are made up.

The exit status is 0 whether or not the target is reached, 1 if the command fails.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import trio

from referee.judge.clock import TimeControl
from referee.judge.results import GameRecord, MatchResult, Player, Reason
from referee.playing import Job, play_game
from tournaments.bots.resolve import resolve_bot
from tournaments.reporting.tournament_results import TournamentResults
from tournaments.results.store import Store
from tournaments.schedule.pairing import Entrant, History, Pairing
from tournaments.schedule.plan import Plan

TARGET_S = 60.0
"""On two slow cores: a lecturer waits for it once after a tournament."""
BOTS = 40
"""As many as a course has groups."""
ROUNDS = 2
"""3,120 games."""
GAME = "manchester"
CONTROL = TimeControl(move_s=10.0)
REPORT = [sys.executable, "-c", "from tournaments.cli.main import entry; entry()", "tournament", "report"]
"""The command of this source tree."""


def a_record() -> GameRecord:
    """A real game of 96 moves: the seeds make it the same one every time."""
    here = os.fspath(Path.cwd())
    one, two = (
        Player(name, resolve_bot(f"random:{seed}", Path.cwd()).command, here)
        for name, seed in (("one", 3), ("two", 4))
    )
    return trio.run(play_game, Job("r001-1v2", GAME, (one, two), CONTROL))


def relabelled(record: GameRecord, pairing: Pairing, names: list[str], chance: random.Random) -> GameRecord:
    """The game as one of a tournament in which bots with lower numbers tend to win."""
    strengths = (pairing.second - pairing.first) / BOTS
    winner = None if chance.random() < 0.1 else int(chance.random() > 0.5 + strengths / 2)
    first, second = (
        replace(player, name=names[number])
        for player, number in zip(record.players, (pairing.first, pairing.second), strict=True)
    )
    result = MatchResult(winner, Reason.SCORE, "made up", (25, 25) if winner is None else (30, 20))
    if winner is not None and chance.random() < 0.05:
        loser = (first, second)[1 - winner].name
        result = MatchResult(winner, Reason.TIMEOUT, f"{loser} (seat) lost: out of time", None, "timeout")
    moves = [
        move._replace(charged_us=int(move.charged_us * chance.lognormvariate(0, 1))) for move in record.moves
    ]
    return replace(record, key=pairing.key, players=(first, second), result=result, moves=moves)


def make_store(path: Path) -> int:
    """A tournament that was played; returns the number of games."""
    names = [f"Team {number:02d}" for number in range(1, BOTS + 1)]
    plan = Plan(rounds=ROUNDS, width=len(str(BOTS)))
    pairings = plan.schedule(names, [Entrant() for _ in names]).pairings(History())
    record, chance = a_record(), random.Random(1)
    summary = TournamentResults("Bench", GAME, str(CONTROL), names, "points", plan)
    with Store(path) as store:
        store.claim(summary.name, summary.config(), {})
        for pairing in pairings:
            store.add(relabelled(record, pairing, names, chance), pairing.round, pairing.pair)
    return len(pairings)


def main() -> int:
    """Print the measured time and sizes."""
    with tempfile.TemporaryDirectory() as folder:
        games = make_store(Path(folder) / "results.db")
        started = time.perf_counter()
        done = subprocess.run([*REPORT, folder], capture_output=True, text=True, check=False)
        taken_s = time.perf_counter() - started
        if done.returncode:
            print(done.stderr, file=sys.stderr)
            return 1
        largest = max(page.stat().st_size for page in (Path(folder) / "report").rglob("*.html"))
    about = done.stdout.splitlines()[1]
    print(
        f"report of {BOTS} bots and {games} games: {taken_s:.1f} s (target: at most {TARGET_S:g} s); {about}"
    )
    print(json.dumps({"games": games, "seconds": round(taken_s, 2), "largest_page_bytes": largest}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
