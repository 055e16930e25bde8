"""Play of a tournament on other machines: scheduler, workers and engine.

The scheduler runs on this machine, workers join it, and the engine states the demands on them.  The module
needs the extra, whose presence is checked before the import (tournaments/engines/remote/extra.py).
"""

import hashlib
import json
import logging
import shlex
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from referee.sandbox.bubblewrap import Sandbox
from tournaments.config.cluster_table import ClusterTable
from tournaments.config.tournament import Tournament
from tournaments.engines.remote.credentials import Credentials
from tournaments.engines.remote.dask_engine import DaskEngine, open_dask_engine
from tournaments.engines.remote.extra import ClusterError
from tournaments.engines.remote.packed_bot import needed_programs
from tournaments.engines.remote.scheduler import open_scheduler
from tournaments.engines.remote.slurm import open_slurm_workers
from tournaments.engines.remote.waiting import Demands
from tournaments.files.durable import os_errors_as

CREDENTIALS, SCHEDULER_LOG, JOBS = "credentials", "scheduler.log", "slurm"
"""Entries of a cluster's folder: credentials, the scheduler's errors, and the output of jobs."""
DASKS_LOGGERS = ("distributed", "distributed.client")
"""Dask's loggers.  Kalarena reports errors itself; Dask logs tracebacks whenever a scheduler is lost."""
POLL_S = 0.5
"""Seconds between checks for workers."""
Notify = Callable[[str], None]
"""Callback for a sentence for people."""


def quieten() -> None:
    """Silence Dask's loggers in this process."""
    for name in DASKS_LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL)


@asynccontextmanager
async def open_scheduler_here(
    folder: Path, settings: ClusterTable, credentials: Path | None = None
) -> AsyncIterator[tuple[str, Credentials]]:
    """Run a scheduler; yield its address, and its credentials.

    The credentials are those of a directory, by default in the cluster's own folder.  Missing ones are
    created.  Raises ClusterError.
    """
    lets_in = Credentials.made(credentials or folder / CREDENTIALS)
    _make(folder)
    async with open_scheduler(lets_in, folder / SCHEDULER_LOG, settings.host, settings.port) as address:
        yield address, lets_in


@asynccontextmanager
async def open_jobs(
    address: str, credentials: Credentials, settings: ClusterTable, folder: Path, notify: Notify
) -> AsyncIterator[None]:
    """Keep Slurm jobs that join a scheduler during the block; ``folder`` is the cluster's.

    Raises ClusterError.
    """
    logs = folder / JOBS
    _make(logs)
    async with open_slurm_workers(address, credentials, settings, logs, notify):
        yield


def _make(folder: Path) -> None:
    with os_errors_as(ClusterError, f"{folder}: cannot be made"):
        folder.mkdir(parents=True, exist_ok=True)


def demands_of(tournament: Tournament, sandbox: Sandbox, same_speed: float | None) -> Demands:
    """Return the demands on workers.  Blocks: reads the bots' files.  Raises ClusterError."""
    return Demands(tier=sandbox.tier, same_speed=same_speed, programs=needed_programs(tournament.players))


@asynccontextmanager
async def open_engine_at(
    address: str,
    credentials: Credentials,
    tournament: Tournament,
    settings: ClusterTable,
    demands: Demands,
    concurrency: int | None,
    notify: Notify,
    shares_as: str = "",
) -> AsyncIterator[DaskEngine]:
    """Open an engine for a tournament.

    The engine has the scheduler for itself, unless ``shares_as`` is given, a name that no other engine ever
    had.  ``notify`` is called with a sentence on each unsuitable worker.  Raises ClusterError.
    """
    async with open_dask_engine(
        address,
        shares_as or unique_name(tournament),
        security=credentials.security(),
        concurrency=concurrency,
        own_core=tournament.own_core,
        demands=demands,
        refused=notify,
        reference_speed=settings.scaled_from,
        shares=bool(shares_as),
    ) as engine:
        yield engine


async def report_workers(engine: DaskEngine, notify: Notify) -> None:
    """Report the hosts once there are workers, and when no worker is left; until cancelled."""
    was_alone = True
    while True:
        is_alone = not engine.slots
        if is_alone and not was_alone:
            notify("no worker is left: games go on as soon as one joins")
        elif was_alone and not is_alone:
            games = "1 game" if engine.slots == 1 else f"{engine.slots} games"
            notify(f"{games} at a time, on {', '.join(hosts_of(engine))}")
        was_alone = is_alone
        await trio.sleep(POLL_S)


def hosts_of(engine: DaskEngine) -> list[str]:
    """Return the names of the hosts that play now."""
    return sorted({facts.name for facts in engine.workers()})


def worker_command(address: str, credentials: Path) -> str:
    """Return the command that adds another machine."""
    return shlex.join(
        ["kalarena", "worker", "--scheduler", address, "--credentials", str(credentials.resolve())]
    )


def unique_name(tournament: Tournament) -> str:
    """Return a name that distinguishes a tournament's games from others at the same scheduler."""
    identity = json.dumps(tournament.identity(), sort_keys=True)
    return f"{tournament.name}-{hashlib.sha256(identity.encode()).hexdigest()[:16]}"
