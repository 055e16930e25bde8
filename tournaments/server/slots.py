"""Allocation of CPU slots: one budget for checks, tournaments and practice.

A game or a check holds one slot until it ends; slots are never preempted.  The order of waiting tasks is:
checks, games of tournaments, practice games; within a kind, first come, first served.  A student waits for
the check of an upload; a tournament can wait for a minute, and practice for an hour.

Checks must not keep tournaments from playing, however many are uploaded: when a game of a tournament has been
passed over ``PASSED_OVER`` times in a row, it is next.  This does not apply to practice, which uses machines
that are otherwise idle.
"""

from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import Enum

import trio


class Kind(Enum):
    """Uses of a slot, by descending priority."""

    QUALIFICATION = "qualification"
    TOURNAMENT = "tournament"
    PRACTICE = "practice"


PASSED_OVER = 3
"""Number of times in a row after which a tournament's game is no longer passed over.

With a single slot, a tournament still gets a quarter of all turns.
"""


@dataclass(frozen=True, slots=True)
class Use:
    """Numbers of slots taken and of tasks waiting, for one kind."""

    taken: int
    waiting: int


class Slots:
    """Allocator of slots, for the tasks of one event loop."""

    def __init__(self, total: int) -> None:
        """Raises ValueError for less than one slot."""
        if total < 1:
            raise ValueError(f"there must be at least 1 place to play in, not {total}")
        self.total = total
        self._taken = dict.fromkeys(Kind, 0)
        self._waiting: dict[Kind, deque[trio.Event]] = {kind: deque() for kind in Kind}
        self._limits: dict[Kind, int] = {}
        self._passed_over = 0

    @asynccontextmanager
    async def taken(self, kind: Kind) -> AsyncIterator[None]:
        """Hold a slot during the block; wait for one first."""
        given = trio.Event()
        self._waiting[kind].append(given)
        self._assign()
        try:
            await given.wait()
            yield
        finally:
            if given.is_set():  # also if this task was cancelled just then
                self._taken[kind] -= 1
                self._assign()
            else:
                self._waiting[kind].remove(given)

    def limit(self, kind: Kind, most: int | None) -> None:
        """Limit a kind to ``most`` slots; None is all.  Slots that are taken are kept."""
        if most is None:
            self._limits.pop(kind, None)
        else:
            self._limits[kind] = most
        self._assign()

    def status(self) -> dict[Kind, Use]:
        """Return the current use of slots."""
        return {kind: Use(self._taken[kind], len(self._waiting[kind])) for kind in Kind}

    def _assign(self) -> None:
        while sum(self._taken.values()) < self.total:
            kind = self._next()
            if kind is None:
                return
            self._taken[kind] += 1
            self._waiting[kind].popleft().set()

    def _next(self) -> Kind | None:
        """Return the kind that gets the next slot; None if no waiting kind may have one."""
        able = [
            kind
            for kind in Kind
            if self._waiting[kind] and self._taken[kind] < self._limits.get(kind, self.total)
        ]
        if Kind.TOURNAMENT not in able:
            return able[0] if able else None
        if able[0] is not Kind.TOURNAMENT and self._passed_over < PASSED_OVER:
            self._passed_over += 1
            return able[0]
        self._passed_over = 0
        return Kind.TOURNAMENT
