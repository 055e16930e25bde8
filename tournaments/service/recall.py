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

    async def of(self, read: Callable[[*Ts], T], *args: *Ts) -> T:
        """What a method of one of the course's tables returns, which is not to be changed.

        Raises what it raises.
        """
        key = read, args
        writes, now = (
            self._course.writes,
            self._clock(),
        )  # before it is read: what is written then makes it old
        kept = self._kept.get(key)
        if kept is not None and kept[0] == writes and 0 <= now - kept[1] < RECALLED_S:
            return kept[2]  # type: ignore[return-value]
        found = await trio.to_thread.run_sync(partial(read, *args))
        self._kept[key] = writes, now, found
        self._kept.move_to_end(key)
        if len(self._kept) > MOST_RECALLED:
            self._kept.popitem(last=False)
        return found
