"""Engine that plays games on the workers of a Dask cluster.

A game is a task of Dask's, with a key that is the same for the same attempt at the same game of the same
tournament.  Dask chooses the worker, except that the games of a pair are played on one host.  The code that
runs on workers is in tournaments/engines/remote/worker.

Dask would play a game again by itself if its worker died.  This is prevented, because the runner decides it
and spectators are informed.  The scheduler reports each lost worker; every game that was reported to have
begun there is cancelled and ends with an EngineError.  Other games move to another worker: those that only
waited, and those that had begun less than ``QUICK_S`` ago, whose beginning was not reported yet.
"""

import contextlib
import math
import pickle
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import trio
from distributed import Client, Security

from referee.judge.results import Player
from referee.playing import Job
from tournaments.engines.base import EngineError, OnSnapshot, OnStart, WorkerLostError
from tournaments.engines.remote.extra import ClusterError, SchedulerLostError
from tournaments.engines.remote.head.asyncio_thread import AsyncioThread, open_asyncio_thread
from tournaments.engines.remote.head.head import Head, RequestedGame
from tournaments.engines.remote.packed_bot import PackedBot, pack
from tournaments.engines.remote.waiting import Demands
from tournaments.engines.remote.worker.game_process import DIED, ENDED, GAME
from tournaments.engines.remote.worker.worker_play import Assignment
from tournaments.engines.remote.worker.worker_plugin import needed
from tournaments.results.game_summary import PackedGame

CONNECT_LIMIT_S = 30
POLL_S = 1.0
"""Interval at which the list of workers is read, and tasks that ended without a reply are looked for."""


@dataclass(eq=False, repr=False)
class DaskEngine:
    """Engine of a Dask cluster, see ``open_dask_engine``."""

    _head: Head
    _thread: AsyncioThread
    _most: float
    """Maximum number of games at a time."""
    _own_core: bool
    _reference_speed: float | None
    _packed: dict[Player, PackedBot] = field(default_factory=dict)
    _packing: trio.Lock = field(default_factory=trio.Lock)

    @property
    def concurrency(self) -> int:
        """The number of slots now, and one if there is none: that game waits for the first worker."""
        return int(min(self._most, max(1, self.slots)))

    @property
    def slots(self) -> int:
        """Number of games that the suitable workers can play at a time, as of a second ago."""
        return self._head.slots

    @property
    def hosts(self) -> list[str]:
        """Names of the hosts that play now."""
        return self._head.hosts

    async def play(
        self, job: Job, on_start: OnStart | None = None, on_snapshot: OnSnapshot | None = None
    ) -> PackedGame:
        """Play one game on a worker; see ``Engine.play``.

        Raises RefereeError, EngineError; ClusterError if no game can be played any more.
        """
        try:
            first, second = [await self._pack(player) for player in job.players]
        except ClusterError as error:
            raise EngineError(str(error)) from error
        assignment = Assignment(
            job, (first, second), self._own_core, self._reference_speed, on_snapshot is not None
        )
        takes = needed(self._head.demands.versions, job.sandbox.tier)
        programs = frozenset((*first.programs, *second.programs))
        requested = RequestedGame(
            job.key, job.pair, pickle.dumps(assignment), takes, programs, on_start, on_snapshot
        )
        return read_reply(job.key, await self._thread.run(self._head.play(requested)))

    async def _pack(self, player: Player) -> PackedBot:
        """Return a player as sent to workers; its files are at the scheduler then.  Raises ClusterError."""
        async with self._packing:
            if player not in self._packed:
                packed, archive = await trio.to_thread.run_sync(pack, player)
                if packed.digest:
                    await self._thread.run(self._head.keep(packed.digest, archive))
                self._packed[player] = packed
            return self._packed[player]


def read_reply(key: str, reply: bytes) -> PackedGame:
    """Return the game of a worker's reply, see tournaments/engines/remote/worker/game_process.py.

    Raises EngineError if the reply is no game, WorkerLostError if the game is not the cause.
    """
    if reply[:1] != GAME:
        kind = WorkerLostError if reply[:1] in (ENDED, DIED) else EngineError
        raise kind(f"game {key}: {reply[1:].decode('utf-8', 'replace')}")
    # It is from a worker, which our credentials let in: one that was malicious would not need a pickle.
    game: PackedGame = pickle.loads(reply[1:])
    return game


@asynccontextmanager
async def open_dask_engine(
    scheduler: str,
    tournament: str,
    *,
    security: Security | None = None,
    concurrency: int | None = None,
    own_core: bool = False,
    demands: Demands | None = None,
    refused: Callable[[str], object] = lambda _: None,
    reference_speed: float | None = None,
    shares: bool = False,
) -> AsyncIterator[DaskEngine]:
    """Open an engine that plays on the workers of this scheduler.

    ``tournament`` distinguishes its games from those of other heads.  At most ``concurrency`` games are
    played at a time; None is as many as there are slots.  With ``own_core`` a game has a core of its own on a
    worker that has one for each slot.  ``refused`` is called, in the event loop, with a sentence on each
    worker that is turned away because it does not meet the ``demands``.  An engine that ``shares`` its
    scheduler with others passes over such a worker, which others may play with.  For ``reference_speed`` see
    tournaments/config/host_speed.py.

    Raises ClusterError if the scheduler cannot be reached, or is lost.
    """
    async with open_asyncio_thread() as thread:
        client = await thread.run(_connect(scheduler, security))
        try:
            head = Head(
                client, tournament, demands or Demands(), thread.call_trio, concurrency, shares=shares
            )

            async def poll_workers() -> None:
                with contextlib.suppress(OSError):  # a scheduler that is gone: the client detects that itself
                    for sentence in await thread.run(head.poll_workers()):
                        refused(sentence)

            async def fail_ended() -> None:
                await thread.run(head.fail_ended())

            await thread.run(head.begin())
            await poll_workers()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_repeat, poll_workers)
                nursery.start_soon(_repeat, fail_ended)  # poll_workers waits for replies
                most = math.inf if concurrency is None else concurrency
                yield DaskEngine(head, thread, most, own_core, reference_speed)
                nursery.cancel_scope.cancel()
        finally:
            with trio.move_on_after(CONNECT_LIMIT_S, shield=True):
                await thread.run(_disconnect(client))


async def _connect(scheduler: str, security: Security | None) -> Client:
    client = None
    try:
        client = Client(
            scheduler,
            security=security,
            asynchronous=True,
            set_as_default=False,
            timeout=CONNECT_LIMIT_S,
        )
        return await client
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        raise SchedulerLostError(f"the scheduler at {scheduler} cannot be reached: {error}") from error
    finally:
        if client is not None and client.status != "running":
            _give_up(client)


async def _disconnect(client: Client) -> None:
    try:
        with contextlib.suppress(OSError, TimeoutError):  # one whose scheduler is gone
            await client.close()
    finally:
        _give_up(client)


def _give_up(client: Client) -> None:
    """Keep a client from closing itself when it is collected: its event loop may have ended then."""
    client.status = "closed"


async def _repeat(function: Callable[[], Awaitable[None]]) -> None:
    while True:
        await trio.sleep(POLL_S)
        await function()
