"""What the course's tables said a moment ago, for pages: read once, however many ask.

Hundreds look at the same few rows, and each read costs a thread's turn and a transaction.  An answer is kept
until something is written by this process, so that whoever changes something sees it changed at once; what
another process writes (`kalarena admin`) is seen RECALLED_S later at most.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import partial
from typing import TypeVar, TypeVarTuple

import trio

from tournaments.course.course import Course

RECALLED_S = 1.0
"""As settings are."""
MOST_RECALLED = 1_000
"""Answers; the oldest are forgotten."""

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class Recall:
    """See above.  For the tasks of one event loop."""

    def __init__(self, course: Course, clock: Callable[[], float] = trio.current_time) -> None:
        """``clock`` is in seconds."""
        self._course = course
        self._clock = clock
        self._kept: OrderedDict[Hashable, tuple[int, float, object]] = OrderedDict()
        self._reading: dict[Hashable, trio.Lock] = {}
        """For what is being read; others wait for that, and mostly have it then."""

    async def of(self, read: Callable[[*Ts], T], *args: *Ts) -> T:
        """What a method of one of the course's tables returns, which is not to be changed.

        Raises what it raises.
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
        # Looked at before it is read: what is written then makes it old.
        writes, now = self._course.writes, self._clock()
        self._kept[key] = writes, now, await trio.to_thread.run_sync(read)
        self._kept.move_to_end(key)
        if len(self._kept) > MOST_RECALLED:
            self._kept.popitem(last=False)
