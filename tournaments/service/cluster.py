"""The other machines on which a server's tournaments are played, if ``[cluster]`` of its file asks for them.

The scheduler runs on this machine, as long as the service does; workers come to it as people start them, or
as jobs of Slurm while a tournament is being played.  Each tournament has an engine of its own there, since
each demands something else of workers.  Checks and the practice ladder stay here.

It needs the extra, see ``require_extra``; what imports Dask is imported when it is used.
"""

from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from referee.sandbox import Sandbox
from tournaments.cluster.settings import ServerClusterTable
from tournaments.cluster.waiting import Demands, wait_for_slots
from tournaments.config import Tournament
from tournaments.engines.base import Engine
from tournaments.runner import Brake

if TYPE_CHECKING:  # they need the extra
    from tournaments.cluster.credentials import Credentials
    from tournaments.engines.dask import DaskEngine

SLURM = "slurm"
MOST_TOLD = 20
MOST_FOLLOWED = 100
"""Games of a tournament that can be watched move by move: of each move the scheduler hears, too."""


@dataclass(frozen=True, slots=True)
class News:
    """Something that happened there."""

    at: datetime
    sentence: str


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """The other machines at some moment."""

    slots: int
    """Games at a time."""
    hosts: Sequence[str]
    command: str
    """What makes another machine play; empty while there is no scheduler, and where Slurm does it."""
    news: Sequence[News]
    """The newest first."""


@dataclass(frozen=True)
class _Site:
    """A scheduler that runs."""

    address: str
    credentials: "Credentials"
    watch: "DaskEngine"
    """Plays nothing, and knows who is there."""


class ServiceCluster:
    """See above.  For the tasks of one event loop."""

    def __init__(
        self,
        table: ServerClusterTable,
        folder: Path,
        now: Callable[[], datetime],
        sandbox: Callable[[], Sandbox],
    ) -> None:
        """``folder`` is for credentials and logs; ``sandbox`` says, blocking, how bots will be confined."""
        self._table, self._folder, self._now, self._sandbox = table, folder, now, sandbox
        self._site: _Site | None = None
        self._tournaments = 0
        self._changed = trio.Event()
        """Set, and replaced, when the site or the number of tournaments changes."""
        self._news: deque[News] = deque(maxlen=MOST_TOLD)

    def status(self) -> ClusterStatus:
        """How it is."""
        from tournaments.elsewhere import hosts_of, worker_command

        news = tuple(reversed(self._news))
        if self._site is None:
            return ClusterStatus(0, (), "", news)
        is_ours = self._table.engine == SLURM
        command = "" if is_ours else worker_command(self._site.address, self._site.credentials.directory)
        return ClusterStatus(self._site.watch.slots, hosts_of(self._site.watch), command, news)

    async def run(self) -> None:
        """Have a scheduler, and jobs where Slurm gives them, until cancelled.  Raises ClusterError."""
        from tournaments import elsewhere
        from tournaments.cluster.demanded import tell_demands
        from tournaments.engines.dask import open_dask_engine

        elsewhere.quieten()
        sandbox = await trio.to_thread.run_sync(self._sandbox)
        async with elsewhere.open_scheduler_here(self._folder, self._table) as (address, credentials):
            await trio.to_thread.run_sync(tell_demands, address, credentials, Demands(tier=sandbox.tier))
            security = credentials.security()
            async with open_dask_engine(address, "server", security=security, refused=self._tell) as watch:
                self._is_now(_Site(address, credentials, watch))
                try:
                    async with trio.open_nursery() as nursery:
                        nursery.start_soon(elsewhere.tell_of_workers, watch, self._tell)
                        await self._have_jobs(address, credentials)
                finally:
                    self._is_now(None)

    async def _have_jobs(self, address: str, credentials: "Credentials") -> None:
        """Have them while there is something to play."""
        from tournaments.elsewhere import open_jobs

        while True:
            while self._table.engine != SLURM or not self._tournaments:
                await self._changed.wait()
            async with open_jobs(address, credentials, self._table, self._folder, self._tell):
                while self._tournaments:
                    await self._changed.wait()

    @asynccontextmanager
    async def engine(self, tournament: Tournament, sandbox: Sandbox, brake: Brake) -> AsyncIterator[Engine]:
        """An engine for a tournament, once there is a scheduler, and enough workers or the brake is pulled.

        Raises ClusterError, also when the scheduler is lost: then it can be asked for again.
        """
        from tournaments import elsewhere

        def tell(sentence: str) -> None:
            self._tell(f"{tournament.name}: {sentence}")

        same_speed = self._table.same_speed
        demands = await trio.to_thread.run_sync(elsewhere.demands_of, tournament, sandbox, same_speed)
        self._tournaments += 1
        self._is_now(self._site)
        try:
            while (site := self._site) is None:
                await self._changed.wait()
            async with elsewhere.open_engine_at(
                *(site.address, site.credentials, tournament, self._table, demands),
                *(tournament.concurrency, tell),
            ) as engine:
                with trio.CancelScope() as scope, brake.cancels(scope):
                    await wait_for_slots(engine, self._table.minimum, tell=tell)
                yield engine
        finally:
            self._tournaments -= 1
            self._is_now(self._site)

    def _is_now(self, site: _Site | None) -> None:
        self._site = site
        self._changed.set()
        self._changed = trio.Event()

    def _tell(self, sentence: str) -> None:
        self._news.append(News(self._now(), sentence))
