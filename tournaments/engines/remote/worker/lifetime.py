"""End of a worker with a limited lifetime: it begins no game that would be lost with it.

The time of a game is estimated from those that were played here; before the first one ends, only ``SPARE_S``
is kept free.  A game that lasts longer than all before is lost, and played again on another worker.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any

from distributed import Status, Worker, WorkerPlugin

from tournaments.engines.remote.worker.worker_plugin import is_game

SPARE_S = 20.0
"""Seconds kept free in any case: leaving takes some seconds, and a batch system's clock may differ."""
LONGER = 1.25
"""Factor by which the next game may take longer than the longest one so far."""
POLL_S = 0.5


def is_too_late(left_s: float, longest_s: float) -> bool:
    """Return whether a game must not begin, with so many seconds left and such a longest game."""
    return left_s < longest_s * LONGER + SPARE_S


class Lifetime(WorkerPlugin):  # type: ignore[misc]
    """Plugin that stops new games in time, and lets the worker leave after its last one."""

    name = "kalarena-lifetime"

    def __init__(self, ends_at: float, clock: Callable[[], float] = time.time) -> None:
        """``ends_at`` is in seconds since the epoch, like ``clock``.

        A worker that is restarted has no more time.
        """
        self._ends_at = ends_at
        self._clock = clock

    def setup(self, worker: Worker) -> None:
        """Begin to watch the time."""
        self._worker = worker
        self._begun: dict[Any, float] = {}
        self._longest_s = 0.0
        self._task = asyncio.create_task(self._leave_in_time())

    def teardown(self, worker: Worker) -> None:
        """Stop watching."""
        self._task.cancel()

    def transition(self, key: Any, start: str, finish: str, **_more: Any) -> None:
        """Record the state of a task; called by Dask."""
        if not is_game(key):
            return
        if finish == "executing":
            self._begun[key] = self._clock()
        elif key in self._begun:
            self._longest_s = max(self._longest_s, self._clock() - self._begun.pop(key))

    async def _leave_in_time(self) -> None:
        while not is_too_late(self._ends_at - self._clock(), self._longest_s):  # noqa: ASYNC110 - time passes
            await asyncio.sleep(POLL_S)
        self._worker.status = Status.paused  # waiting games move elsewhere, at the latest when this ends
        while self._begun:  # noqa: ASYNC110 - one check more or less does not matter
            await asyncio.sleep(POLL_S)
        # Not awaited here: the worker ends its plugins first, and so this task.
        self._leaving = asyncio.create_task(
            self._worker.close_gracefully(restart=False, reason="its time is over")
        )
