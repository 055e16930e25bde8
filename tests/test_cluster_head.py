"""What the head makes of what a scheduler tells it, in an order that real ones take only at bad moments."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from distributed import KilledWorker

from referee.sandbox.bubblewrap import Tier
from tournaments.engines.base import EngineError, WorkerLostError
from tournaments.engines.remote.head import Head, RequestedGame
from tournaments.engines.remote.host import HostFacts, Versions
from tournaments.engines.remote.scheduler_plugin import LOST
from tournaments.engines.remote.task_batches import TOGETHER
from tournaments.engines.remote.waiting import Demands
from tournaments.engines.remote.worker.game_process import FAILURE

FIRST, OTHER = "tls://10.0.0.1:1", "tls://10.0.0.2:1"


class Task:
    """A task at the scheduler; it ends when it is told to."""

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
        """As Dask does: for whoever looks at it, it has ended then."""
        self.released = True
        if not self.done():
            self.end()


class Scheduler:
    """In place of Dask's client, of the scheduler behind it, and of the workers behind that."""

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
        self.programs: dict[str, set[str]] = {}
        """Address of a worker -> the programs that are there; none if it does not answer."""
        self._changes = 0
        self._listeners: dict[str, Callable[[tuple[float, Any]], None]] = {}

    async def register_plugin(self, plugin: object) -> None:
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

    async def run(self, function: object, programs: list[str], workers: list[str], **how: Any) -> Any:
        there = {address: self.programs[address] for address in workers if address in self.programs}
        return {address: [name for name in programs if name not in has] for address, has in there.items()}

    async def retire_workers(self, addresses: list[str]) -> None:
        self.retired += addresses

    def tell(self, topic: str, message: Any) -> None:
        self._listeners[topic]((0.0, message))


class Here:
    """In place of Trio's thread."""

    def call_trio(self, function: Callable[[], object]) -> None:
        function()


class Cluster:
    """A head, and what it talks to: two hosts of one slot."""

    def __init__(self, demands: Demands | None = None) -> None:
        self.scheduler = Scheduler()
        self.begun: list[str] = []
        """The host of each game that was told of when it began."""
        self.scheduler.facts = {FIRST: facts("first"), OTHER: facts("other")}
        self.head = Head(cast("Any", self.scheduler), "cup", demands or Demands(), cast("Any", Here()))

    async def open(self) -> None:
        await self.head.begin()
        await self.head.poll_workers()

    def game(self, key: str, pair: str, takes: dict[str, float] | None = None) -> RequestedGame:
        return RequestedGame(key, pair, b"", takes or {}, self.begun.append, None)

    async def ask(self, key: str, pair: str = "pair") -> "asyncio.Task[bytes]":
        task = asyncio.create_task(self.head.play(self.game(key, pair)))
        await settled()
        return task

    async def begins(self, task: Task, address: str, host: str) -> None:
        self.scheduler.tell(self.head.topic, {"game": [*task.name], "begins": [address, host, 1]})
        await settled()

    async def reply(self, task: Task, content: bytes) -> None:
        self.scheduler.tell(self.head.topic, {"game": [*task.name], "reply": content})
        await settled()


def facts(name: str, speed: float = 1e6) -> dict[str, Any]:
    ours = Versions()
    return HostFacts(name, 1, Tier.OFF.value, speed, ours.kalarena, ours.python).to_json()


async def settled() -> None:
    """Let everything happen that can."""
    for _ in range(20):
        await asyncio.sleep(0)


async def opened() -> Cluster:
    cluster = Cluster()
    await cluster.open()
    return cluster


def test_a_game_that_waits_for_a_host_that_was_lost_unseen_is_played_elsewhere() -> None:
    async def run() -> None:
        cluster = await opened()
        first = await cluster.ask("first")
        await cluster.begins(cluster.scheduler.tasks[0], FIRST, "first")
        assert cluster.begun == ["first"]
        cluster.scheduler.tell(LOST, FIRST)
        await settled()
        with pytest.raises(WorkerLostError, match=r"tls://10\.0\.0\.1:1 was lost, which played game first"):
            first.result()
        again = await cluster.ask("again")  # it chooses, and a worker takes it that is gone at once
        await cluster.begins(cluster.scheduler.tasks[1], FIRST, "first")
        second = await cluster.ask("second")
        assert cluster.scheduler.tasks[2].workers == [FIRST]
        del cluster.scheduler.facts[FIRST]
        await cluster.head.poll_workers()  # tells of it before the scheduler does
        await settled()
        assert cluster.scheduler.tasks[2].released
        assert [task.workers for task in cluster.scheduler.tasks] == [None, None, [FIRST], None]
        await cluster.begins(cluster.scheduler.tasks[3], OTHER, "other")
        await cluster.reply(cluster.scheduler.tasks[3], b"R")
        assert second.result() == b"R"
        cluster.scheduler.tell(LOST, FIRST)
        await settled()
        assert isinstance(again.exception(), EngineError)

    asyncio.run(run())


def test_a_reply_that_came_counts_though_its_worker_is_lost_then() -> None:
    async def run() -> None:
        cluster = await opened()
        game = await cluster.ask("game")
        (task,) = cluster.scheduler.tasks
        await cluster.begins(task, FIRST, "first")
        cluster.scheduler.tell(cluster.head.topic, {"game": [*task.name], "reply": b"R"})
        cluster.scheduler.tell(LOST, FIRST)
        await settled()
        assert game.result() == b"R"
        await cluster.reply(task, b"too late")

    asyncio.run(run())


def test_a_quick_game_is_told_of_once_and_chooses_the_host_of_its_pair() -> None:
    async def run() -> None:
        cluster = await opened()
        first, second = await cluster.ask("first"), await cluster.ask("second")
        (task,) = cluster.scheduler.tasks  # the other one waits until it is known where this one is played
        here = [OTHER, "other", 1]
        cluster.scheduler.tell(cluster.head.topic, {"game": [*task.name], "begins": here, "reply": b"G"})
        await settled()
        assert first.result() == b"G"
        assert cluster.begun == ["other"]
        assert [one.workers for one in cluster.scheduler.tasks] == [None, [OTHER]]
        await cluster.reply(cluster.scheduler.tasks[1], b"G")
        assert second.result() == b"G"

    asyncio.run(run())


def test_a_game_that_is_played_again_before_its_worker_is_known_to_be_lost() -> None:
    async def run() -> None:
        cluster = await opened()
        playing = await cluster.ask("it")
        await cluster.begins(cluster.scheduler.tasks[0], FIRST, "first")
        await cluster.begins(cluster.scheduler.tasks[0], OTHER, "other")
        with pytest.raises(WorkerLostError, match=r"tls://10\.0\.0\.1:1 was lost, which played it"):
            playing.result()
        assert cluster.begun == ["first"]
        assert cluster.scheduler.tasks[0].released

    asyncio.run(run())


def test_games_that_are_asked_for_at_once_are_one_message_without_those_that_were_cancelled() -> None:
    async def run() -> None:
        cluster = await opened()
        wanted = [cluster.game(key, "") for key in ("one", "two", "three")]
        confined = cluster.game("confined", "", {"a sandbox": 1.0})
        games = [asyncio.create_task(cluster.head.play(game)) for game in (*wanted, confined)]
        await asyncio.sleep(0)
        games[1].cancel()
        await settled()
        messages = [[key for _, key, _ in message] for message in cluster.scheduler.messages]
        assert messages == [["one", "three"], ["confined"]]
        assert cluster.scheduler.takes == [{}, {}, {"a sandbox": 1.0}]
        for task in cluster.scheduler.tasks:
            await cluster.reply(task, task.name[1].encode())
        assert [game.result() for game in (games[0], *games[2:])] == [b"one", b"three", b"confined"]

    asyncio.run(run())


def test_a_game_that_is_cancelled_just_when_it_was_asked_for_is_given_up() -> None:
    async def run() -> None:
        cluster = await opened()
        game = asyncio.create_task(cluster.head.play(cluster.game("game", "")))
        cluster.scheduler.when_asked = lambda: asyncio.get_running_loop().call_soon(game.cancel)
        await settled()
        assert game.cancelled()
        assert cluster.scheduler.tasks[0].released

    asyncio.run(run())


def test_a_message_has_so_many_games_at_most() -> None:
    async def run() -> None:
        cluster = await opened()
        keys = [str(number) for number in range(TOGETHER + 1)]
        games = [asyncio.create_task(cluster.head.play(cluster.game(key, ""))) for key in keys]
        await settled()
        assert [len(message) for message in cluster.scheduler.messages] == [TOGETHER, 1]
        assert [task.name[1] for task in cluster.scheduler.tasks] == keys
        for game in games:
            game.cancel()

    asyncio.run(run())


def test_a_game_that_goes_elsewhere_is_not_taken_for_what_was_given_up() -> None:
    async def run() -> None:
        cluster = await opened()
        first, second = await cluster.ask("first"), await cluster.ask("second")
        await cluster.begins(cluster.scheduler.tasks[0], FIRST, "first")
        await cluster.reply(cluster.scheduler.tasks[0], b"G")
        assert first.done()
        assert cluster.scheduler.tasks[1].workers == [FIRST]
        cluster.scheduler.tell(LOST, FIRST)  # and now it is looked in each turn of the loop
        for _ in range(20):
            await cluster.head.fail_ended()
            await asyncio.sleep(0)
        assert cluster.scheduler.tasks[1].released
        await cluster.begins(cluster.scheduler.tasks[2], OTHER, "other")
        await cluster.reply(cluster.scheduler.tasks[2], b"G")
        assert second.result() == b"G"

    asyncio.run(run())


def test_games_that_the_scheduler_cannot_be_asked_for_are_errors() -> None:
    async def run() -> None:
        cluster = await opened()
        cluster.scheduler.refuses = TypeError("too long")
        games = [await cluster.ask(key, "") for key in ("one", "two")]
        for game in games:
            with pytest.raises(EngineError, match=r"not be played by a worker: TypeError\('too long'\)"):
                game.result()
        cluster.scheduler.refuses = None
        again = await cluster.ask("one", "")
        await cluster.reply(cluster.scheduler.tasks[0], b"G")
        assert again.result() == b"G"

    asyncio.run(run())


def test_games_that_have_ended_are_forgotten_together(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        later: list[Callable[[], None]] = []
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(loop, "call_later", lambda _delay, function: later.append(function))
        cluster = await opened()
        games = [await cluster.ask(key, "") for key in ("one", "two", "three")]
        for task in cluster.scheduler.tasks[:2]:
            await cluster.reply(task, b"G")
        assert [game.done() for game in games] == [True, True, False]
        assert not any(task.released for task in cluster.scheduler.tasks)
        (forget,) = later
        forget()
        assert [task.released for task in cluster.scheduler.tasks] == [True, True, False]
        await cluster.reply(cluster.scheduler.tasks[2], b"G")
        assert len(later) == 2
        # What a lost worker still had would be played once more, by somebody who has better things to do.
        cluster.scheduler.tell(LOST, OTHER)
        assert cluster.scheduler.tasks[2].released

    asyncio.run(run())


def test_a_game_that_nobody_was_told_of_when_its_worker_was_lost_is_dasks_to_play_again() -> None:
    async def run() -> None:
        cluster = await opened()
        game = await cluster.ask("game")
        (task,) = cluster.scheduler.tasks
        cluster.scheduler.tell(LOST, FIRST)
        await settled()
        assert not task.released
        await cluster.begins(task, OTHER, "other")
        await cluster.reply(task, b"G")
        assert game.result() == b"G"
        assert cluster.begun == ["other"]

    asyncio.run(run())


@pytest.mark.parametrize(
    ("raised", "why"),
    [(None, "did not say how"), (OSError("out of space"), r"OSError\('out of space'\)")],
)
def test_a_task_that_ends_without_a_reply_is_an_error(raised: Exception | None, why: str) -> None:
    async def run() -> None:
        cluster = await opened()
        game = await cluster.ask("game")
        await cluster.head.fail_ended()
        await settled()
        assert not game.done()
        cluster.scheduler.tasks[0].end(raised)
        await cluster.head.fail_ended()
        await settled()
        with pytest.raises(EngineError, match=why):
            game.result()

    asyncio.run(run())


def test_a_game_whose_workers_were_lost_before_it_began_lost_machines() -> None:
    async def run() -> None:
        cluster = await opened()
        game = await cluster.ask("game")
        cluster.scheduler.tasks[0].end(KilledWorker("game", cast("Any", SimpleNamespace(address=FIRST)), 3))
        await cluster.head.fail_ended()
        await settled()
        with pytest.raises(WorkerLostError, match="lost that a game waited for"):
            game.result()

    asyncio.run(run())


def test_who_does_not_answer_keeps_nobody_waiting_and_who_will_not_do_is_not_asked() -> None:
    async def run() -> None:
        cluster = Cluster(Demands(programs=("java",)))
        frozen = asyncio.Event()
        answer = cluster.scheduler.run

        async def some_answer(function: object, programs: list[str], workers: list[str], **how: Any) -> Any:
            assert workers != ["tls://10.0.0.3:1"]
            if workers == [FIRST]:
                await frozen.wait()
            return await answer(function, programs, workers, **how)

        cluster.scheduler.run = some_answer  # type: ignore[method-assign]
        cluster.scheduler.programs = {FIRST: {"java"}, OTHER: {"java"}}
        old = facts("old") | {"kalarena": "0.0.1"}
        cluster.scheduler.facts["tls://10.0.0.3:1"] = old
        await cluster.head.begin()
        (sentence,) = await cluster.head.poll_workers()
        assert sentence.startswith("old has kalarena 0.0.1")
        assert [found.name for found, _ in cluster.head.fit] == ["other"]
        frozen.set()
        await settled()
        await cluster.head.poll_workers()
        assert {found.name for found, _ in cluster.head.fit} == {"first", "other"}

    asyncio.run(run())


def test_a_worker_that_says_nonsense_of_its_host_is_turned_away_and_the_others_play() -> None:
    async def run() -> None:
        cluster = Cluster()
        cluster.scheduler.facts[FIRST] = {"name": "first"}
        await cluster.head.begin()
        (sentence,) = await cluster.head.poll_workers()
        assert sentence == f"{FIRST}: a worker's facts of its host cannot be read: 'cores'"
        assert cluster.scheduler.retired == [FIRST]
        assert [found.name for found, _ in cluster.head.fit] == ["other"]
        assert await cluster.head.poll_workers() == []  # it is told of once

    asyncio.run(run())


def test_what_a_host_could_not_play_is_played_on_another_and_so_is_its_pair() -> None:
    async def run() -> None:
        cluster = await opened()
        first, second = await cluster.ask("first"), await cluster.ask("second")
        tasks = cluster.scheduler.tasks
        assert len(tasks) == 1
        here = [FIRST, "first", 1]
        failed = {"game": [*tasks[0].name], "begins": here, "reply": FAILURE + b"/tmp is full"}
        cluster.scheduler.tell(cluster.head.topic, failed)
        await settled()
        assert first.result() == failed["reply"]
        again = await cluster.ask("first")  # the second chooses now, and is not tied to that host
        assert [task.workers for task in tasks] == [None, None]
        await cluster.begins(tasks[1], FIRST, "first")  # where the first one could not be played
        assert [task.workers for task in tasks] == [None, None, [OTHER]]
        await cluster.begins(tasks[2], OTHER, "other")
        await cluster.reply(tasks[2], b"G")
        assert again.result() == b"G"
        second.cancel()

    asyncio.run(run())


def test_a_game_that_failed_where_all_workers_are_is_tried_there_again() -> None:
    async def run() -> None:
        cluster = Cluster()
        del cluster.scheduler.facts[OTHER]
        await cluster.open()
        for _ in range(2):
            game = await cluster.ask("game", "")
            task = cluster.scheduler.tasks[-1]
            await cluster.begins(task, FIRST, "first")
            failed = {"game": [*task.name], "begins": [FIRST, "first", 1], "reply": FAILURE + b"no"}
            cluster.scheduler.tell(cluster.head.topic, failed)
            await settled()
            assert game.result() == FAILURE + b"no"
        assert [task.workers for task in cluster.scheduler.tasks] == [None, [FIRST]]

    asyncio.run(run())


def test_workers_are_asked_for_programs_by_whom_they_came_before() -> None:
    async def run() -> None:
        cluster = Cluster(Demands(programs=("java",)))
        cluster.scheduler.programs = {FIRST: {"java", "sh"}}
        await cluster.open()
        assert [found.name for found, _ in cluster.head.fit] == ["first"]  # the other one did not answer
        cluster.scheduler.programs[OTHER] = {"sh"}
        (sentence,) = await cluster.head.poll_workers()
        assert sentence.startswith("other lacks java, and bots of this tournament need that")
        assert cluster.scheduler.retired == [OTHER]

    asyncio.run(run())


def test_who_came_first_stays_where_two_differ_and_the_other_plays_nothing() -> None:
    async def run() -> None:
        cluster = Cluster(Demands(same_speed=0.1))
        cluster.scheduler.facts = {OTHER: facts("other")}
        await cluster.open()
        cluster.scheduler.facts = {FIRST: facts("first", 1.25e6), OTHER: facts("other")}
        game = await cluster.ask("game", "")
        (sentence,) = await cluster.head.poll_workers()
        assert sentence.startswith("first has 125% of the median speed")
        assert cluster.scheduler.retired == [FIRST]
        assert cluster.scheduler.tasks[0].workers == [OTHER]  # though the first one had joined
        game.cancel()

    asyncio.run(run())
