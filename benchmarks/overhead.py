"""Measures the overhead of a game that is played by Dask, with the same number of slots.

Bots that answer at once play a short game again and again: some games by the local engine, some by a
scheduler and a worker on this machine, with TLS, and so on by turns, since other programs may keep it busy.

Alone: one game is requested at a time, and timed from the request to its record.
Busy: as many games are requested as by a tournament, twice the slots, so that the next game is ready when
one ends.  The cost of a game is the time for which it occupies its slot: time, times slots, by games.

With --own-core a game runs on one core only, as in a tournament with ``own_core``: on a machine with more
cores, the system mostly moves Dask to another one.

Neighbouring rounds are compared; the result is the median of their differences.  The exit status is 0 whether
or not the target is reached.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from statistics import median

import trio

from referee.judge.clock import TimeControl
from referee.judge.results import Player
from referee.playing import Job
from tournaments.bots.resolve import resolve_bot
from tournaments.engines.base import Engine
from tournaments.engines.local import open_local_engine
from tournaments.engines.remote.credentials import Credentials
from tournaments.engines.remote.head.dask_engine import open_dask_engine
from tournaments.engines.remote.scheduler import open_scheduler
from tournaments.engines.remote.waiting import wait_for_slots
from tournaments.processes.process_settings import prepare_for_many_games

TARGET_MS = 5.0
"""A game of the course takes seconds."""
ROUNDS = 10
ALONE, BUSY = 3, 32
"""Games of a round, and for each slot: so few that a round takes some seconds, and so many that the first
game, which cannot be ready in advance, does not count."""
WARM_UP = 10
GAME = "kalah(2,1)"
CONTROL = TimeControl(move_s=10.0)
KALARENA = [sys.executable, "-c", "from tournaments.cli.main import entry; entry()"]


@lru_cache(maxsize=1)
def players() -> tuple[Player, Player]:
    """Return two quick bots; they are resolved once, as in a tournament."""
    player = resolve_bot("first_legal", Path.cwd())
    return replace(player, name="one"), replace(player, name="two")


def a_job(number: int) -> Job:
    """Return the job of a game of few moves."""
    return Job(f"game-{number}", GAME, players(), CONTROL)


async def alone(engine: Engine, slots: int) -> float:
    """Return the median time of a game in milliseconds, from the request to its record."""
    took = []
    for number in range(ALONE):
        began = time.perf_counter()
        await engine.play(a_job(number))
        took.append((time.perf_counter() - began) * 1000)
    return median(took)


async def busy(engine: Engine, slots: int) -> float:
    """Return the milliseconds for which a game occupies a slot."""
    games = BUSY * slots
    numbers = iter(range(games))

    async def play_on() -> None:
        for number in numbers:
            await engine.play(a_job(number))

    began = time.perf_counter()
    async with trio.open_nursery() as nursery:
        for _ in range(2 * slots):
            nursery.start_soon(play_on)
    return (time.perf_counter() - began) * 1000 * slots / games


MEASURES = {"alone": alone, "busy": busy}


@contextmanager
def a_worker(address: str, credentials: Path, slots: int) -> Iterator[None]:
    """Run `kalarena worker` on this machine."""
    command = [*KALARENA, "worker", "--scheduler", address, "--credentials", os.fspath(credentials)]
    command += ["--slots", str(slots)]
    # In a session of its own, as on another machine: Linux shares its cores between sessions, and each bot
    # has one, so that all of ours together would get as much as one bot.
    worker = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)
    try:
        yield
    finally:
        worker.terminate()
        worker.wait(60)


async def measure(rounds: int, slots: int, *, own_core: bool) -> dict[str, dict[str, float]]:
    """Measure both engines in turn; return their medians and the median of the difference."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in MEASURES}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        credentials = Credentials.made(folder / "credentials")
        async with (
            open_scheduler(credentials, folder / "scheduler.log", "127.0.0.1") as address,
            open_local_engine(folder, slots, own_core=own_core) as local,
        ):
            with a_worker(address, credentials.directory, slots):
                security = credentials.security()
                async with open_dask_engine(
                    address, "overhead", security=security, own_core=own_core
                ) as dask:
                    with trio.fail_after(60):
                        await wait_for_slots(dask, slots, print)
                    for engine in (local, dask):
                        for number in range(WARM_UP):
                            await engine.play(a_job(number))
                    for number in range(rounds):
                        for name, takes in MEASURES.items():
                            # Who is first changes, as what is left to do for one is done during the next.
                            order = (local, dask) if number % 2 else (dask, local)
                            took = {engine: await takes(engine, slots) for engine in order}
                            found[name].append((took[local], took[dask]))
    return {name: summed_up(pairs) for name, pairs in found.items()}


def summed_up(pairs: list[tuple[float, float]]) -> dict[str, float]:
    """The figures of one measure."""
    return {
        "local_ms": median(local for local, _ in pairs),
        "dask_ms": median(dask for _, dask in pairs),
        "more_ms": median(dask - local for local, dask in pairs),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--slots", "--places", type=int, default=1)
    parser.add_argument("--own-core", action="store_true")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with prepare_for_many_games():  # as the command that runs tournaments does
        takes = partial(measure, arguments.rounds, arguments.slots, own_core=arguments.own_core)
        found = trio.run(takes)
    if arguments.json:
        print(json.dumps(found))
        return 0
    for name, figures in found.items():
        verdict = "reached" if figures["more_ms"] <= TARGET_MS else "missed"
        print(
            f"{name:5} local {figures['local_ms']:.1f} ms, Dask {figures['dask_ms']:.1f} ms; Dask takes "
            f"{figures['more_ms']:.1f} ms more, target {TARGET_MS:.0f} ms, {verdict}"
        )
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
