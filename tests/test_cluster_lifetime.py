"""A worker whose time is over leaves after its last game."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

import pytest
from distributed import Status, Worker

from tournaments.engines.remote.worker import lifetime
from tournaments.engines.remote.worker.lifetime import LONGER, SPARE_S, Lifetime, is_too_late
from tournaments.engines.remote.worker.worker_plugin import NAME

LIMIT_S = 10.0
GAME = (f"{NAME}-cup", "r001-1v2", "1")


@pytest.mark.parametrize(
    ("left_s", "longest_s", "late"),
    [
        (SPARE_S + 0.1, 0.0, False),
        (SPARE_S - 0.1, 0.0, True),
        (SPARE_S + 100.0 * LONGER, 100.0, False),
        (SPARE_S + 100.0, 100.0, True),
        (-1.0, 0.0, True),
    ],
)
def test_a_game_must_fit_into_what_is_left(left_s: float, longest_s: float, late: bool) -> None:
    assert is_too_late(left_s, longest_s) is late


@dataclass
class FakeWorker:
    """What the plugin sees of a worker."""

    status: Status = Status.running
    closed: list[bool] = field(default_factory=list)

    async def close_gracefully(self, restart: bool, reason: str) -> None:
        self.closed.append(restart)


async def until_status(worker: FakeWorker, status: Status) -> None:
    await becomes(lambda: worker.status is status)


async def becomes(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < until
        await asyncio.sleep(0.001)


def test_it_begins_nothing_more_ends_what_it_plays_and_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifetime, "POLL_S", 0.001)
    worker = FakeWorker()

    async def live() -> None:
        plugin = Lifetime(time.time() + SPARE_S + 0.1)
        plugin.setup(cast("Worker", worker))
        plugin.transition(GAME, "ready", "executing")
        plugin.transition("something of Dask's", "ready", "executing")
        assert worker.status is Status.running
        await until_status(worker, Status.paused)
        for _ in range(100):
            await asyncio.sleep(0.001)
        assert worker.closed == []
        plugin.transition(GAME, "executing", "memory")
        await becomes(lambda: bool(worker.closed))

    asyncio.run(live())
    assert worker.closed == [False]  # and is not started again


def test_it_goes_by_the_longest_game_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifetime, "POLL_S", 0.001)
    now = 0.0
    worker = FakeWorker()

    async def live() -> None:
        nonlocal now
        plugin = Lifetime(10_000.0, lambda: now)
        plugin.setup(cast("Worker", worker))
        for length_s in (1000.0, 3000.0, 10.0):
            plugin.transition(GAME, "ready", "executing")
            now += length_s
            plugin.transition(GAME, "executing", "memory")
        for _ in range(100):
            await asyncio.sleep(0.001)
        assert worker.status is Status.running
        now = 10_000.0 - 3000.0 * LONGER - SPARE_S + 1.0
        await until_status(worker, Status.paused)
        plugin.teardown(cast("Worker", worker))

    asyncio.run(live())


def test_a_worker_that_ends_otherwise_is_not_watched_any_more() -> None:
    worker = FakeWorker()

    async def live() -> None:
        plugin = Lifetime(time.time() + 3600)
        plugin.setup(cast("Worker", worker))
        plugin.teardown(cast("Worker", worker))

    asyncio.run(live())
    assert worker.status is Status.running
