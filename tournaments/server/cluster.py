"""Cluster of other machines that play a server's tournaments, if its file has a ``[cluster]`` table.

The scheduler runs on this machine, as long as the service.  Workers connect to it when people start them, or
as jobs of Slurm while a tournament is being played.  Each tournament has an engine of its own on the cluster,
since its requirements differ.  Checks and the practice ladder run on this machine.

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
from tournaments.config.tournament import Tournament
from tournaments.engines.base import Engine
from tournaments.engines.remote.extra import SchedulerLostError
from tournaments.engines.remote.waiting import Demands, wait_for_slots
from tournaments.running.runner import StopRequest
from tournaments.server.failures import Failures, kept_running

if TYPE_CHECKING:  # they need the extra
    from tournaments.engines.remote.credentials import Credentials
    from tournaments.engines.remote.head.dask_engine import DaskEngine

SLURM = "slurm"
NAME_BYTES = 4
"""Random bytes in each engine's name, so that a game has another name on the cluster after a pause."""
LINGER_S = 60.0
"""Seconds for which Slurm jobs are kept after a tournament; a ruling stops a tournament for a moment."""
MAX_NEWS = 20
"""Maximum number of events that are kept for the dashboard."""
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
    observer: "DaskEngine"
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
        self._news: deque[News] = deque(maxlen=MAX_NEWS)

    def status(self) -> ClusterStatus:
        """Return the cluster's current status."""
        from tournaments.engines.remote.remote_engine import worker_command

        news = tuple(reversed(self._news))
        if self._site is None:
            return ClusterStatus(0, (), "", news)
        is_ours = self._table.engine == SLURM
        command = "" if is_ours else worker_command(self._site.address, self._site.credentials.directory)
        return ClusterStatus(self._site.observer.slots, self._site.observer.hosts, command, news)

    async def run(self) -> None:
        """Run a scheduler, and Slurm jobs if configured, until cancelled.  Raises ClusterError."""
        from tournaments.engines.remote import remote_engine
        from tournaments.engines.remote.head.dask_engine import open_dask_engine

        remote_engine.quieten()
        sandbox = await trio.to_thread.run_sync(self._sandbox)
        async with remote_engine.open_scheduler_here(self._folder, self._table) as (address, credentials):
            security, demands = credentials.security(), Demands(tier=sandbox.tier)
            async with (
                open_dask_engine(
                    address, "server", security=security, demands=demands, refused=self._add_news
                ) as observer,
                trio.open_nursery() as nursery,
            ):
                nursery.start_soon(remote_engine.report_workers, observer, self._add_news)
                if self._table.engine == SLURM:
                    keep_jobs = partial(self._keep_jobs, address, credentials)
                    nursery.start_soon(kept_running, "jobs of Slurm", keep_jobs, self._failures)
                self._set_site(_Site(address, credentials, observer))
                try:
                    await trio.sleep_forever()
                finally:  # at once, and not when all jobs have ended
                    self._set_site(None)

    async def _keep_jobs(self, address: str, credentials: "Credentials") -> None:
        """Keep Slurm jobs while a tournament is being played."""
        from tournaments.engines.remote.slurm import open_slurm_workers

        while True:
            while not self._tournaments:
                await self._changed.wait()
            async with open_slurm_workers(address, credentials, self._table, self._folder, self._add_news):
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
        self, slug: str, tournament: Tournament, demands: Demands, stop: StopRequest
    ) -> AsyncIterator[Engine]:
        """Open an engine for a tournament.

        The engine is ready once there is a scheduler, and enough workers or ``stop`` is set.  Raises
        SchedulerLostError if ``stop`` is set and there is no scheduler, and when the scheduler is lost:
        then another engine can be opened.  Raises ClusterError.
        """
        from tournaments.engines.remote.head.dask_engine import open_dask_engine

        def notify(sentence: str) -> None:
            self._add_news(f"{tournament.name}: {sentence}")

        self._tournaments += 1
        self._set_site(self._site)
        try:
            site = await self._wait_for_site(stop)
            async with open_dask_engine(
                site.address,
                f"{slug}-{secrets.token_hex(NAME_BYTES)}",
                security=site.credentials.security(),
                concurrency=tournament.concurrency,
                own_core=tournament.own_core,
                demands=demands,
                refused=notify,
                shares=True,
            ) as engine:
                with trio.CancelScope() as scope, stop.cancels(scope):
                    await wait_for_slots(engine, self._table.minimum, notify)
                yield engine
        finally:
            self._tournaments -= 1
            self._set_site(self._site)

    async def _wait_for_site(self, stop: StopRequest) -> _Site:
        with trio.CancelScope() as scope, stop.cancels(scope):
            await trio.lowlevel.checkpoint()
            while self._site is None:
                await self._changed.wait()
        if self._site is None:
            raise SchedulerLostError("there is no scheduler")
        return self._site

    def _set_site(self, site: _Site | None) -> None:
        self._site = site
        self._changed.set()
        self._changed = trio.Event()

    def _add_news(self, sentence: str) -> None:
        self._news.append(News(self._now(), sentence))
