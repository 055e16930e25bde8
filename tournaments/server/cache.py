"""Caches of computed values and of the course's tables.

Each value is computed once for all tasks that wait for it at the same time.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import Generic, TypeVar, TypeVarTuple, cast

import trio

from tournaments.course.course import Course

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
T = TypeVar("T")
Ts = TypeVarTuple("Ts")


@dataclass
class _Computation:
    """A computation in progress of one value, and the tasks that wait for it."""

    lock: trio.Lock = field(default_factory=trio.Lock)
    error: Exception | None = None
    """Exception of the computation, which is raised in the tasks that still wait."""
    traceback: TracebackType | None = None
    """Traceback of ``error`` as the first task raised it; each task that raises it again would extend it."""


class SingleFlightCache(Generic[K, V]):
    """The most recently used values by key, for the tasks of one event loop."""

    def __init__(self, most: int) -> None:
        """``most`` is the maximum number of values; the least recently used value is dropped first."""
        self._most = most
        self._values: OrderedDict[K, V] = OrderedDict()
        self._computations: dict[K, _Computation] = {}

    def peek(self, key: K) -> V | None:
        """Return the value of a key, fresh or not; None without one."""
        return self._values.get(key)

    async def get(
        self, key: K, compute: Callable[[], Awaitable[V]], is_fresh: Callable[[V], bool] = lambda _value: True
    ) -> V:
        """Return the value of a key, which is computed if there is none, or none that is fresh.

        Other tasks that need the same value wait for the computation.  An exception of ``compute`` is raised
        in all tasks that wait, and leaves the old value in the cache; a later task computes again.  A value
        that is not fresh even after its computation is returned, but not kept.
        """
        if not self._has_fresh(key, is_fresh):
            computation = self._computations.setdefault(key, _Computation())
            try:
                async with computation.lock:
                    if computation.error is not None:
                        raise computation.error.with_traceback(computation.traceback)
                    if not self._has_fresh(key, is_fresh):
                        value = await self._compute(key, compute, computation)
                        if not is_fresh(value):
                            self._values.pop(key, None)
                            return value
                        self._values[key] = value
            finally:
                if not computation.lock.locked():
                    self._end(key, computation)
        value = self._values[key]
        self._values.move_to_end(key)
        while len(self._values) > self._most:
            self._values.popitem(last=False)
        return value

    async def _compute(self, key: K, compute: Callable[[], Awaitable[V]], computation: _Computation) -> V:
        try:
            return await compute()
        except Exception as error:
            computation.error, computation.traceback = error, error.__traceback__
            self._end(key, computation)
            raise

    def _end(self, key: K, computation: _Computation) -> None:
        if self._computations.get(key) is computation:
            del self._computations[key]

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
