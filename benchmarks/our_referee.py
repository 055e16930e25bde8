"""The same program as referee.c, with our referee: plays games between two bots, prints the same numbers.

usage: python -m benchmarks.our_referee [--at-once N] GAMES FIRST [ARGUMENT...] -- SECOND [ARGUMENT...]

Plays one game after the other in this process and prints one JSON object, with the keys of referee.c
except for play_cpu_s, which cannot be seen from outside of play_game; start_cpu_s stands in for it.  With
--at-once it plays through the tournaments' local engine instead, N games at a time in worker processes;
only the total wall time means something then.  --confined does that in the best sandbox of this host.

usage: python -m benchmarks.our_referee --starts N FIRST

Starts a bot that ends at once, N times bare and N times confined in turn, and prints the medians of the time
until it has ended.
"""

import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import trio

from referee.judge.clock import TimeControl
from referee.judge.limits import Limits
from referee.judge.results import GameRecord, Player
from referee.playing import Job, play_game
from referee.process.bot import Bot
from referee.sandbox.bubblewrap import Sandbox
from referee.sandbox.detection import probe
from tournaments.engines.base import Engine
from tournaments.engines.local import open_local_engine

GAME = "manchester"
CONTROL = TimeControl(move_s=10.0)
WARM_UP_GAMES = 8
"""Games of each worker before the measurement, for its imports and caches."""

BARE = Sandbox()

Players = tuple[Player, Player]


def cpu_s() -> float:
    """User and system time of this process so far."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def make_player(command: Sequence[str]) -> Player:
    return Player(Path(command[0]).name, tuple(command), str(Path.cwd()), reads=(command[0],))


def make_jobs(players: Players, games: int, sandbox: Sandbox = BARE) -> list[Job]:
    return [Job(f"benchmark-{number}", GAME, players, CONTROL, sandbox=sandbox) for number in range(games)]


class Played(NamedTuple):
    """Figures of a game: whole records would make the garbage collector slower with each game."""

    moving_s: float
    """Seconds from the second bot's first reply until the last END is written."""
    moves: int
    game: str
    """The moves, separated by commas."""
    board: str

    @classmethod
    def of(cls, record: GameRecord) -> "Played":
        sent = [line.at_us for line in record.wire if line.direction == "to"]
        replies = [line.at_us for line in record.wire if line.direction == "from"]
        game = ",".join(move.move for move in record.moves)
        return cls((sent[-1] - replies[1]) / 1e6, len(record.moves), sys.intern(game), record.final_state)


def start_cpu_s(players: Players, games: int) -> float:
    """CPU of this process for starting and reaping two bots that end at once, with the referee's own code."""
    environment = os.environb
    idle = [replace(player, command=(player.command[0], "exit")) for player in players]
    before = cpu_s()
    for _ in range(games):
        for bot in [Bot(index, player, environment) for index, player in enumerate(idle)]:
            bot.close()  # waits for its end
    return cpu_s() - before


def describe(played: list[Played]) -> dict[str, Any]:
    """Return the moves that were played.  Raises ValueError if the games differ."""
    games = {(one.game, one.board) for one in played}
    if len(games) != 1:
        raise ValueError(f"the same bots played {len(games)} different games: {sorted(games)}")
    [(game, board)] = games
    return {"games": len(played), "moves": played[0].moves, "game": game, "board": board}


async def play_here(jobs: list[Job]) -> list[Played]:
    return [Played.of(await play_game(job)) for job in jobs]


def measure(players: Players, games: int) -> dict[str, Any]:
    """Play in this process."""
    trio.run(play_here, make_jobs(players, WARM_UP_GAMES))
    jobs = make_jobs(players, games)
    cpu, wall = cpu_s(), time.perf_counter()
    played = trio.run(play_here, jobs)
    cpu, wall = cpu_s() - cpu, time.perf_counter() - wall
    return {
        **describe(played),
        "moving_wall_s": median(one.moving_s for one in played),
        "total_cpu_s": cpu / games,
        "start_cpu_s": start_cpu_s(players, games) / games,
        "total_wall_s": wall,
    }


async def play_in(engine: Engine, jobs: list[Job]) -> list[Played]:
    """Play all jobs, with the concurrency of the engine."""
    played: list[Played] = []

    async def play(job: Job) -> None:
        played.append(Played.of((await engine.play(job)).record))

    async with trio.open_nursery() as nursery:
        for job in jobs:
            nursery.start_soon(play, job)
    return played


def start_s(player: Player, sandbox: Sandbox) -> float:
    """Wall time of one start of a bot that ends at once, until it is gone."""
    began = time.perf_counter()
    bot = Bot(0, player, os.environb, sandbox=sandbox, limits=Limits())
    try:
        bot.wait_ready()
    finally:
        bot.close()  # waits for its end
    return time.perf_counter() - began


def measure_starts(player: Player, times: int) -> dict[str, Any]:
    """Medians of starts, bare and confined in turn."""
    sandbox = probe().sandbox
    found: dict[str, list[float]] = {"bare": [], "confined": []}
    for _ in range(times):
        found["bare"].append(start_s(player, BARE) * 1e3)
        found["confined"].append(start_s(player, sandbox) * 1e3)
    return {"tier": sandbox.tier.value, **{f"{name}_ms": median(each) for name, each in found.items()}}


async def measure_engine(
    players: Players, games: int, at_once: int, sandbox: Sandbox = BARE
) -> dict[str, Any]:
    """Play in worker processes, ``at_once`` games at a time."""
    jobs = make_jobs(players, games, sandbox)
    with tempfile.TemporaryDirectory(prefix="kalarena-bench-") as scratch:
        async with open_local_engine(Path(scratch), at_once) as engine:
            await play_in(engine, make_jobs(players, WARM_UP_GAMES * at_once))
            began = time.perf_counter()
            played = await play_in(engine, jobs)
            wall = time.perf_counter() - began
    return {**describe(played), "total_wall_s": wall}


def main() -> None:
    arguments = sys.argv[1:]
    at_once = 0
    sandbox = BARE
    if arguments[:1] == ["--starts"]:
        print(json.dumps(measure_starts(make_player([*arguments[2:], "exit"]), int(arguments[1]))))
        return
    if arguments[:1] == ["--confined"]:
        sandbox = probe().sandbox
        del arguments[:1]
    if arguments[:1] == ["--at-once"]:
        at_once = int(arguments[1])
        del arguments[:2]
    cut = arguments.index("--")
    games, players = int(arguments[0]), (make_player(arguments[1:cut]), make_player(arguments[cut + 1 :]))
    if at_once:
        numbers = trio.run(measure_engine, players, games, at_once, sandbox)
    else:
        numbers = measure(players, games)
    print(json.dumps(numbers))


if __name__ == "__main__":
    main()
