"""Functions for play on other machines that the command line and the server share.

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
from tournaments.engines.remote.head.dask_engine import DaskEngine
from tournaments.engines.remote.packed_bot import needed_programs
from tournaments.engines.remote.scheduler import open_scheduler
from tournaments.engines.remote.waiting import Demands

CREDENTIALS, SCHEDULER_LOG = "credentials", "scheduler.log"
"""Entries of a cluster's folder: credentials, and the scheduler's errors."""
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
    async with open_scheduler(lets_in, folder / SCHEDULER_LOG, settings.host, settings.port) as address:
        yield address, lets_in


def demands_of(tournament: Tournament, sandbox: Sandbox, same_speed: float | None) -> Demands:
    """Return the demands on workers.  Blocks: reads the bots' files.  Raises ClusterError."""
    playing = [player for player in tournament.players if player.command]  # see Tournament.added
    needed = [set(needed_programs(player)) for player in playing]
    programs = tuple(sorted(set.intersection(*needed))) if needed else ()
    return Demands(tier=sandbox.tier, same_speed=same_speed, programs=programs)


async def report_workers(engine: DaskEngine, notify: Notify) -> None:
    """Report the hosts once there are workers, and when no worker is left; until cancelled."""
    was_alone = True
    while True:
        is_alone = not engine.slots
        if is_alone and not was_alone:
            notify("no worker is left: games go on as soon as one joins")
        elif was_alone and not is_alone:
            games = "1 game" if engine.slots == 1 else f"{engine.slots} games"
            notify(f"{games} at a time, on {', '.join(engine.hosts)}")
        was_alone = is_alone
        await trio.sleep(POLL_S)


def worker_command(address: str, credentials: Path) -> str:
    """Return the command that adds another machine."""
    return shlex.join(
        ["kalarena", "worker", "--scheduler", address, "--credentials", str(credentials.resolve())]
    )


def unique_name(tournament: Tournament) -> str:
    """Return a name that distinguishes a tournament's games from others at the same scheduler."""
    identity = json.dumps(tournament.identity(), sort_keys=True)
    return f"{tournament.name}-{hashlib.sha256(identity.encode()).hexdigest()[:16]}"
