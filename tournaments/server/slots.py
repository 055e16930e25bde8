"""Allocation of CPU slots: one budget for checks, tournaments, practice and challenges.

A game or a check holds one slot until it ends; slots are never preempted.  The order of waiting tasks is:
checks, games of tournaments, practice games, challenges (``CASUAL``); within a kind, first come, first
served.  A student waits for the check of an upload; a tournament can wait for a minute, and practice for an
hour.

Checks must not keep tournaments from playing, however many are uploaded: when a game of a tournament has been
passed over ``PASSED_OVER`` times in a row, it is next.  This does not apply to practice, which uses machines
that are otherwise idle.  Practice has no end: when a game of a challenge has been passed over as often by
practice games alone, it is next, too.  Challenges never keep a check or a tournament waiting.

Two kinds have slots of their own, which take none from the others; instead, their bots have a lower priority
than all others.  Games of people against bots hold one for a bot's turn: a person cannot wait until a
tournament or a practice game is over.  Challenges with a remote bot hold one for the whole game, which lasts
as long as that bot thinks at home, where it uses none of this machine's cores.
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
    CASUAL = "casual"
    """Games that people asked for: challenges."""
    PLAY = "play"
    """A bot's turn in a game against a person; from slots of its own."""
    REMOTE = "remote"
    """Challenges with a remote bot; from slots of their own."""


PASSED_OVER = 3
"""Number of times in a row after which a tournament's game is no longer passed over.

With a single slot, a tournament still gets a quarter of all turns.  The same number applies to challenges
that wait behind practice.
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
        """Number of slots that all kinds share, but those in ``own``."""
        self.own = {Kind.PLAY: total, Kind.REMOTE: total}
        """Kinds with slots of their own, and the numbers of these."""
        self._taken = dict.fromkeys(Kind, 0)
        self._waiting: dict[Kind, deque[trio.Event]] = {kind: deque() for kind in Kind}
        self._limits: dict[Kind, int] = {}
        self._passed_over = 0
        self._casual_passed_over = 0

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
        for kind, number in self.own.items():
            while self._waiting[kind] and self._taken[kind] < number:
                self._give(kind)
        while sum(taken for kind, taken in self._taken.items() if kind not in self.own) < self.total:
            following = self._next()
            if following is None:
                return
            self._give(following)

    def _give(self, kind: Kind) -> None:
        self._taken[kind] += 1
        self._waiting[kind].popleft().set()

    def _next(self) -> Kind | None:
        """Return the kind that gets the next slot; None if no waiting kind may have one."""
        able = [
            kind
            for kind in Kind
            if kind not in self.own
            and self._waiting[kind]
            and self._taken[kind] < self._limits.get(kind, self.total)
        ]
        if able[:1] == [Kind.PRACTICE] and Kind.CASUAL in able:
            self._casual_passed_over = (self._casual_passed_over + 1) % (PASSED_OVER + 1)
            return Kind.CASUAL if self._casual_passed_over == 0 else Kind.PRACTICE
        if Kind.TOURNAMENT not in able:
            return able[0] if able else None
        if able[0] is not Kind.TOURNAMENT and self._passed_over < PASSED_OVER:
            self._passed_over += 1
            return able[0]
        self._passed_over = 0
        return Kind.TOURNAMENT
