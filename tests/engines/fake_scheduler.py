"""Fakes of a scheduler and its workers, with which a head can be tested; and a decorator for asyncio."""

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import Any, cast

from referee.sandbox.bubblewrap import Tier
from tournaments.engines.remote.head.head import Head, RequestedGame
from tournaments.engines.remote.host import HostFacts, Versions
from tournaments.engines.remote.waiting import Demands
from tournaments.engines.remote.worker.game_process import FAILURE

FIRST, OTHER = "tls://10.0.0.1:1", "tls://10.0.0.2:1"


class Task:
    """A task at the scheduler, which ends when ``end`` is called."""

    def __init__(self, name: tuple[str, ...], workers: list[str] | None) -> None:
        self.name = name
        self.workers = workers
        self.released = False
        self._raised: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()

    def done(self) -> bool:
        return self._raised.done()

    async def exception(self) -> Exception | None:
        return self._raised.result()

    def end(self, raised: Exception | None = None) -> None:
        self._raised.set_result(raised)

    def release(self) -> None:
        """Release the task as Dask does: it counts as ended then."""
        self.released = True
        if not self.done():
            self.end()


class Scheduler:
    """Fake of Dask's client, of the scheduler behind it, and of the workers behind that."""

    id = "1"
    status = "running"

    def __init__(self) -> None:
        self.scheduler = self.scheduler_comm = self
        self.interval = 0.01
        self.tasks: list[Task] = []
        self.messages: list[list[tuple[str, ...]]] = []
        """The names of the tasks that came in each."""
        self.takes: list[dict[str, float]] = []
        """Of each task."""
        self.refuses: Exception | None = None
        self.when_asked: Callable[[], object] = lambda: None
        self.retired: list[str] = []
        self.facts: dict[str, Any] = {}
        self._changes = 0
        self._listeners: dict[str, Callable[[tuple[float, Any]], None]] = {}

    async def register_plugin(self, plugin: object) -> None:
        pass

    async def set_metadata(self, keys: list[str], value: object) -> None:
        pass

    def subscribe_topic(self, topic: str, listener: Callable[[tuple[float, Any]], None]) -> None:
        self._listeners[topic] = listener

    def map(
        self,
        function: Callable[..., Any],
        *arguments: tuple[Any, ...],
        key: list[tuple[str, ...]],
        workers: list[str] | None,
        **how: Any,
    ) -> list[Task]:
        if self.refuses is not None:
            raise self.refuses
        self.when_asked()
        tasks = [Task(name, workers) for name in key]
        self.tasks += tasks
        self.messages.append(key)
        for task, *given in zip(tasks, *arguments, strict=True):
            assert given == [b"", next(iter(self._listeners)), task.name]
        assert (how["pure"], how["retries"]) == (False, 0)
        self.takes += [how["resources"]] * len(tasks)
        return tasks

    async def kalarena_workers(self, changes: int) -> dict[str, Any]:
        self._changes += 1
        return {"changes": self._changes, "workers": [[at, 1, facts] for at, facts in self.facts.items()]}

    async def retire_workers(self, addresses: list[str]) -> None:
        self.retired += addresses

    def send_event(self, topic: str, message: Any) -> None:
        self._listeners[topic]((0.0, message))


class Cluster:
    """A head, and a scheduler with two hosts of one slot."""

    def __init__(self, demands: Demands | None = None) -> None:
        self.scheduler = Scheduler()
        self.begun: list[str] = []
        """The host of each game whose beginning was reported."""
        self.scheduler.facts = {FIRST: facts("first"), OTHER: facts("other")}
        self.head = Head(
            cast("Any", self.scheduler), "cup", demands or Demands(), lambda function: function()
        )

    async def open(self) -> None:
        await self.head.begin()
        await self.head.poll_workers()

    def game(
        self, key: str, pair: str, takes: dict[str, float] | None = None, programs: tuple[str, ...] = ()
    ) -> RequestedGame:
        return RequestedGame(key, pair, b"", takes or {}, frozenset(programs), self.begun.append, None)

    async def ask(self, key: str, pair: str = "pair", *programs: str) -> "asyncio.Task[bytes]":
        task = asyncio.create_task(self.head.play(self.game(key, pair, programs=programs)))
        await settled()
        return task

    async def begins(self, task: Task, address: str, host: str) -> None:
        self.scheduler.send_event(self.head.topic, {"game": [*task.name], "begins": [address, host, 1]})
        await settled()

    async def lacks(self, task: Task, address: str, host: str, program: str) -> None:
        reply = FAILURE + f"{host} lacks {program}".encode()
        message = {"game": [*task.name], "begins": [address, host, 1], "reply": reply, "missing": [program]}
        self.scheduler.send_event(self.head.topic, message)
        await settled()

    async def reply(self, task: Task, content: bytes) -> None:
        self.scheduler.send_event(self.head.topic, {"game": [*task.name], "reply": content})
        await settled()


def facts(name: str, speed: float = 1e6) -> dict[str, Any]:
    ours = Versions()
    return HostFacts(name, 1, Tier.OFF.value, speed, ours.kalarena, ours.python).to_json()


async def settled() -> None:
    """Let everything happen that can."""
    for _ in range(20):
        await asyncio.sleep(0)


def in_a_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a test in an event loop of asyncio; its argument ``cluster``, if any, is opened there."""

    async def run(arguments: dict[str, Any]) -> None:
        if "cluster" in arguments:
            await arguments["cluster"].open()
        await test(**arguments)

    @functools.wraps(test)
    def wrapped(**arguments: Any) -> None:
        asyncio.run(run(arguments))

    return wrapped
