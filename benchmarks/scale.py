"""Measures how many games a second the head of a tournament takes from 10,000 workers.

Schedule, runner, store, the games' files and the table are the real ones.  Games are waits: at once over, or
of --length seconds.  The engine is one without processes (benchmarks/instant.py), or with --dask the real one
with its scheduler, both ends of whose connections are encrypted; then only the workers are not real
(benchmarks/fake_workers.py).

For each process, the CPU time of a game is measured, since wall time depends on the machine's other work.
A process has one core at most, so that a million divided by these microseconds is its limit in games per
second.  The process with the lowest limit is the bottleneck of the head.

The exit status is 0 whether or not the target is reached.
"""

import argparse
import json
import os
import pickle
import resource
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

import trio

from benchmarks.bench_report import a_record
from benchmarks.instant import InstantEngine, tournament_of
from referee.judge.results import GameRecord
from referee.playing import Job
from tournaments.database.base import Location
from tournaments.database.postgresql import PostgreSQLSchema, parse_url
from tournaments.database.sqlite import SQLiteFile
from tournaments.engines.base import Engine
from tournaments.processes.process_settings import prepare_for_many_games
from tournaments.reporting.tournament_results import TournamentResults
from tournaments.results.game_files import write_game_files
from tournaments.results.game_summary import GameSummary, PackedGame
from tournaments.results.store import Store
from tournaments.running.runner import OPEN, Observer, Run, play_all
from tournaments.schedule.pairing import Pairing

TARGET = 2000.0
"""Games a second: 320,000 games of a class of 400 in three minutes, were bots quick enough."""
WORKERS = 10_000
BOTS = 142
"""20,022 games a round, so that 10,000 workers are busy."""
REPEATS = 200
TOGETHER = 500
"""Games in a transaction when thousands wait."""
FILES = "files, in other processes"
MANY = f"store, {TOGETHER} at a time"


@dataclass(frozen=True, slots=True)
class Cluster:
    """Size of the simulated cluster."""

    workers: int = WORKERS
    slots: int = 1
    """Games that a worker plays at a time."""
    length_s: float = 0.0
    """Of a game."""
    dask: bool = False


@dataclass
class Watch(Observer):
    """Observer that counts the games in flight, and has the time at which the last one was stored."""

    in_flight: set[str] = field(default_factory=set)
    most_in_flight: int = 0
    last: float = 0.0

    def started(self, pairing: Pairing, key: str, host: str = "") -> None:
        """See ``Observer``."""
        self.in_flight.add(key)
        self.most_in_flight = max(self.most_in_flight, len(self.in_flight))

    def ended(self, pairing: Pairing, game: GameSummary, host: str = "") -> None:
        """See ``Observer``."""
        self.in_flight.discard(game.key)
        self.last = time.perf_counter()

    def unplayed(self, pairing: Pairing, why: str) -> None:
        """See ``Observer``."""
        raise AssertionError(why)


def measure_run(
    cluster: Cluster, bots: int, rounds: int, record: GameRecord, url: str | None = None
) -> dict[str, float]:
    """Measure a tournament from its schedule to its table."""
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        tournament = tournament_of(bots, rounds, record.game)
        with Store(_location(directory, url)) as store, prepare_for_many_games():
            store.claim(tournament.name, TournamentResults.of(tournament).config(), tournament.identity())
            began = time.perf_counter()
            run = Run(tournament, store)
            games = len(run.due())
            due = time.perf_counter()
            found = trio.run(_play, run, cluster, record, directory)
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            begins, before = time.perf_counter(), time.process_time()
            assert len(TournamentResults.load(store).table) == bots
            shown, table = time.perf_counter(), time.process_time()
        stored = sum(path.stat().st_size for path in directory.glob("results.db*"))
        files = sum(path.stat().st_size for path in (directory / "games").rglob("*") if path.is_file())
    return {
        "games": games,
        "schedule_s": due - began,
        **{name: figure / games if "a_game" in name else figure for name, figure in found.items()},
        "stored_per_s": games / found["stored_s"],
        "table_s": shown - begins,
        "table_cpu_us_a_game": (table - before) / games * 1e6,
        "memory_mib": memory,
        "store_bytes_a_game": stored / games,
        "files_bytes_a_game": files / games,
    }


async def _play(run: Run, cluster: Cluster, record: GameRecord, directory: Path) -> dict[str, float]:
    """Play all; figures with "a_game" in their names are of all games together."""
    watch = Watch()
    children = _cpu(resource.RUSAGE_CHILDREN)
    jobs = [run.job(pairing, OPEN) for pairing in run.due()]
    async with _engine(cluster, record, directory, jobs) as (engine, more):
        began, head = time.perf_counter(), _cpu(resource.RUSAGE_SELF)
        await play_all(run, engine, directory, watch)
        ended, head = time.perf_counter(), _cpu(resource.RUSAGE_SELF) - head
    children = _cpu(resource.RUSAGE_CHILDREN) - children
    return {
        "stored_s": watch.last - began,
        "files_too_s": ended - began,
        "most_in_flight": watch.most_in_flight,
        "head_cpu_us_a_game": head * 1e6,
        **({"files_cpu_us_a_game": children * 1e6} if not cluster.dask else {}),
        **more,
    }


@asynccontextmanager
async def _engine(
    cluster: Cluster, record: GameRecord, directory: Path, jobs: Iterable[Job]
) -> AsyncIterator[tuple[Engine, dict[str, float]]]:
    """Provide the engine, and a mapping for the figures of its other processes."""
    more: dict[str, float] = {}
    if not cluster.dask:
        instant = InstantEngine(cluster.workers * cluster.slots, record, cluster.length_s)
        instant.prepare(jobs)
        yield instant, more
        return
    from benchmarks.scale_cluster import Size, open_cluster  # needs the extra

    size = Size(cluster.workers, cluster.slots, cluster.length_s)
    async with open_cluster(directory, record, size) as (engine, seen):
        yield engine, more
    more["joined_s"] = seen.joined_s
    more["most_on_workers"] = seen.most_playing
    more["scheduler_cpu_us_a_game"] = seen.scheduler_cpu_s * 1e6
    more["workers_cpu_us_a_game"] = seen.workers_cpu_s * 1e6


def _location(directory: Path, url: str | None) -> Location:
    if url is None:
        return SQLiteFile(directory / "results.db")
    return PostgreSQLSchema(parse_url(url), f"scale_{os.getpid()}")


def _cpu(who: int) -> float:
    """Seconds."""
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def measure_steps(record: GameRecord) -> dict[str, float]:
    """Processor time of each step of one game, by itself, in microseconds."""
    sent = pickle.dumps(PackedGame.of(record))
    number = count()

    def games(how_many: int) -> list[PackedGame]:
        one = PackedGame.of(record, 1)
        return [replace(one, summary=one.summary._replace(key=f"k{next(number)}")) for _ in range(how_many)]

    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        with Store(directory / "results.db") as store:
            return {
                "read what a worker sent": _each(lambda: pickle.loads(sent)),
                "pack and sum up, on a worker": _each(lambda: pickle.dumps(PackedGame.of(record))),
                "store, one at a time": _each(lambda: store.add_all(games(1))),
                MANY: _each(lambda: store.add_all(games(TOGETHER)), 4) / TOGETHER,
                FILES: _each(lambda: write_game_files(directory, replace(record, key=f"f{next(number)}"))),
            }


def _each(step: Callable[[], object], repeats: int = REPEATS) -> float:
    step()
    began = time.process_time()
    for _ in range(repeats):
        step()
    return (time.process_time() - began) / repeats * 1e6


def stages(run: dict[str, float], steps: dict[str, float]) -> dict[str, float]:
    """Return the limit of each part alone on one core, in games per second; files use any number of cores."""
    cpu = {
        "head: runner, engine, store": run["head_cpu_us_a_game"],
        "scheduler of Dask": run.get("scheduler_cpu_us_a_game", 0.0),
        "store alone, many at a time": steps[MANY],
        "table of all games": run["table_cpu_us_a_game"],
        "files, on each core": steps[FILES],
    }
    return {name: 1e6 / used for name, used in cpu.items() if used}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--workers", type=int, default=WORKERS)
    parser.add_argument("--slots", type=int, default=1, help="games that a worker plays at a time")
    parser.add_argument("--length", type=float, default=0.0, metavar="SECONDS", help="of a game")
    parser.add_argument("--bots", type=int, default=BOTS)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--postgresql", metavar="URL", help="an empty database, instead of SQLite")
    parser.add_argument("--dask", action="store_true", help="with Dask's scheduler, and workers made up")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    record = a_record()
    steps = measure_steps(record)
    cluster = Cluster(arguments.workers, arguments.slots, arguments.length, arguments.dask)
    run = measure_run(cluster, arguments.bots, arguments.rounds, record, arguments.postgresql)
    able = stages(run, steps)
    if arguments.json:
        print(json.dumps({"run": run, "steps_us": steps, "games_per_s_alone": able}))
        return 0
    for name, figure in run.items():
        print(f"{name:28} {figure:10.1f}")
    print("processor time of a game, step by step, in microseconds")
    for name, figure in steps.items():
        print(f"  {name:28} {figure:8.0f}")
    print("limit of each part with a core of its own, in games a second")
    for name, rate in able.items():
        print(f"  {name:28} {rate:8.0f}")
    first = min((name for name in able if name != "files, on each core"), key=able.__getitem__)
    verdict = "reached" if able[first] >= TARGET else "missed"
    print(f"load {os.getloadavg()[0]:.1f}: {run['stored_per_s']:.0f} games/s were stored")
    print(f"first to stop: {first}, at {able[first]:.0f} games/s; target {TARGET:.0f}, {verdict}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
