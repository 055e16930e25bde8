"""Caches of computed values and of the course's tables.

Each value is computed once for all tasks that wait for it at the same time.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar, TypeVarTuple, cast

import trio

from tournaments.course.course import Course

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class SingleFlightCache(Generic[K, V]):
    """The most recently used values by key, for the tasks of one event loop."""

    def __init__(self, most: int) -> None:
        """``most`` is the maximum number of values; the least recently used value is dropped first."""
        self._most = most
        self._values: OrderedDict[K, V] = OrderedDict()
        self._locks: dict[K, trio.Lock] = {}
        """Locks of the computations in progress."""

    def peek(self, key: K) -> V | None:
        """Return the value of a key, fresh or not; None without one."""
        return self._values.get(key)

    async def get(
        self, key: K, compute: Callable[[], Awaitable[V]], is_fresh: Callable[[V], bool] = lambda _value: True
    ) -> V:
        """Return the value of a key, which is computed if there is none, or none that is fresh.

        Other tasks that need the same value wait for the computation.  An exception of ``compute`` is raised
        for one of them, and leaves the old value in the cache; the next one computes again.  A value that is
        not fresh even after its computation is returned, but not kept.
        """
        if not self._has_fresh(key, is_fresh):
            lock = self._locks.setdefault(key, trio.Lock())
            try:
                async with lock:
                    if not self._has_fresh(key, is_fresh):
                        value = await compute()
                        if not is_fresh(value):
                            self._values.pop(key, None)
                            return value
                        self._values[key] = value
            finally:
                if not lock.locked():
                    self._locks.pop(key, None)
        value = self._values[key]
        self._values.move_to_end(key)
        while len(self._values) > self._most:
            self._values.popitem(last=False)
        return value

    def _has_fresh(self, key: K, is_fresh: Callable[[V], bool]) -> bool:
        return key in self._values and is_fresh(self._values[key])


MAX_AGE_S = 1.0
"""Seconds for which a value is kept."""
MOST_KEPT = 1_000
"""Maximum number of values."""


@dataclass(frozen=True)
class _Entry:
    value: object
    writes: int
    """Number of writes to the course before the value was read."""
    at: float
    """Moment before the read."""


class ReadCache:
    """Cache of reads of the course's tables, for pages.  For the tasks of one event loop.

    Hundreds of pages read the same few rows, and each read costs a thread's turn and a transaction.  A value
    is kept until this process writes to the course, so that a change is visible at once in the process that
    made it; a write of another process (`kalarena admin`) is visible at most MAX_AGE_S later.  Casual games,
    mails, their addresses, and the last uses of tokens must not be read here: ``Course.writes`` does not
    count their changes.
    """

    def __init__(self, course: Course, clock: Callable[[], float] = trio.current_time) -> None:
        """``clock`` is in seconds."""
        self._course = course
        self._clock = clock
        self._cache: SingleFlightCache[Hashable, _Entry] = SingleFlightCache(MOST_KEPT)

    async def get(self, read: Callable[[*Ts], T], *args: *Ts) -> T:
        """Return the result of a method of one of the course's tables; the result must not be changed.

        Raises the exceptions of the method.
        """

        async def entry() -> _Entry:
            # Both are taken before the read: a write during the read makes the value stale.
            writes, at = self._course.writes, self._clock()
            return _Entry(await trio.to_thread.run_sync(partial(read, *args)), writes, at)

        return cast("T", (await self._cache.get((read, args), entry, self._is_fresh)).value)

    def _is_fresh(self, entry: _Entry) -> bool:
        return entry.writes == self._course.writes and 0 <= self._clock() - entry.at < MAX_AGE_S
