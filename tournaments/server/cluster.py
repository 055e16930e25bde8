"""Cluster of other machines that play a server's tournaments, if its file has a ``[cluster]`` table.

The scheduler runs on this machine, as long as the service does; workers come to it as people start them, or
as jobs of Slurm while a tournament is being played.  Each tournament has an engine of its own there, since
its demands on workers differ.  Checks and the practice ladder stay here.

The module needs the extra, see ``require_extra``; modules that import Dask are imported when they are used.
"""

import secrets
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from referee.sandbox.bubblewrap import Sandbox
from tournaments.config.cluster_table import ServerClusterTable
from tournaments.config.load import Tournament
from tournaments.engines.base import Engine
from tournaments.engines.remote.errors import SchedulerLostError
from tournaments.engines.remote.requirements import Demands, wait_for_slots
from tournaments.running.runner import Brake
from tournaments.server.failures import Failures, kept_running

if TYPE_CHECKING:  # they need the extra
    from tournaments.engines.remote.credentials import Credentials
    from tournaments.engines.remote.dask_engine import DaskEngine

SLURM = "slurm"
NAME_BYTES = 4
"""Random bytes in each engine's name, so that a game is requested under another name after a pause."""
LINGER_S = 60.0
"""Seconds for which Slurm jobs are kept after a tournament; a ruling stops a tournament for a moment."""
MOST_TOLD = 20
MOST_FOLLOWED = 200
"""Games of a tournament, running or waiting, that can be watched move by move at a time.

Each move of these games is sent through the scheduler, too.
"""


@dataclass(frozen=True, slots=True)
class News:
    """An event on the cluster."""

    at: datetime
    sentence: str


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """Status of the cluster at some moment."""

    slots: int
    """Number of games that the cluster plays at a time."""
    hosts: Sequence[str]
    command: str
    """Command that adds another machine; empty while there is no scheduler, and with Slurm."""
    news: Sequence[News]
    """Latest events, newest first."""


@dataclass(frozen=True)
class _Site:
    """A running scheduler."""

    address: str
    credentials: "Credentials"
    watch: "DaskEngine"
    """Engine that plays nothing and observes the connected workers."""


class ServiceCluster:
    """Scheduler, Slurm jobs and engines of the service; see above.  For the tasks of one event loop."""

    def __init__(
        self,
        table: ServerClusterTable,
        folder: Path,
        now: Callable[[], datetime],
        sandbox: Callable[[], Sandbox],
        failures: Failures,
    ) -> None:
        """``folder`` is for credentials and logs; ``sandbox`` blocks and returns the bots' future sandbox."""
        self._table, self._folder, self._now, self._sandbox = table, folder, now, sandbox
        self._failures = failures
        self._site: _Site | None = None
        self._tournaments = 0
        self._changed = trio.Event()
        """Event that is set, and replaced, when the site or the number of tournaments changes."""
        self._news: deque[News] = deque(maxlen=MOST_TOLD)

    def status(self) -> ClusterStatus:
        """Return the cluster's current status."""
        from tournaments.engines.remote.remote_engine import hosts_of, worker_command

        news = tuple(reversed(self._news))
        if self._site is None:
            return ClusterStatus(0, (), "", news)
        is_ours = self._table.engine == SLURM
        command = "" if is_ours else worker_command(self._site.address, self._site.credentials.directory)
        return ClusterStatus(self._site.watch.slots, hosts_of(self._site.watch), command, news)

    async def run(self) -> None:
        """Run a scheduler, and Slurm jobs if configured, until cancelled.  Raises ClusterError."""
        from tournaments.engines.remote import remote_engine
        from tournaments.engines.remote.dask_engine import open_dask_engine
        from tournaments.engines.remote.requirements import publish_demands

        remote_engine.quieten()
        sandbox = await trio.to_thread.run_sync(self._sandbox)
        async with remote_engine.open_scheduler_here(self._folder, self._table) as (address, credentials):
            await trio.to_thread.run_sync(publish_demands, address, credentials, Demands(tier=sandbox.tier))
            security = credentials.security()
            async with (
                open_dask_engine(address, "server", security=security, refused=self._tell) as watch,
                trio.open_nursery() as nursery,
            ):
                nursery.start_soon(remote_engine.report_workers, watch, self._tell)
                if self._table.engine == SLURM:
                    have_jobs = partial(self._have_jobs, address, credentials)
                    nursery.start_soon(kept_running, "jobs of Slurm", have_jobs, self._failures)
                self._is_now(_Site(address, credentials, watch))
                try:
                    await trio.sleep_forever()
                finally:  # at once, and not when all jobs have ended
                    self._is_now(None)

    async def _have_jobs(self, address: str, credentials: "Credentials") -> None:
        """Keep Slurm jobs while a tournament is being played."""
        from tournaments.engines.remote.remote_engine import open_jobs

        while True:
            while not self._tournaments:
                await self._changed.wait()
            async with open_jobs(address, credentials, self._table, self._folder, self._tell):
                while self._tournaments:
                    await self._changed.wait()
                    with trio.move_on_after(LINGER_S):
                        await trio.lowlevel.checkpoint()
                        while not self._tournaments:
                            await self._changed.wait()

    async def demands(self, tournament: Tournament, sandbox: Sandbox) -> Demands:
        """Return a tournament's demands on workers.

        Raises ClusterError if its bots cannot be brought to other machines.
        """
        from tournaments.engines.remote.remote_engine import demands_of

        return await trio.to_thread.run_sync(demands_of, tournament, sandbox, self._table.same_speed)

    @asynccontextmanager
    async def engine(
        self, slug: str, tournament: Tournament, demands: Demands, brake: Brake
    ) -> AsyncIterator[Engine]:
        """Open an engine for a tournament.

        The engine is ready once there is a scheduler, and enough workers or the brake is pulled.  Raises
        SchedulerLostError if the brake is pulled and there is no scheduler, and when the scheduler is lost:
        then another engine can be opened.  Raises ClusterError.
        """
        from tournaments.engines.remote.remote_engine import open_engine_at

        def tell(sentence: str) -> None:
            self._tell(f"{tournament.name}: {sentence}")

        self._tournaments += 1
        self._is_now(self._site)
        try:
            site = await self._there(brake)
            name = f"{slug}-{secrets.token_hex(NAME_BYTES)}"
            async with open_engine_at(
                *(site.address, site.credentials, tournament, self._table, demands),
                *(tournament.concurrency, tell, name),
            ) as engine:
                with trio.CancelScope() as scope, brake.cancels(scope):
                    await wait_for_slots(engine, self._table.minimum, tell=tell)
                yield engine
        finally:
            self._tournaments -= 1
            self._is_now(self._site)

    async def _there(self, brake: Brake) -> _Site:
        with trio.CancelScope() as scope, brake.cancels(scope):
            await trio.lowlevel.checkpoint()
            while self._site is None:
                await self._changed.wait()
        if self._site is None:
            raise SchedulerLostError("there is no scheduler")
        return self._site

    def _is_now(self, site: _Site | None) -> None:
        self._site = site
        self._changed.set()
        self._changed = trio.Event()

    def _tell(self, sentence: str) -> None:
        self._news.append(News(self._now(), sentence))
