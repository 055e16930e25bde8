"""Reading the system's counters at the beginning and end of turns, and stopping the bot that is not on turn.

Reading costs more than a whole move of a bot that answers at once, and no more than the wall time of a turn can
be charged anyway.  So the counters are left alone for a bot whose last turn took under a millisecond; if it then
takes longer, they are read when that is noticed, and what the referee was late to notice it is not charged.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol

from referee.clock import FAIR, SUSPEND, WALL, TimeControl
from referee.events import Usage
from referee.processes import OwnWait, ProcessTree, Reading, between, has_counters

QUICK_S = 0.001
"""Turns shorter than this are not looked at; also the time after which the others are: a glance of watch.py."""
NOTICED_S = 0.002
"""Noticing that a turn takes longer takes a glance (1 ms) and some waking up.  What it takes beyond this is our host's."""
STOP_LIMIT_S = 0.25
"""Stopping a bot's processes takes 0.1 ms for simple ones."""


_has_counters = lru_cache(maxsize=1)(has_counters)
"""A system has them or not."""


class HasTree(Protocol):
    """What of a bot is needed here."""

    @property
    def tree(self) -> ProcessTree | None: ...


class Timekeeper:
    """Knows what each turn used, for one game."""

    def __init__(self, bots: Sequence[HasTree], control: TimeControl) -> None:
        self._bots = bots
        self._counts = _has_counters()
        self.clock = FAIR if control.clock == FAIR and self._counts else WALL
        """The clock that runs."""
        self._suspends = control.ponder == SUSPEND
        self._suspended = [False, False]
        self._own_wait: OwnWait | None = None
        self._marked_ns = 0
        self.must_prepare = [self._suspends, self._suspends]
        """Whether ``turn_begins`` must be called for a player: not while its turns are quick."""
        self.is_looking = False
        """Whether the present turn is being looked at."""
        self.must_follow = self._suspends
        """Whether ``turn_has_begun`` must be called."""
        self._has_looked = False
        self._player = 0
        """The player whose turn is being looked at."""
        self._late_us = 0
        """How late its beginning was looked at, for which our host is to blame."""
        self._begin: list[Reading | None] = [None, None]
        self._now: list[Reading | None] = [None, None]
        """Readings of just now, which are still good for the beginning of the next turn."""
        self.off_turn_cpu_us = [0, 0]

    def mark(self) -> None:
        """The referee is about to wait for something to happen."""
        self._marked_ns = self._waited_ns()

    def _waited_ns(self) -> int:
        """How long the referee itself has waited for a CPU."""
        if self._own_wait is None:
            self._own_wait = OwnWait()
        return self._own_wait.wait_ns()

    def turn_begins(self, player: int) -> None:
        """Just before this player is given its turn."""
        if self._suspends:
            self._suspend(1 - player)
            self._wake(player)
        self._look(player)

    def look_closer(self, player: int, since_s: float) -> None:
        """This player's turn, which was not looked at, has taken so long already."""
        self._look(player)
        self._late_us = max(0, round((since_s - NOTICED_S) * 1e6))

    def _look(self, player: int) -> None:
        if not self._counts:
            return
        self._player = player
        self.is_looking = self._has_looked = True
        self._late_us = 0
        self._begin = [now if now is not None else self._read(index) for index, now in enumerate(self._now)]
        self._now = [None, None]
        self.mark()

    def _read(self, player: int) -> Reading | None:
        tree = self._bots[player].tree
        return None if tree is None else tree.read()

    def usage(self) -> Usage | None:
        """What the present turn has used until now; None if it is not being looked at."""
        if not self.is_looking:
            return None
        player = self._player
        begin, now = self._begin[player], self._read(player)
        if begin is None or now is None:
            return None
        self._now[player] = now
        own_us = (self._waited_ns() - self._marked_ns) // 1000
        spent = between(begin, now)
        return Usage(spent.cpu_us, spent.wait_us, own_us + self._late_us)

    def turn_ends(self, player: int, wall_s: float) -> Usage | None:
        """This player's reply, in a turn that is being looked at, has come after so long; what the turn used."""
        usage = self.usage()
        self.must_prepare[player] = self._suspends or wall_s >= QUICK_S
        if usage is not None:
            self._count_off_turn(1 - player)
        self.is_looking = False
        self.must_follow = True
        return usage

    def _count_off_turn(self, player: int) -> None:
        begin, now = self._begin[player], self._read(player)
        self._now[player] = now
        if begin is not None and now is not None:
            self.off_turn_cpu_us[player] += between(begin, now).cpu_us

    def turn_has_begun(self, player: int) -> None:
        """Just after this player was given its turn: what was read before may be old by the next one."""
        self._now = [None, None]
        self.must_follow = self._suspends
        if self._suspends:
            self._suspend(1 - player)

    def _suspend(self, player: int) -> None:
        tree = self._bots[player].tree
        if not self._suspended[player] and tree is not None:
            self._suspended[player] = True
            # What could not be stopped, or went on by itself, shows in the CPU time off its turn.
            tree.stop(STOP_LIMIT_S)

    def is_queued(self, player: int) -> bool:
        """Whether this player's bot, which is ready to run, has no CPU at this moment.

        The system counts a wait for a CPU only when it is over.
        """
        before = self._read(player)
        after = self._read(player)
        return before is not None and after is not None and before.cpu_ns == after.cpu_ns

    def _wake(self, player: int) -> None:
        tree = self._bots[player].tree
        if self._suspended[player] and tree is not None:
            self._suspended[player] = False
            tree.go_on()

    def cpu_us(self) -> tuple[int | None, int | None]:
        """CPU time of each bot so far; None where it is not counted, or not worth it: no turn was long."""
        if not self._counts or not self._has_looked:
            return (None, None)
        first, second = (self._read(player) for player in (0, 1))
        return (first and first.cpu_ns // 1000, second and second.cpu_ns // 1000)

    def game_over(self) -> None:
        """Let both bots go on, so that they can end."""
        for player in (0, 1):
            self._wake(player)

    def close(self) -> None:
        """Give the descriptors back."""
        if self._own_wait is not None:
            self._own_wait.close()
