"""Cache of the course's tables for pages, with a single read for concurrent requests.

Hundreds of pages read the same few rows, and each read costs a thread's turn and a transaction.  A value is
kept until this process writes to the course, so that a change is visible at once in the process that made it;
a write of another process (`kalarena admin`) is visible at most MAX_AGE_S later.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar, TypeVarTuple, cast

import trio

from tournaments.course.course import Course
from tournaments.server.cache import SingleFlightCache

MAX_AGE_S = 1.0
"""Seconds for which a value is kept."""
MOST_KEPT = 1_000
"""Maximum number of values."""

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


@dataclass(frozen=True)
class _Entry:
    value: object
    writes: int
    """Number of writes to the course before the value was read."""
    at: float
    """Moment before the read."""


class ReadCache:
    """Cache of table reads; see above.  For the tasks of one event loop."""

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
