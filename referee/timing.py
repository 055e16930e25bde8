"""Reading the system's counters at the beginning and end of turns, and stopping the bot that is not on turn.

Reading costs more than a whole move of a bot that answers at once, and no more than the wall time of a turn
can be charged anyway.  So the counters are left alone for a bot whose last turn took under a millisecond; if
it then takes longer, they are read when that is noticed, and compared with those of the last reading,
whenever that was.
"""

import os
from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol

from referee.clock import FAIR, SUSPEND, WALL, TimeControl
from referee.events import Usage
from referee.processes import OwnWait, ProcessTree, Reading, between, has_counters

QUICK_S = 0.001
"""Turns shorter than this are not looked at; also the time after which others are: a glance of watch.py."""
NOTICED_S = 0.002
"""If a reply comes later than this in a turn that was not looked at, the referee itself had to wait: it would
have looked after a glance (1 ms)."""
START_S = 0.005
"""No interpreter starts so soon, and no compiled bot takes longer, unless it has to wait for a CPU."""
STOP_LIMIT_S = 0.25
"""Stopping a bot's processes takes 0.1 ms for simple ones."""


_has_counters = lru_cache(maxsize=1)(has_counters)
"""A system has them or not."""


def _cores() -> int:
    """How many cores the bots can run on: as many as we."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class HasTree(Protocol):
    """What of a bot is needed here."""

    @property
    def tree(self) -> ProcessTree | None:
        """Its processes; None before there are any."""


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
        self.must_prepare = [self._suspends or self._counts] * 2
        """Whether ``turn_begins`` must be called for a player: not while its turns are quick.  At first
        only if a bot moved before ``game_begins``: it did not wait for START, or we saw it taken too late."""
        self.has_begun = self._suspends
        """Whether ``game_begins`` was called, or need not be."""
        self.is_looking = False
        """Whether the present turn is being looked at."""
        self.must_follow = self._suspends
        """Whether ``turn_has_begun`` must be called."""
        self._has_looked = False
        self._player = 0
        """The player whose turn is being looked at."""
        self._has_looked_back = False
        """Whether the beginning of the present turn is an older reading."""
        self.came_and_went = False
        """Whether the bot had other processes in this turn than at its beginning."""
        self._earlier_us = 0
        """Wall time of its turns since that reading that are over: so much is no CPU time of this turn."""
        self._begin: list[Reading | None] = [None, None]
        self._now: list[Reading | None] = [None, None]
        """Readings of just now, which are still good for the beginning of the next turn."""
        self._last: list[Reading | None] = [None, None]
        """The last readings of all, however old."""
        self.off_turn_cpu_us = [0, 0]

    @property
    def off_turn(self) -> tuple[int, int]:
        """CPU time of each bot while its opponent was on turn, in microseconds."""
        return (self.off_turn_cpu_us[0], self.off_turn_cpu_us[1])

    def mark(self) -> None:
        """The referee is about to wait for something to happen."""
        self._marked_ns = self._waited_ns()

    def _waited_ns(self) -> int:
        """How long the referee itself has waited for a CPU."""
        if self._own_wait is None:
            self._own_wait = OwnWait()
        return self._own_wait.wait_ns()

    def game_begins(self, started_s: float = START_S) -> None:
        """Just before the first turn, or the opening: what later turns can be compared with.

        If the bots took START in less than START_S, their first turns are as quick, and nothing is read.
        """
        if self._suspends:
            self.turn_begins(0)
        elif self._counts:
            self.has_begun = True
            self.must_prepare = [False, False]
            if started_s >= START_S:
                self._read(0)
                self._read(1)
                self.mark()

    def turn_begins(self, player: int) -> None:
        """Just before this player is given its turn."""
        if self._suspends:
            self._suspend(1 - player)
            self._wake(player)
        self._look(player)

    def look_closer(self, player: int, earlier_us: int) -> None:
        """This player's turn, which was not looked at, has taken long already.

        It is compared with the last reading, since which its other turns took so long together.  All were
        quick, so that there is little in the counters that is not of this turn.
        """
        last, marked_ns = self._last[player], self._marked_ns
        self._look(player)
        if last is not None and self._begin[player] is not None:
            self._begin[player] = last
            self._has_looked_back = True
            self._earlier_us = earlier_us
            self._marked_ns = marked_ns  # the reply may be what we were late for

    def _look(self, player: int) -> None:
        if not self._counts:
            return
        self._player = player
        self.is_looking = self._has_looked = True
        self._has_looked_back = self.came_and_went = False
        self._earlier_us = 0
        self._begin = [now if now is not None else self._read(index) for index, now in enumerate(self._now)]
        self._now = [None, None]
        self.mark()

    def _read(self, player: int) -> Reading | None:
        tree = self._bots[player].tree
        reading = self._last[player] = None if tree is None else tree.read()
        return reading

    def usage(self) -> Usage | None:
        """What the present turn has used until now; None if it is not being looked at."""
        if not self.is_looking:
            return None
        player = self._player
        own_us = (self._waited_ns() - self._marked_ns) // 1000  # first: what comes now delays no stamp
        begin, now = self._begin[player], self._read(player)
        if begin is None or now is None:
            return None
        self._now[player] = now
        spent = between(begin, now)
        if begin.processes != now.processes:
            self.came_and_went = True
        # A bot could burn its time in processes that end uncounted, and queue behind them: then no wait is
        # taken to be the host's.
        wait_us = 0 if self.came_and_went else spent.wait_us
        return Usage(max(0, spent.cpu_us - self._earlier_us), wait_us, own_us)

    def look_at_processes(self) -> None:
        """See, from time to time in a turn, whether the bot's processes are the same as at its beginning."""
        begin, tree = self._begin[self._player], self._bots[self._player].tree
        if self.is_looking and begin is not None and tree is not None:
            self.came_and_went = self.came_and_went or tree.numbers() != begin.processes

    def turn_ends(self, player: int, wall_s: float) -> Usage | None:
        """This player's reply, in a turn that is looked at, has come after so long; what the turn used."""
        # Of a quick turn all is charged, so that the counters would change nothing.
        usage = self.usage() if wall_s >= QUICK_S else None
        if usage is not None and not self._has_looked_back and 0 < usage.referee_wait_us < wall_s * 1e6:
            # A bot that ponders used CPU time after its reply, too, while we waited for a CPU to read it.
            # Nobody counts how much: at most all cores', and as a rule no more than before.
            after_us = usage.referee_wait_us * min(_cores(), usage.cpu_us / (wall_s * 1e6))
            usage = usage._replace(cpu_us=usage.cpu_us - int(after_us))
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
        if not self._suspended[player]:
            return
        tree = self._bots[player].tree
        if tree is not None:
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
