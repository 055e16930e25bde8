"""The plugin's reports on real games, with a fake worker."""

import asyncio
import contextlib
import functools
import os
import sys
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn, cast

import pytest
import uvloop

from referee.judge.results import Player
from referee.sandbox.bubblewrap import Sandbox, Tier
from referee.sandbox.host_resources import usable_cores
from tests.engines.games import LIMIT_S, assassin, job, unhurried
from tests.process.test_faults import honest
from tests.support.confinement import needs_sandbox
from tournaments.engines.base import EngineError, WorkerLostError
from tournaments.engines.remote.extra import ClusterError
from tournaments.engines.remote.head.dask_engine import read_reply
from tournaments.engines.remote.host import HostFacts
from tournaments.engines.remote.packed_bot import pack
from tournaments.engines.remote.worker import worker_play
from tournaments.engines.remote.worker.bot_cache import BotCache, ProgramsMissingError
from tournaments.engines.remote.worker.game_process import DIED, ENDED, FAILURE, Order
from tournaments.engines.remote.worker.worker_play import Assignment
from tournaments.engines.remote.worker.worker_plugin import NAME, GamePlugin

KEY = (f"{NAME}-cup", "g1", "1")
ADDRESS, HOST, SLOTS = "tls://10.0.0.1:1", "node17", 2
HERE = [ADDRESS, HOST, SLOTS]
BINDING = """
import os, sys
os.sched_setaffinity(0, range(1024))
print(len(os.sched_getaffinity(0)), file=sys.stderr, flush=True)
for line in sys.stdin:
    print("no move", flush=True)
"""
BINDER = Player("binder", ("/usr/bin/python3", "-S", "-E", "-c", BINDING), "/")
"""A bot that chooses its cores, as libraries for numbers do, and loses by its first line."""


class Worker:
    """Fake of Dask's worker."""

    address = ADDRESS

    def __init__(self) -> None:
        self.metrics: dict[str, Callable[[Any], Any]] = {}
        self.said: list[tuple[str, dict[str, Any]]] = []
        self.spoke = asyncio.Event()
        self.executors = {"default": ThreadPoolExecutor(SLOTS)}

    def log_event(self, topic: str, message: dict[str, Any]) -> None:
        self.said.append((topic, message))
        self.spoke.set()


class Place:
    """A plugin in its worker."""

    def __init__(self, folder: Path) -> None:
        self.worker = Worker()
        self.plugin = GamePlugin(HostFacts(HOST, SLOTS, Tier.OFF.value, 1e6, "1", "3"), SLOTS, folder)
        self.plugin.setup(cast("Any", self.worker))

    def begin(
        self,
        first: Player | None = None,
        second: Player | None = None,
        sandbox: Sandbox | None = None,
        *,
        slow: bool = False,
        **options: bool,
    ) -> "asyncio.Task[None]":
        """Announce a task and run it in the loop, as Dask does."""
        self.plugin.transition(KEY, "ready", "executing")
        asked = job(first or (unhurried() if slow else honest()), second or honest(), key="g1")
        one, other = (pack(player)[0] for player in asked.players)
        assignment = Assignment(replace(asked, sandbox=sandbox or Sandbox()), (one, other), **options)
        return asyncio.create_task(self.plugin.play(KEY, assignment, "topic"))

    def kinds(self) -> list[list[str]]:
        """Contents of each message beside the game's name."""
        assert all(topic == "topic" and message["game"] == [*KEY] for topic, message in self.worker.said)
        return [[kind for kind in message if kind != "game"] for _, message in self.worker.said]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "scratch")


def in_its_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a test of a place in an event loop, as Dask has one, and end the place there."""

    async def run(place: Place, more: dict[str, Any]) -> None:
        try:
            await test(place, **more)
        finally:
            await place.plugin.teardown(cast("Any", place.worker))
            place.worker.executors["default"].shutdown()

    @functools.wraps(test)
    def wrapped(place: Place, **more: Any) -> None:
        uvloop.run(run(place, more))

    return wrapped


@in_its_loop
async def test_a_quick_game_is_one_event(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_play, "QUICK_S", 60.0)
    await place.begin()
    assert place.worker.said == []  # the game has ended, and its task goes on for a moment
    place.plugin.transition(KEY, "executing", "memory")
    assert place.kinds() == [["begins", "reply"]]
    _, message = place.worker.said[0]
    assert message["begins"] == HERE
    game = read_reply("g1", message["reply"])
    assert (game.summary.key, game.host) == ("g1", os.uname().nodename)
    assert game.record.players == job(honest(), honest()).players


@in_its_loop
async def test_a_longer_game_is_reported_when_it_begins_too(place: Place) -> None:
    playing = place.begin(slow=True)
    await playing
    assert place.kinds() == [["begins"]]
    place.plugin.transition(KEY, "executing", "memory")
    assert place.kinds() == [["begins"], ["begins", "reply"]]
    assert place.worker.said[0][1]["begins"] == HERE


@in_its_loop
async def test_the_beginning_of_a_followed_game_is_reported_before_its_snapshots(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_play, "QUICK_S", 60.0)
    await place.begin(slow=True, followed=True)
    kinds = place.kinds()
    assert kinds[:2] == [["begins"], ["snapshot"]]
    assert set(map(tuple, kinds[1:])) == {("snapshot",)}


@pytest.mark.parametrize("finish", ["released", "error"])
@in_its_loop
async def test_the_reply_of_a_released_task_is_dropped(place: Place, finish: str) -> None:
    await place.begin()
    place.plugin.transition(KEY, "executing", finish)
    place.plugin.transition(KEY, "released", "forgotten")
    assert ["begins", "reply"] not in place.kinds()
    place.plugin.transition(KEY, "executing", "memory")
    assert ["begins", "reply"] not in place.kinds()


@in_its_loop
async def test_a_cancelled_game_is_reported_as_cancelled(place: Place) -> None:
    playing = place.begin(slow=True)
    await place.worker.spoke.wait()
    place.plugin.transition(KEY, "executing", "cancelled")
    await playing
    place.plugin.transition(KEY, "cancelled", "memory")
    assert place.kinds() == [["begins"], ["begins", "reply"]]
    with pytest.raises(EngineError, match="the game was cancelled by the tournament runner"):
        read_reply("g1", place.worker.said[-1][1]["reply"])


@in_its_loop
async def test_a_game_whose_process_died_is_to_be_played_on_another_host(
    place: Place, tmp_path: Path
) -> None:
    await place.begin(assassin(tmp_path))
    place.plugin.transition(KEY, "executing", "memory")
    assert place.worker.said[-1][1]["reply"] == DIED + b"the game's process died"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="cores are bound on Linux alone")
@pytest.mark.parametrize("own_core", [False, True])
@in_its_loop
async def test_a_bot_is_bound_to_the_only_core_of_its_host_on_request_alone(
    place: Place, monkeypatch: pytest.MonkeyPatch, own_core: bool
) -> None:
    monkeypatch.setattr(worker_play, "usable_cores", lambda: usable_cores()[:1])
    place.plugin.slots = 1
    place.plugin.setup(cast("Any", place.worker))
    await place.begin(BINDER, BINDER, needs_sandbox(), own_core=own_core)
    place.plugin.transition(KEY, "executing", "memory")
    record = read_reply("g1", place.worker.said[-1][1]["reply"]).record
    assert len(record.cores) == 1
    cores = int(record.stderr[0])
    assert cores == 1 if own_core else cores >= len(usable_cores())


@in_its_loop
async def test_a_worker_that_ends_leaves_no_bot_and_no_game_process(place: Place) -> None:
    before = children()
    playing = place.begin(slow=True)
    await place.worker.spoke.wait()
    assert children() - before
    playing.cancel()
    await playing
    assert not children() - before  # nor those of a game process that has ended, which this process adopted
    place.plugin.transition(KEY, "executing", "memory")
    with pytest.raises(WorkerLostError, match="this worker was ended"):
        read_reply("g1", place.worker.said[-1][1]["reply"])


@in_its_loop
async def test_a_worker_ends_while_it_prepares_a_game(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker does not wait for a build, and neither do idle processes."""
    await place.begin()
    preparing, goes_on = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def ready(*_: object) -> NoReturn:
        loop.call_soon_threadsafe(preparing.set)
        goes_on.wait()
        raise ClusterError("too late")

    monkeypatch.setattr(BotCache, "cached", lambda *_: None)
    monkeypatch.setattr(BotCache, "prepare", ready)
    playing = place.begin()
    await preparing.wait()
    place.worker.executors["default"].submit(goes_on.wait)  # in the place of another slot
    playing.cancel()
    await playing
    try:
        await asyncio.wait_for(place.plugin.teardown(cast("Any", place.worker)), LIMIT_S)
    finally:
        goes_on.set()
    place.plugin.transition(KEY, "executing", "memory")
    with pytest.raises(WorkerLostError, match="this worker was ended"):
        read_reply("g1", place.worker.said[-1][1]["reply"])


@in_its_loop
async def test_a_game_that_a_host_cannot_play_for_an_unforeseen_reason_may_be_played_elsewhere(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task without a reply would end as if no host was the cause, and the next game would come here."""

    def no_thread(*_: object) -> NoReturn:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(BotCache, "prepare", no_thread)
    await place.begin()
    place.plugin.transition(KEY, "executing", "memory")
    (_, message) = place.worker.said[0]
    assert message["begins"] == HERE
    assert message["reply"] == FAILURE + b'RuntimeError("can\'t start new thread")'


@in_its_loop
async def test_missing_programs_are_reported(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking(*_: object) -> NoReturn:
        raise ProgramsMissingError("anna", ["/opt/jdk/bin/java"])

    monkeypatch.setattr(BotCache, "prepare", lacking)
    await place.begin()
    place.plugin.transition(KEY, "executing", "memory")
    (_, message) = place.worker.said[0]
    assert message["missing"] == ["/opt/jdk/bin/java"]
    assert message["reply"] == FAILURE + b"node17 lacks java, and anna needs that: install it there"


def children() -> set[str]:
    """Of this process: their ids."""
    found: set[str] = set()
    for path in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):  # a thread that ends just now
            found.update(path.read_text().split())
    return found


@in_its_loop
async def test_a_cancellation_just_before_the_order_counts(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the choice of a process and the order to it there is some time."""
    packed = Order.packed

    def slowly(order: Order) -> bytes:
        place.plugin.transition(KEY, "executing", "cancelled")
        return packed(order)

    monkeypatch.setattr(Order, "packed", slowly)
    playing = place.begin(slow=True)
    await playing
    place.plugin.transition(KEY, "cancelled", "memory")
    assert place.worker.said[-1][1]["reply"] == FAILURE + b"the game was cancelled by the tournament runner"
    assert place.kinds() == [["begins", "reply"]]  # it was not begun


@pytest.mark.parametrize(
    ("kind", "error"), [(ENDED, WorkerLostError), (DIED, WorkerLostError), (FAILURE, EngineError)]
)
def test_what_a_reply_says_of_the_worker(kind: bytes, error: type[EngineError]) -> None:
    with pytest.raises(EngineError, match="game g1: no luck") as raised:
        read_reply("g1", kind + b"no luck")
    assert type(raised.value) is error
