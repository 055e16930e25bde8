"""The head's side of a Dask cluster: the requested games, and the available workers.

A game is a task of Dask.  A worker reports on it by events, in order: the beginning, the moves, and the
reply, too.  The reply is not the task's result, which would stay with the worker until it was requested, over
two more connections, and be lost with it.
"""

import asyncio
import contextlib
import math
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from distributed import Client, Future, KilledWorker

from referee.live_feed import Snapshot
from tournaments.engines.base import EngineError, OnSnapshot, OnStart, WorkerLostError
from tournaments.engines.remote.extra import SEND_EVERY_S, ClusterError, SchedulerLostError
from tournaments.engines.remote.head.pair_hosts import HostWorkers, PairHosts
from tournaments.engines.remote.host import HostFacts
from tournaments.engines.remote.scheduler_process import LOST, BotsAndWorkers
from tournaments.engines.remote.waiting import DEMANDS, Demands
from tournaments.engines.remote.worker.game_process import DIED, FAILURE
from tournaments.engines.remote.worker.worker_plugin import NAME, play_on_worker

JOINING_S = 60.0
"""Seconds after the first worker for which a game waits for a host with a program that all others lack: the
machines of a lab, and the jobs of a batch system, join one after the other."""
POLL_S = 0.2
"""Seconds between checks for a suitable worker."""
TOGETHER = 64
"""Maximum number of games that are submitted in one message.

The scheduler processes nothing else while it takes the games in, and larger messages would save little.
"""
FORGET_EVERY_S = 0.25
"""Seconds in which ended games are collected.

Scheduler and workers release them together, which wakes each of them once for all.
"""
GONE = "the connection to the scheduler was lost"


class _OtherHostError(Exception):
    """A game, which had not begun, has to be played elsewhere.

    All workers are gone that might have played it, or its host lacks a program and others may have it.
    """


@dataclass(eq=False)
class RequestedGame:
    """A requested game.  Changed in Dask's thread only."""

    key: str
    pair: str
    """Name of the pair, see ``Job.pair``."""
    packed: bytes
    """Packed Assignment."""
    takes: dict[str, float]
    """Required resources of a worker."""
    programs: frozenset[str]
    """Programs that the bots need, see ``PackedBot.programs``."""
    on_start: OnStart | None
    """Callback in Trio's loop, called once when the game's host is known, before the game ends."""
    on_snapshot: OnSnapshot | None
    """Callback in Trio's loop for snapshots."""
    allowed: frozenset[str] = frozenset()
    """Addresses of the workers that may play the game; empty if all may."""
    worker: str | None = None
    """Address of the worker where the game is known to have begun, see ``QUICK_S``."""
    task: Future | None = None
    """Submitted task; None before it is submitted.

    A reply arrives before the task's end, so that the end is not awaited; if there is no reply,
    ``Head.fail_ended`` detects that.
    """
    outcome: "asyncio.Future[bytes | Exception]" = field(init=False)
    """The worker's reply, or the reason why there is none."""


class Head:
    """The head's state in Dask's thread."""

    def __init__(
        self,
        client: Client,
        name: str,
        demands: Demands,
        call_trio: Callable[[Callable[[], object]], object],
        limit: int | None = None,
        *,
        shares: bool = False,
    ) -> None:
        """``call_trio`` schedules a function in Trio's loop.

        ``name`` distinguishes this head's games; ``limit`` is the maximum number of games at a time.

        A head that ``shares`` its scheduler skips workers that do not meet its demands, which others may play
        with; otherwise it turns them away.
        """
        self._client = client
        self._shares = shares
        self._came: dict[str, None] = {}
        """Addresses of workers in the order in which they were first seen."""
        self._missing: defaultdict[str, set[str]] = defaultdict(set)
        """Address of a worker -> programs that it is known to lack."""
        self._news: list[str] = []
        """Sentences on such workers that are not returned yet."""
        self._first_worker_at = math.inf
        """Time of the event loop when there was a worker for the first time."""
        self._name = f"{NAME}-{name}"
        self.demands = demands
        self._call_trio = call_trio
        self._limit = None if limit is None else asyncio.Semaphore(limit)
        self._games: dict[tuple[str, ...], RequestedGame] = {}
        self._attempts: Counter[str] = Counter()
        self._unsubmitted: list[tuple[str, ...]] = []
        """Names of the games to submit in the loop's next iteration."""
        self._ended: list[Future] = []
        """Tasks of ended games that are not released yet."""
        self._workers = HostWorkers()
        """Suitable workers."""
        self._pairs = PairHosts(lambda host: bool(self._workers.of(host)))
        self._unable: defaultdict[str, set[str]] = defaultdict(set)
        """Key of a game -> the hosts that could not play it."""
        self._changes = -1
        self._connection: Any = None
        """Dask's connection to the scheduler."""
        self.hosts: list[str] = []
        """Names of the hosts of suitable workers; replaced as a whole."""
        self.slots = 0
        """Slots of all suitable workers, precomputed: read before each game, and of thousands of workers."""
        self.refusals: dict[str, str] = {}
        """Address of an unsuitable worker -> the reason; replaced as a whole."""

    @property
    def topic(self) -> str:
        """Topic of the workers' events for this head."""
        return f"{NAME}-{self._client.id}"

    async def begin(self) -> None:
        """Register with the scheduler; publish the demands unless it is shared.  Raises ClusterError."""
        self._connection = self._client.scheduler_comm
        try:
            await self._client.register_plugin(BotsAndWorkers())
            if not self._shares:
                await self._client.set_metadata([DEMANDS], self.demands.to_json())
        except OSError as error:
            raise SchedulerLostError(GONE) from error
        self._check_connected()
        self._client.subscribe_topic(self.topic, self._on_event)
        self._client.subscribe_topic(LOST, self._lost)
        self._connection.interval = SEND_EVERY_S

    async def play(self, game: RequestedGame) -> bytes:
        """Have a game played and return the worker's reply.  Raises EngineError, ClusterError."""
        while True:
            async with self._pairs.host(game.pair) as host:
                if host in self._unable.get(game.key, ()):
                    host = None  # the host is there, but cannot play this game
                if host is not None and self._limit is not None and not self._has_room(host):
                    # It would only wait there, and meanwhile count against the limit.
                    await self._pairs.chooser_ends(game.pair)
                try:
                    async with self._limit or contextlib.nullcontext():
                        return await self._play_on(host, game)
                except _OtherHostError:  # any that will do: a finished game is not played again
                    continue

    async def _play_on(self, host: str | None, game: RequestedGame) -> bytes:
        game.allowed = frozenset() if host is None else self._workers.of(host)
        if host is not None and not game.allowed:
            raise _OtherHostError
        # Resources express neither speeds nor programs.  A worker that has just joined is not checked yet.
        chooses = self.demands.same_speed or game.key in self._unable or self._lacking(game)
        if host is None and chooses:
            game.allowed = await self._those_that_will_do(game)
        self._check_connected()
        self._attempts[game.key] += 1
        name = (self._name, game.key, str(self._attempts[game.key]))
        game.outcome = asyncio.get_running_loop().create_future()
        game.task = None  # a task of an earlier attempt, at a host that is gone, has ended
        self._games[name] = game
        if not self._unsubmitted:
            asyncio.get_running_loop().call_soon(self._submit)
        self._unsubmitted.append(name)
        try:
            outcome = await self._outcome(game)
        except Exception as error:  # any error that kept a worker from beginning, or its reply from arriving
            self._check_connected()
            raise EngineError(f"game {game.key} could not be played by a worker: {error!r}") from error
        finally:
            del self._games[name]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def _outcome(self, game: RequestedGame) -> bytes | Exception:
        outcome: bytes | Exception | None = None
        try:
            outcome = await game.outcome
            return outcome
        finally:
            if game.task is not None:
                if isinstance(outcome, bytes):
                    self._forget_soon(game.task)
                else:  # a running game is cancelled then: see GamePlugin
                    game.task.release()

    def _submit(self) -> None:
        """Submit the games requested in the loop's last iteration, in as few messages as possible.

        For the scheduler, a message costs more than each task in it.  Measured with tasks that do nothing, a
        task took 4.0 ms of the scheduler's time alone, 2.0 ms in a message of four and 1.8 ms in a message of
        sixteen.  Under load, games end together, so the next games are submitted together.
        """
        alike: defaultdict[tuple[Any, ...], list[tuple[str, ...]]] = defaultdict(list)
        for name in self._unsubmitted:
            game = self._games.get(name)
            if game is not None and not game.outcome.done():  # else it was cancelled
                alike[tuple(sorted(game.takes.items())), game.allowed].append(name)
        self._unsubmitted.clear()
        for (takes, allowed), names in alike.items():
            for begin in range(0, len(names), TOGETHER):
                self._submit_together(names[begin : begin + TOGETHER], dict(takes), sorted(allowed))

    def _submit_together(
        self, names: list[tuple[str, ...]], takes: dict[str, float], workers: list[str]
    ) -> None:
        games = [self._games[name] for name in names]
        try:
            tasks = self._client.map(
                play_on_worker,
                [game.packed for game in games],
                [self.topic] * len(games),
                names,
                key=names,
                resources=takes,
                # Not allow_other_workers: other workers would steal the game from a host that is there.  Once
                # none of ``workers`` is left, Dask would also ignore the resources: sandbox and version.
                workers=workers or None,
                pure=False,
                retries=0,
            )
        except Exception as error:
            for game in games:
                game.outcome.set_exception(error)
            return
        for game, task in zip(games, tasks, strict=True):
            game.task = task

    async def _those_that_will_do(self, game: RequestedGame) -> frozenset[str]:
        """Return all suitable workers, once there is one, but not those that have just joined.

        Workers that lack a program, and those of hosts that were unable to play the game, are left out, if
        there are others.
        """
        while not (found := self._workers.all()) or (  # noqa: ASYNC110 - workers are polled anyway
            found <= self._lacking(game) and self._others_may_join()
        ):
            await asyncio.sleep(POLL_S)
        found = (found - self._lacking(game)) or found
        return found.difference(*map(self._workers.of, self._unable.get(game.key, ()))) or found

    def _lacking(self, game: RequestedGame) -> set[str]:
        """Return the workers that are known to lack a program that a game needs."""
        return {address for address, missing in self._missing.items() if missing & game.programs}

    def _others_may_join(self) -> bool:
        return asyncio.get_running_loop().time() < self._first_worker_at + JOINING_S

    def _forget_soon(self, ended: Future) -> None:
        if not self._ended:
            asyncio.get_running_loop().call_later(FORGET_EVERY_S, self._forget)
        self._ended.append(ended)

    def _forget(self) -> None:
        for future in self._ended:
            future.release()
        self._ended.clear()

    async def keep(self, digest: str, archive: bytes) -> None:
        """Store a bot's files at the scheduler, unless it has them.  Raises ClusterError."""
        try:
            if not await self._client.scheduler.kalarena_keep(digest=digest):
                await self._client.scheduler.kalarena_keep(digest=digest, archive=archive)
        except OSError as error:
            raise SchedulerLostError(GONE) from error

    async def poll_workers(self) -> list[str]:
        """Update the workers; return sentences on those that are newly turned away, or lack programs.

        Raises OSError, and ClusterError once the connection is known to be lost.
        """
        self._check_connected()
        answer = await self._client.scheduler.kalarena_workers(changes=self._changes)
        news, self._news = self._news, []
        if answer is None:
            return news
        self._changes = answer["changes"]
        workers = {address: (slots, facts) for address, slots, facts in answer["workers"]}
        self._came = dict.fromkeys([*filter(workers.__contains__, self._came), *workers])
        for gone in self._missing.keys() - workers.keys():
            del self._missing[gone]
        everyone: list[tuple[str, int, HostFacts]] = []
        refused: dict[str, str] = {}
        for address in self._came:
            slots, found = workers[address]
            try:
                everyone.append((address, slots, HostFacts.from_json(found)))
            except ClusterError as error:
                refused[address] = f"{address}: {error}"
        reasons = self.demands.refusals([facts for _, _, facts in everyone])
        for (address, _, _), why in zip(everyone, reasons, strict=True):
            if why is not None:
                refused[address] = why
        fit = [(address, slots, facts) for address, slots, facts in everyone if address not in refused]
        self.hosts = sorted({facts.name for _, _, facts in fit})
        self.slots = sum(slots for _, slots, _ in fit)
        self._workers.replace((address, facts.name, slots) for address, slots, facts in fit)
        if fit:
            self._first_worker_at = min(self._first_worker_at, asyncio.get_running_loop().time())
        self._free_those_that_wait_for_nobody()
        newly = [address for address in refused if address not in self.refusals]
        self.refusals = refused
        if newly and not self._shares:
            await self._client.retire_workers(newly)
        return news + [refused[address] for address in newly]

    async def fail_ended(self) -> None:
        """Fail the games whose tasks have ended without a reply.

        To be called now and then: awaiting the end of each task took a fifth of the time of Dask's thread for
        a game.  Raises ClusterError once the connection is known to be lost.
        """
        for game in [*self._games.values()]:
            self._check_connected()
            if game.task is not None and game.task.done() and not game.outcome.done():
                _settle(game.outcome, await _error_of(game.task))

    def _check_connected(self) -> None:
        # A client of Dask's connects again by itself, perhaps to a scheduler that was started in the place of
        # the first one and knows neither its games nor the plugin.
        if self._client.status != "running" or self._client.scheduler_comm is not self._connection:
            raise SchedulerLostError(GONE)

    def _has_room(self, host: str) -> bool:
        workers = self._workers.of(host)
        playing = sum(game.worker in workers for game in self._games.values())
        return playing < self._workers.slots(host)

    def _on_event(self, event: tuple[float, dict[str, Any]]) -> None:
        message = event[1]
        game = self._games.get(tuple(message["game"]))
        if game is None:  # it was cancelled just now
            return
        if "begins" in message and game.worker not in (None, message["begins"][0]):
            # Its worker is about to be lost, and Dask reassigned the game before it reported the loss.
            _settle(
                game.outcome, WorkerLostError(f"the worker {game.worker} was lost, which played {game.key}")
            )
            return
        if "missing" in message:
            self._host_lacks(game, message)
            return
        could_not = message.get("reply", b"")[:1] in (FAILURE, DIED)
        if "begins" in message:
            address, host, slots = message["begins"]
            if could_not:
                self._unable[game.key].add(host)
                self._pairs.fails(game.pair, host)
        if "begins" in message and game.worker is None:
            game.worker = address
            self._workers.add(address, host, slots)  # it may have joined after the last update
            if not could_not:
                self._pairs.begins(game.pair, host)
            if game.on_start is not None:
                self._call_trio(partial(game.on_start, host))
        if "reply" in message:
            _settle(game.outcome, message["reply"])
        elif "snapshot" in message and game.on_snapshot is not None:
            with contextlib.suppress(ValueError):  # a program on the worker's host may have written it
                self._call_trio(partial(game.on_snapshot, Snapshot.unpacked(message["snapshot"])))

    def _host_lacks(self, game: RequestedGame, message: dict[str, Any]) -> None:
        """Have a game played elsewhere, or fail it if no worker may have the programs."""
        address, host, _ = message["begins"]
        missing = self._missing[address]
        if not missing.issuperset(message["missing"]):
            self._news.append(message["reply"][1:].decode(errors="replace"))
            missing.update(message["missing"])
        if self._others_may_join() or self._workers.all() - self._lacking(game):
            self._unable[game.key].add(host)  # or a game of a pair would be sent to its host again
            self._pairs.fails(game.pair, host)
            _settle(game.outcome, _OtherHostError())
        else:
            _settle(game.outcome, message["reply"])

    def _lost(self, event: tuple[float, str]) -> None:
        address = event[1]
        self._forget()  # Dask would repeat the games that were played there and are not released yet
        self._workers.remove(address)
        self._missing.pop(address, None)
        for game in self._games.values():
            if game.worker == address:
                lost = WorkerLostError(f"the worker {address} was lost, which played game {game.key}")
                _settle(game.outcome, lost)
        self._free_those_that_wait_for_nobody()

    def _free_those_that_wait_for_nobody(self) -> None:
        """Reassign games that have not begun, and whose host is gone.

        Dask would keep them until it came back.  The host may have been listed wrongly, as after a loss that
        arrived before an older list of workers: so these games are looked for after each update, too.
        """
        for game in self._games.values():
            if (
                game.worker is None
                and game.allowed
                and not any(map(self._workers.__contains__, game.allowed))
            ):
                _settle(game.outcome, _OtherHostError())


def _settle(outcome: "asyncio.Future[bytes | Exception]", value: bytes | Exception) -> None:
    """Set an outcome, unless it is set."""
    if not outcome.done():
        outcome.set_result(value)


async def _error_of(ended: Future) -> Exception:
    """Return the error for a task without a reply, which would have arrived before its end."""
    raised = await ended.exception()
    if isinstance(raised, KilledWorker):  # it was sent to several workers that were lost before it began
        return WorkerLostError(f"all workers with a game were lost: {raised}")
    if raised is not None:
        return EngineError(f"a worker could not play a game: {raised!r}")
    return EngineError("a game ended on a worker that reported no result")
