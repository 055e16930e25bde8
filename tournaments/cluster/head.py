"""The head's end of a Dask cluster: the games that it asked for, and the workers that it knows.

A game is a task of Dask's.  What a worker has to say of it comes as events, in the order in which it said it:
that it begins, how it goes on, and its reply, too.  The reply is not the task's result, which would stay with
the worker until it was asked for, over two more connections, and be lost with it.
"""

import asyncio
import contextlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from distributed import Client, Future, KilledWorker

from referee.feed import Snapshot
from tournaments.cluster.asyncio_thread import AsyncioThread
from tournaments.cluster.dask_settings import SEND_EVERY_S
from tournaments.cluster.errors import ClusterError, SchedulerLostError
from tournaments.cluster.game_process import FAILURE
from tournaments.cluster.host import HostFacts, missing_programs
from tournaments.cluster.host_workers import HostWorkers
from tournaments.cluster.pair_hosts import PairHosts
from tournaments.cluster.scheduler_plugin import LOST, BotsAndWorkers
from tournaments.cluster.submissions import Submissions
from tournaments.cluster.waiting import Demands
from tournaments.cluster.worker_plugin import NAME, play_on_worker
from tournaments.engines.base import Begun, EngineError, WorkerLostError

LOOK_S = 0.2
"""How often it is looked whether a worker has come that will do."""
ANSWER_S = 1.0
"""A worker answers within some milliseconds."""
ASK_LIMIT_S = 10.0
"""One that does not is about to vanish, as a rule: Dask gives it up after 60 s."""
FORGET_EVERY_S = 0.25
"""Scheduler and workers forget the games that have ended together, which wakes each of them once for all."""
GONE = "the connection to the scheduler was lost"


class _HostGoneError(Exception):
    """All workers are gone that might have played a game, which had not begun."""


@dataclass(eq=False)
class AskedGame:
    """A game that was asked for.  Changed in Dask's thread only."""

    key: str
    pair: str
    """See ``Job.pair``."""
    packed: bytes
    """An Assignment."""
    takes: dict[str, float]
    """Of a worker's resources."""
    begun: Begun | None
    """To be called in Trio's loop once, as soon as it is known where it is played, and before its end."""
    follow: Callable[[Snapshot], None] | None
    """To be called there, too."""
    allowed: frozenset[str] = frozenset()
    """The addresses of the workers that may play it; empty if all may."""
    worker: str | None = None
    """The address of the one where it is known to have begun, see ``QUICK_S``."""
    task: Future | None = None
    """Once the scheduler was asked for it.  Its end is not waited for, before which a reply comes; if none
    does, ``Head.fail_ended`` finds out."""
    outcome: "asyncio.Future[bytes | Exception]" = field(init=False)
    """The worker's reply, or why there is none."""


class Head:
    """Everything of Dask's on the head, in its thread."""

    def __init__(
        self,
        client: Client,
        name: str,
        demands: Demands,
        thread: AsyncioThread,
        limit: int | None = None,
        *,
        shares: bool = False,
    ) -> None:
        """``name`` tells this head's games from others'; ``limit`` is how many may be played at a time.

        A head that ``shares`` its scheduler passes over workers that do not meet its demands, which others
        may play with; one that does not turns them away.
        """
        self._client = client
        self._shares = shares
        self._chooses = bool(demands.same_speed) or (shares and bool(demands.programs))
        """Whether the resources that a game takes, versions and sandbox, do not say all that is demanded of
        a worker that may be there before we have looked at it, or that others may play with."""
        self._came: dict[str, None] = {}
        """The addresses of workers in the order in which they were first seen."""
        self._missing: dict[str, tuple[str, ...]] = {}
        """Address of a worker -> the programs that it lacks, of those that are demanded."""
        self._asking: dict[str, asyncio.Task[tuple[str, ...] | None]] = {}
        """Address of a worker -> the question for them, while it has not been answered."""
        self._name = f"{NAME}-{name}"
        self._demands = demands
        self._thread = thread
        self._limit = None if limit is None else asyncio.Semaphore(limit)
        self._games: dict[tuple[str, ...], AskedGame] = {}
        self._attempts: Counter[str] = Counter()
        self._submissions = Submissions(client, play_on_worker)
        self._ended: list[Future] = []
        """Games that scheduler and workers have not forgotten."""
        self._workers = HostWorkers()
        """Those that will do."""
        self._pairs = PairHosts(lambda host: bool(self._workers.of(host)))
        self._unable: defaultdict[str, set[str]] = defaultdict(set)
        """Key of a game -> the hosts that could not play it."""
        self._changes = -1
        self.fit: list[tuple[HostFacts, int]] = []
        """Workers that will do, with their slots; replaced as a whole."""
        self.slots = 0
        """Of all of them; it is asked for before each game, and there may be thousands."""
        self.refusals: dict[str, str] = {}
        """Address of a worker that will not do -> why; replaced as a whole."""

    @property
    def topic(self) -> str:
        """Under which workers tell this head of its games."""
        return f"{NAME}-{self._client.id}"

    async def begin(self) -> None:
        """Make ourselves known to the scheduler.  Raises ClusterError."""
        try:
            await self._client.register_plugin(BotsAndWorkers())
        except OSError as error:
            raise SchedulerLostError(GONE) from error
        self._check_connected()
        self._client.subscribe_topic(self.topic, self._told)
        self._client.subscribe_topic(LOST, self._lost)
        self._client.scheduler_comm.interval = SEND_EVERY_S

    async def play(self, game: AskedGame) -> bytes:
        """Have a game played; the worker's reply.  Raises EngineError, ClusterError."""
        while True:
            async with self._pairs.host(game.pair) as host:
                if host in self._unable.get(game.key, ()):
                    host = None  # it is there, and that is all
                if host is not None and self._limit is not None and not self._has_room(host):
                    # It would only wait there, and meanwhile be one of the few that may be played.
                    await self._pairs.chooser_ends(game.pair)
                try:
                    async with self._limit or contextlib.nullcontext():
                        return await self._play_on(host, game)
                except _HostGoneError:  # it may be played anywhere then: a finished game is not played again
                    continue

    async def _play_on(self, host: str | None, game: AskedGame) -> bytes:
        game.allowed = frozenset() if host is None else self._workers.of(host)
        if host is not None and not game.allowed:
            raise _HostGoneError
        if host is None and (self._chooses or game.key in self._unable):
            game.allowed = await self._those_that_will_do(self._unable.get(game.key, ()))
        self._check_connected()
        self._attempts[game.key] += 1
        name = (self._name, game.key, str(self._attempts[game.key]))
        game.outcome = asyncio.get_running_loop().create_future()
        game.task = None  # one that it had at a host that is gone has ended
        self._games[name] = game
        try:
            outcome = await self._outcome(name, game)
        except Exception as error:  # whatever kept a worker from even beginning, or its reply from arriving
            self._check_connected()
            raise EngineError(f"game {game.key} could not be played by a worker: {error!r}") from error
        finally:
            del self._games[name]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def _outcome(self, name: tuple[str, ...], game: AskedGame) -> bytes | Exception:
        game.task = await self._submissions.submit(
            name, game.packed, self.topic, name, takes=game.takes, workers=game.allowed
        )
        outcome: bytes | Exception | None = None
        try:
            outcome = await game.outcome
            return outcome
        finally:
            if isinstance(outcome, bytes):
                self._forget_soon(game.task)
            else:  # a game that goes on is wanted by nobody then, and given up: see GamePlugin
                game.task.release()

    async def _those_that_will_do(self, unable: Iterable[str]) -> frozenset[str]:
        """All that were looked at and will do, once there is one: not those that have just joined.

        Nor those of hosts that were ``unable``, if there are others.
        """
        while not (found := self._workers.all()):  # noqa: ASYNC110 - looked for once a second anyway
            await asyncio.sleep(LOOK_S)
        return found.difference(*map(self._workers.of, unable)) or found

    def _forget_soon(self, ended: Future) -> None:
        if not self._ended:
            asyncio.get_running_loop().call_later(FORGET_EVERY_S, self._forget)
        self._ended.append(ended)

    def _forget(self) -> None:
        for future in self._ended:
            future.release()
        self._ended.clear()

    async def keep(self, digest: str, archive: bytes) -> None:
        """Give the files of a bot to the scheduler, if it does not have them.  Raises ClusterError."""
        try:
            if not await self._client.scheduler.kalarena_keep(digest=digest):
                await self._client.scheduler.kalarena_keep(digest=digest, archive=archive)
        except OSError as error:
            raise SchedulerLostError(GONE) from error

    async def look(self) -> list[str]:
        """Ask which workers there are; what is to be said of those that are turned away now.

        Raises OSError, and ClusterError once the connection is known to be lost.
        """
        self._check_connected()
        answer = await self._client.scheduler.kalarena_workers(changes=self._changes)
        if answer is None:
            return []
        self._changes = answer["changes"]
        workers = {address: (slots, facts) for address, slots, facts in answer["workers"]}
        self._came = dict.fromkeys([*filter(workers.__contains__, self._came), *workers])
        everyone: list[tuple[str, int, HostFacts]] = []
        refused: dict[str, str] = {}
        for address in self._came:
            slots, found = workers[address]
            try:
                everyone.append((address, slots, HostFacts.from_json(found)))
            except ClusterError as error:
                refused[address] = f"{address}: {error}"
        if self._demands.programs:
            everyone = await self._with_what_is_missing(everyone)
        reasons = self._demands.refusals([facts for _, _, facts in everyone])
        for (address, _, _), why in zip(everyone, reasons, strict=True):
            if why is not None:
                refused[address] = why
        fit = [(address, slots, facts) for address, slots, facts in everyone if address not in refused]
        self.fit = [(facts, slots) for _, slots, facts in fit]
        self.slots = sum(slots for _, slots in self.fit)
        self._workers.replace((address, facts.name, slots) for address, slots, facts in fit)
        self._free_those_that_wait_for_nobody()
        news = [address for address in refused if address not in self.refusals]
        self.refusals = refused
        if news and not self._shares:
            await self._client.retire_workers(news)
        return [refused[address] for address in news]

    async def fail_ended(self) -> None:
        """Fail the games whose tasks have ended without a reply.

        To be called now and then: to wait for the end of each task was a fifth of what Dask's thread did for
        a game.  Raises ClusterError once the connection is known to be lost.
        """
        self._check_connected()
        for game in [*self._games.values()]:
            if game.task is not None and game.task.done() and not game.outcome.done():
                _settle(game.outcome, await _why(game.task))

    async def _with_what_is_missing(
        self, everyone: list[tuple[str, int, HostFacts]]
    ) -> list[tuple[str, int, HostFacts]]:
        """Ask those that have not been asked for the programs of this head's bots: they may have come before
        it, or for others' games.

        Those that will not do anyway are not asked.  One that does not answer is left out until it does, and
        keeps nobody else waiting.
        """
        wanted = {address for address, _, facts in everyone if self._demands.refusal(facts) is None}
        self._missing = {address: found for address, found in self._missing.items() if address in wanted}
        for address in set(self._asking) - wanted:
            self._asking.pop(address).cancel()
        for address in wanted - set(self._missing) - set(self._asking):
            self._asking[address] = asyncio.create_task(self._ask_for_programs(address))
        if self._asking:
            await asyncio.wait(self._asking.values(), timeout=ANSWER_S)
        for address, question in list(self._asking.items()):
            if question.done():
                del self._asking[address]
                if (missing := question.result()) is not None:
                    self._missing[address] = missing
        if wanted - set(self._missing):
            self._changes = -1  # we look again, whether others come or not
        return [
            (address, slots, replace(facts, missing=self._missing.get(address, facts.missing)))
            for address, slots, facts in everyone
            if address in self._missing or address not in wanted
        ]

    async def _ask_for_programs(self, worker: str) -> tuple[str, ...] | None:
        """Those that a worker lacks; None if it does not say."""
        programs = list(self._demands.programs)
        ask = self._client.run(missing_programs, programs, workers=[worker], on_error="ignore")
        try:
            found = (await asyncio.wait_for(ask, ASK_LIMIT_S)).get(worker)
        except (TimeoutError, OSError):
            return None
        return None if found is None else tuple(found)

    def _check_connected(self) -> None:
        if self._client.status != "running":
            raise SchedulerLostError(GONE)

    def _has_room(self, host: str) -> bool:
        workers = self._workers.of(host)
        playing = sum(game.worker in workers for game in self._games.values())
        return playing < self._workers.slots(host)

    def _told(self, event: tuple[float, dict[str, Any]]) -> None:
        message = event[1]
        game = self._games.get(tuple(message["game"]))
        if game is None:  # it was cancelled just now
            return
        if "begins" in message and game.worker not in (None, message["begins"][0]):
            # Its worker is about to be lost, and Dask was quicker to have it played elsewhere than to say so.
            _settle(
                game.outcome, WorkerLostError(f"the worker {game.worker} was lost, which played {game.key}")
            )
            return
        could_not = message.get("reply", b"")[:1] == FAILURE
        if "begins" in message:
            address, host, slots = message["begins"]
            if could_not:
                self._unable[game.key].add(host)
                self._pairs.fails(game.pair, host)
        if "begins" in message and game.worker is None:
            game.worker = address
            self._workers.add(address, host, slots)  # it may have come since we looked
            if not could_not:
                self._pairs.begins(game.pair, host)
            if game.begun is not None:
                self._thread.call_trio(partial(game.begun, host))
        if "reply" in message:
            _settle(game.outcome, message["reply"])
        elif "snapshot" in message and game.follow is not None:
            with contextlib.suppress(ValueError):  # a program on the worker's host may have written it
                self._thread.call_trio(partial(game.follow, Snapshot.unpacked(message["snapshot"])))

    def _lost(self, event: tuple[float, str]) -> None:
        address = event[1]
        self._forget()  # Dask would have what was played there, and is still remembered, played once more
        self._workers.remove(address)
        for game in self._games.values():
            if game.worker == address:
                lost = WorkerLostError(f"the worker {address} was lost, which played game {game.key}")
                _settle(game.outcome, lost)
        self._free_those_that_wait_for_nobody()

    def _free_those_that_wait_for_nobody(self) -> None:
        """Let games go elsewhere that have not begun, and whose host has gone.

        Dask would keep them until it came back.  It may have been thought to be there when it was not, as of
        an answer that a lost worker overtook: so they are looked for after each answer, too.
        """
        for game in self._games.values():
            if (
                game.worker is None
                and game.allowed
                and not any(map(self._workers.__contains__, game.allowed))
            ):
                _settle(game.outcome, _HostGoneError())


def _settle(outcome: "asyncio.Future[bytes | Exception]", value: bytes | Exception) -> None:
    """The first word is the last."""
    if not outcome.done():
        outcome.set_result(value)


async def _why(ended: Future) -> Exception:
    """Why there is no reply from a task, which would have come before its end."""
    raised = await ended.exception()
    if isinstance(raised, KilledWorker):  # it was sent to several that were lost before it began
        return WorkerLostError(f"the workers were lost that a game waited for: {raised}")
    if raised is not None:
        return EngineError(f"a worker could not play a game: {raised!r}")
    return EngineError("a game ended on a worker that did not say how")
