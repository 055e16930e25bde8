"""Cache of the course's tables for pages, with a single read for concurrent requests.

Hundreds of pages read the same few rows, and each read costs a thread's turn and a transaction.  A value is
kept until this process writes to the course, so that a change is visible at once in the process that made it;
a write of another process (`kalarena admin`) is visible at most RECALLED_S later.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import partial
from typing import TypeVar, TypeVarTuple

import trio

from tournaments.course.course import Course

RECALLED_S = 1.0
"""Seconds for which a value is kept, as for settings."""
MOST_RECALLED = 1_000
"""Maximum number of values; the oldest are dropped."""

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class ReadCache:
    """Cache of table reads; see above.  For the tasks of one event loop."""

    def __init__(self, course: Course, clock: Callable[[], float] = trio.current_time) -> None:
        """``clock`` is in seconds."""
        self._course = course
        self._clock = clock
        self._kept: OrderedDict[Hashable, tuple[int, float, object]] = OrderedDict()
        self._reading: dict[Hashable, trio.Lock] = {}
        """Locks of reads in progress; other requests wait for the lock, and then mostly find the value."""

    async def of(self, read: Callable[[*Ts], T], *args: *Ts) -> T:
        """Return the result of a method of one of the course's tables; the result must not be changed.

        Raises the exceptions of the method.
        """
        key = read, args
        if self._is_fresh(key):
            return self._kept[key][2]  # type: ignore[return-value]
        lock = self._reading.setdefault(key, trio.Lock())
        async with lock:
            try:
                if not self._is_fresh(key):
                    await self._read(key, partial(read, *args))
                return self._kept[key][2]  # type: ignore[return-value]
            finally:
                if not lock.statistics().tasks_waiting:
                    self._reading.pop(key, None)

    def _is_fresh(self, key: Hashable) -> bool:
        kept = self._kept.get(key)
        return (
            kept is not None and kept[0] == self._course.writes and 0 <= self._clock() - kept[1] < RECALLED_S
        )

    async def _read(self, key: Hashable, read: Callable[[], object]) -> None:
        # The number of writes is taken before the read: a write during the read makes the value stale.
        writes, now = self._course.writes, self._clock()
        self._kept[key] = writes, now, await trio.to_thread.run_sync(read)
        self._kept.move_to_end(key)
        if len(self._kept) > MOST_RECALLED:
            self._kept.popitem(last=False)
