"""The head of a tournament on a cluster: everything is real but the workers, see benchmarks/fake_workers.py.

There are four kinds of processes: the head (schedule, runner, engine, Dask's client, store, table), those
that write its files, Dask's scheduler, and the workers, all of which are one.  Connections are encrypted.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import trio

from referee.judge.results import GameRecord
from tournaments.engines.remote.credentials import Credentials
from tournaments.engines.remote.head.dask_engine import DaskEngine, open_dask_engine
from tournaments.engines.remote.scheduler import open_scheduler

SCHEDULER = "tournaments.engines.remote.scheduler_process"
LINE_BYTES = 10_000


@dataclass(frozen=True, slots=True)
class Size:
    """Size of a cluster."""

    workers: int
    slots: int
    """Slots of each worker."""
    length_s: float
    """Duration of a game in seconds."""


@dataclass
class Seen:
    """Measurements of the processes beside the head."""

    joined_s: float = 0.0
    """Time until all workers had joined, in seconds."""
    scheduler_cpu_s: float = 0.0
    """CPU time of the scheduler while games were played."""
    workers_cpu_s: float = 0.0
    most_playing: int = 0


@asynccontextmanager
async def open_cluster(
    directory: Path, record: GameRecord, size: Size
) -> AsyncIterator[tuple[DaskEngine, Seen]]:
    """Provide an engine with all its workers; the measurements are complete after the block."""
    seen = Seen()
    credentials = Credentials.made(directory / "credentials")
    packed = directory / "record"
    packed.write_bytes(record.to_msgpack())
    async with open_scheduler(credentials, directory / "scheduler.log", "127.0.0.1") as address:
        scheduler = _child(SCHEDULER)
        began = time.perf_counter()
        async with _workers(address, credentials, packed, size) as workers:
            await _answer(workers)
            seen.joined_s = time.perf_counter() - began
            async with open_dask_engine(address, "scale", security=credentials.security()) as engine:
                before = _cpu_s(scheduler)
                yield engine, seen
                seen.scheduler_cpu_s = _cpu_s(scheduler) - before
            assert workers.stdin is not None
            await workers.stdin.aclose()
            said = await _answer(workers)
            seen.workers_cpu_s, seen.most_playing = said["cpu_s"], int(said["most_playing"])


@asynccontextmanager
async def _workers(
    address: str, credentials: Credentials, record: Path, size: Size
) -> AsyncIterator[trio.Process]:
    command = [sys.executable, "-m", "benchmarks.fake_workers", address]
    command += [str(credentials.directory), str(record)]
    command += ["--workers", str(size.workers), "--slots", str(size.slots), "--length", str(size.length_s)]
    process = await trio.lowlevel.open_process(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        yield process
    finally:
        process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()


async def _answer(process: trio.Process) -> dict[str, float]:
    """Return the next line of JSON."""
    assert process.stdout is not None
    line = b""
    while not line.endswith(b"\n"):
        line += await process.stdout.receive_some(LINE_BYTES)
    answer: dict[str, float] = json.loads(line)
    return answer


def _child(of: str) -> int:
    """Return the process id of our child whose command line contains a text."""
    tasks = Path("/proc/self/task").glob("*/children")
    children = [int(number) for task in tasks for number in task.read_text().split()]
    (found,) = (one for one in children if of in Path(f"/proc/{one}/cmdline").read_text())
    return found


def _cpu_s(process: int) -> float:
    """Processor time of a process, see proc_pid_stat(5)."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
