"""Measurement of turns with the system's counters, and suspension of the bot that is not on turn.

A reading costs more than a whole move of a bot that answers at once, and no more than the wall time of a turn
is charged anyway.  The counters are therefore not read for a bot whose last turn took under a millisecond.
If its next turn takes longer, the counters are read when that is noticed, and compared with the last reading,
however old.

In a longer turn the counters are read repeatedly, since a thread's counted wait is lost when the thread ends
(referee/process/cpu_accounting.py).
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Protocol

from referee.judge.clock import (
    FAIR,
    QUEUED_EXTENSION_US,
    SUSPEND,
    WALL,
    TimeControl,
    charged_us,
    extension_us,
    host_fault_us,
)
from referee.judge.events import OffTurnUsage, Usage
from referee.process.cpu_accounting import Contention, Reading, TurnAccount, between
from referee.process.process_tree import OwnWait, ProcessTree, has_counters
from referee.sandbox.host_resources import core_count, usable_cores

QUICK_S = 0.001
"""Turns shorter than this are not measured; also the time after which the measurement of others begins: one
poll (BRIEF_WAIT_S of poller.py)."""
NOTICED_S = 0.002
"""If a reply comes later than this in a turn that was not measured, the referee itself had to wait: otherwise
the measurement would have begun after one poll (1 ms)."""
START_S = 0.005
"""Seconds in which every compiled bot starts, unless it has to wait for a CPU, and no interpreter does."""
SAMPLE_S = 0.01
"""Seconds between two readings of a turn in which the bot waits for a CPU, or in which threads end: several
of the kernel's time slices (3 ms).  A reading of a Java machine's 30 threads takes 0.2 ms."""
CALM_SAMPLE_S = 0.05
"""Seconds between two readings of any other turn."""
CALM_AFTER_S = 0.1
"""Seconds after such a wait in which SAMPLE_S applies.  A wait under way is not counted yet, and lasts 20 ms
with five processes for each core."""
LONG_TURN_S = 0.5
"""Seconds of a turn after which the other bot is read at each sample, too, if the bot on turn waits for a
CPU: processes that start and end between two readings are counted only if their parent waits for them."""
STOP_LIMIT_S = 0.25
"""Most seconds for stopping a bot's processes, which takes 0.1 ms for simple ones."""
STOP_CHECK_S = 0.001
"""Seconds between two calls of ``check_stop``, for a suspension that does not block."""
NEVER = float("inf")


_has_counters = lru_cache(maxsize=1)(has_counters)
"""Cached, since it does not change on a system."""


def _cores() -> int:
    """Return the number of cores that the bots can run on: as many as the referee."""
    return len(usable_cores())


class HasTree(Protocol):
    """The part of a bot that is needed here."""

    @property
    def tree(self) -> ProcessTree | None:
        """The bot's processes; None before there are any."""


class TurnTimer:
    """Measures the turns of one game.

    ``poll`` must be called when it is due.  With ``owns_loop``, a suspension blocks until the bot is stopped.
    Otherwise ``poll`` completes it.
    """

    def __init__(self, bots: Sequence[HasTree], control: TimeControl, *, owns_loop: bool = True) -> None:
        self._bots = bots
        self._stop_wait_s = STOP_LIMIT_S if owns_loop else 0.0
        self._counts = _has_counters()
        self.clock = FAIR if control.clock == FAIR and self._counts else WALL
        """The clock in use: FAIR or WALL."""
        self._suspends = control.ponder == SUSPEND
        self._suspended = [False, False]
        self._stopping = 0
        """The player whose suspension is not complete, if ``stop_due`` is finite."""
        self._stop_limit = 0.0
        """Time at which the suspension is given up, in the clock of the stamps."""
        self.stop_due = NEVER
        """Time of the next call of ``check_stop``, in the clock of the stamps; infinite if none is due."""
        self._began = time.monotonic()
        self._starts: list[TurnAccount | None] = [None, None]
        """The times of each bot from the start of its process until it takes START."""
        self._own_wait: OwnWait | None = None
        self._marked_ns = 0
        self._reading_us = 0
        """Time spent on reading the bot off turn since the last mark, in microseconds.  While no turn is
        measured, only the last reading counts."""
        self._reading_began = 0.0
        """Beginning of the last reading of the bot off turn, in the clock of the stamps."""
        self.must_prepare = [self._suspends or self._counts] * 2
        """For each player, True if ``begin_turn`` must be called: not while its turns are quick.  A call
        before ``begin_game`` means that a bot moved early: it did not wait for START, or the read of START
        was noticed late."""
        self.has_begun = self._suspends
        """True if ``begin_game`` was called, or is not needed."""
        self.is_measuring = False
        """True if the current turn is being measured."""
        self.must_follow = self._suspends
        """True if ``turn_begun`` must be called."""
        self._has_measured = False
        self._player = 0
        """The player whose turn is being measured."""
        self._uses_older_reading = False
        """True if the turn is measured from an older reading."""
        self._turn: TurnAccount | None = None
        """The times of the current turn, if it is being measured."""
        self._contention = (Contention(), Contention())
        self._contended_at = -CALM_AFTER_S
        """Time when a bot on turn was last seen to have waited for a CPU, in the clock of the stamps."""
        self._measured_since = 0.0
        """Beginning of the measurement of the current turn, in the clock of the stamps."""
        self.sample_due = NEVER
        """Time of the next call of ``sample``, in the clock of the stamps; infinite unless a turn is being
        measured."""
        self._begin: list[Reading | None] = [None, None]
        self._now: list[Reading | None] = [None, None]
        """The newest readings, where they are still valid for the beginning of the next turn."""
        self._last: list[Reading | None] = [None, None]
        """The last reading of each bot, however old."""
        self.off_turn_cpu_us = [0, 0]
        self.cores_after = 0
        """Number of cores that the bot may have used after its last reply, while the referee waited for a CPU
        to read the reply; 0 if it did not run, and where the counters do not begin with the turn."""

    @property
    def off_turn(self) -> tuple[int, int]:
        """CPU time of each bot while its opponent was on turn, in microseconds."""
        return (self.off_turn_cpu_us[0], self.off_turn_cpu_us[1])

    def mark(self, own_wait_ns: int | None = None) -> None:
        """Record the last moment at which the referee knew that no event had come.

        If the moment is over, ``own_wait_ns`` is the value that ``own_wait_ns()`` returned just before it.
        """
        self._marked_ns = self.own_wait_ns() if own_wait_ns is None else own_wait_ns
        self._reading_us = 0

    @contextmanager
    def reading_other_bot(self) -> Iterator[None]:
        """Count the block as a wait of the referee, which reads the bot that is not on turn.

        A reply that comes meanwhile is stamped later.  To read many processes takes 0.1 s, for which the bot
        on turn is not to blame.  Waits for a CPU are left out, since they count anyway.
        """
        self._reading_began, waited_ns = time.monotonic(), self.own_wait_ns()
        yield
        lasted_us = (time.monotonic() - self._reading_began) * 1e6 - (self.own_wait_ns() - waited_ns) / 1000
        self._reading_us = max(0, int(lasted_us)) + (self._reading_us if self.is_measuring else 0)

    def own_wait_ns(self) -> int:
        """Return how long the referee itself has waited for a CPU, in ns."""
        if self._own_wait is None:
            self._own_wait = OwnWait()
        return self._own_wait.wait_ns()

    def begin_game(self, started_s: float = START_S) -> None:
        """Take the readings with which later turns are compared.

        To be called just before the opening or the first turn.  If the bots read START in less than START_S,
        their first turns are quick, too, and no reading is taken.
        """
        if self._suspends:
            self.begin_turn(0)
        elif self._counts:
            self.has_begun = True
            self.must_prepare = [False, False]
            if started_s >= START_S:
                self._read(0)
                self._read(1)
            self.mark()

    def begin_turn(self, player: int) -> None:
        """Begin to measure a turn; to be called just before the line that gives the turn is sent."""
        if self._suspends:
            self._suspend(1 - player)
            self._resume(player)
        self._begin_measurement(player)

    def start_measuring(self, player: int) -> None:
        """Begin to measure a time that is not a turn, from a fresh reading."""
        self._now = [None, None]
        self._begin_measurement(player)

    def measure_slow_turn(self, player: int, earlier_us: int, turn_began: float) -> None:
        """Start measuring a turn that turned out to be slow.

        The counters are compared with the last reading; ``earlier_us`` is the wall time of the player's quick
        turns since then.  ``turn_began`` is in the clock of the stamps.
        """
        last, other = (self._last[index] or self._beginning() for index in (player, 1 - player))
        marked_ns = self._marked_ns
        reading_us = self._reading_us if self._reading_began >= turn_began else 0
        self._begin_measurement(player)
        self._reading_us = reading_us
        self._begin[1 - player] = _at_latest(other, self._begin[1 - player], turn_began)
        reading = self._begin[player]
        if reading is not None:
            if last.stalled_ns is None and reading.stalled_ns is not None:
                last = last._replace(stalled_ns=0)  # of a group, since its beginning
            self._uses_older_reading = True
            self._marked_ns = marked_ns  # the referee may have been late for the reply
            self._turn = self._account(player, last, turn_began, earlier_us)
            self._turn.add(reading)

    def _beginning(self) -> Reading:
        """Return the counters of a bot at the beginning of the game, just before its process started."""
        return Reading(0, {}, round(self._began * 1e9))

    def _begin_measurement(self, player: int) -> None:
        if not self._counts:
            return
        self._player = player
        if not self._suspends:
            self._give_processors(player)
        self.is_measuring = self._has_measured = True
        self._uses_older_reading = False
        self._begin = [now if now is not None else self._read(index) for index, now in enumerate(self._now)]
        self._now = [None, None]
        begin = self._begin[player]
        self._turn = None if begin is None else self._account(player, begin, begin.at_ns / 1e9)
        self._measured_since = time.monotonic()
        self.sample_due = self._measured_since + SAMPLE_S
        self.mark()

    def _give_processors(self, player: int) -> None:
        """Give the player on turn the processors before its opponent, where bots have control groups.

        Nothing is written if the player has them already, or if the turn is not measured.  Two writes in each
        turn would make the moves of bots that answer at once 29 % slower (docs/sandbox.md).
        """
        for index, bot in enumerate(self._bots):
            if bot.tree is not None:
                bot.tree.set_on_turn(on_turn=index == player)

    def _account(self, player: int, first: Reading, began: float, earlier_us: int = 0) -> TurnAccount:
        contention = self._contention[player]
        return TurnAccount(
            first, round(began * 1e9), earlier_us * 1000, contention=contention, cores=_cores()
        )

    def _end_measurement(self) -> None:
        self.is_measuring = False
        self.sample_due = NEVER

    @property
    def due(self) -> float:
        """Time of the next call of ``poll``, in the clock of the stamps; infinite if none is due."""
        return min(self.sample_due, self.stop_due)

    def poll(self) -> None:
        """Read the counters of a turn that is being measured, and complete a suspension, if that is due."""
        now = time.monotonic()
        if now >= self.sample_due:
            self.sample()
        if now >= self.stop_due:
            self.check_stop()

    def sample(self) -> None:
        """Read the counters during a turn that is being measured."""
        self._add_reading()
        now = time.monotonic()
        if self._turn is not None and self._turn.is_contended:
            self._contended_at = now
            if now > self._measured_since + LONG_TURN_S:
                with self.reading_other_bot():
                    self._read(1 - self._player)
        self.sample_due = now + (SAMPLE_S if now < self._contended_at + CALM_AFTER_S else CALM_SAMPLE_S)

    def _add_reading(self) -> Reading | None:
        reading = self._read(self._player)
        if reading is not None and self._turn is not None:
            self._turn.add(reading)
        return reading

    def _read(self, player: int) -> Reading | None:
        tree = self._bots[player].tree
        reading = self._last[player] = None if tree is None else tree.read()
        return reading

    def usage(self) -> Usage | None:
        """Return the counters of the current turn until now; None if it is not being measured."""
        if not self.is_measuring:
            return None
        # Read first, since the next steps delay no stamp.  All of the referee's last wait counts, in the
        # bot's favour: if a timer had woken the referee, the reply may have come during that wait.
        own_us = (self.own_wait_ns() - self._marked_ns) // 1000 + self._reading_us
        reading = self._add_reading()
        if self._turn is None or reading is None:
            return None
        self._now[self._player] = reading
        return Usage(*self._turn.spent, own_us)

    def off_turn_usage(self) -> OffTurnUsage | None:
        """Return the counters of the other bot for the current turn, or for the one that just ended.

        None if the turn was not measured.
        """
        player = 1 - self._player
        begin, now = self._begin[player], self._now[player]
        if self.is_measuring:
            now = self._read(player)
        return None if begin is None else _off_turn(begin, now)

    def off_turn_usage_in_start(self, awaited: int) -> OffTurnUsage | None:
        """Return the counters of the other bot from the start of its process until now."""
        if not self._counts:
            return None
        return _off_turn(self._beginning(), self._read(1 - awaited))

    def start_usage(self, player: int) -> Usage | None:
        """Return the counters of a bot since its process was started; None if they cannot be read."""
        self.sample_start(player)
        start = self._starts[player]
        return None if start is None else Usage(*start.spent, 0)

    def sample_start(self, player: int) -> None:
        """Read the counters of a bot that is starting; to be called every few hundredths of a second."""
        reading = self._read(player) if self._counts and self.clock == FAIR else None
        if reading is None:
            return
        start = self._starts[player]
        if start is None:
            nothing = Reading(0, {}, stalled_ns=None if reading.stalled_ns is None else 0)
            start = self._starts[player] = TurnAccount(nothing, round(self._began * 1e9), cores=_cores())
        start.add(reading)

    def end_turn(self, player: int, wall_s: float) -> Usage | None:
        """End a measured turn after the player's reply, and return the counters of the turn."""
        # All of a quick turn is charged, so that the counters would change nothing.
        usage = self.usage() if wall_s >= QUICK_S else None
        is_exact = usage is None or self._uses_older_reading or not self._is_running(player)
        self.cores_after = 0 if is_exact else _cores()
        self.must_prepare[player] = self._suspends or wall_s >= QUICK_S
        if usage is not None:
            self._count_off_turn(1 - player)
        self._end_measurement()
        self.must_follow = True
        return usage

    def _is_running(self, player: int) -> bool:
        tree = self._bots[player].tree
        return tree is not None and tree.has_running_thread()

    def _count_off_turn(self, player: int) -> None:
        begin, now = self._begin[player], self._read(player)
        self._now[player] = now
        if begin is not None and now is not None:
            self.off_turn_cpu_us[player] += between(begin, now).cpu_us

    def turn_begun(self, player: int) -> None:
        """Discard readings that may be old by the next turn, and suspend the opponent.

        To be called just after the line that gives this player its turn was sent.
        """
        self._now = [None, None]
        self.must_follow = self._suspends
        if self._suspends:
            self._suspend(1 - player)

    def _suspend(self, player: int) -> None:
        tree = self._bots[player].tree
        if not self._suspended[player] and tree is not None:
            self._suspended[player] = True
            # A process that was not stopped, or continued itself, shows in the CPU time off its turn.
            if not tree.stop(self._stop_wait_s) and not self._stop_wait_s:
                self._stopping = player
                self._stop_limit = time.monotonic() + STOP_LIMIT_S
                self.stop_due = time.monotonic() + STOP_CHECK_S

    def check_stop(self) -> None:
        """Stop the processes that the suspended bot has started since the last check."""
        at, tree = time.monotonic(), self._bots[self._stopping].tree
        is_over = at >= self._stop_limit or tree is None or tree.stop(0.0)
        self.stop_due = NEVER if is_over else at + STOP_CHECK_S

    def is_queued(self, player: int) -> bool:
        """Return True if a thread of this player's bot is ready to run and has no CPU at this moment.

        The system counts a wait for a CPU only when the wait is over.  False for a bot that has hidden
        CPU time in its turn or start: no wait of it counts.
        """
        is_turn = self.is_measuring and self._player == player
        account = self._turn if is_turn else self._starts[player]
        if account is not None and account.hides_cpu:
            return False
        tree = self._bots[player].tree
        return tree is not None and tree.is_queued()

    def is_exiting(self, player: int) -> bool:
        """Return True if this player's bot has exited, and the kernel is about to end its processes."""
        tree = self._bots[player].tree
        return tree is not None and tree.is_exiting()

    def _resume(self, player: int) -> None:
        if not self._suspended[player]:
            return
        tree = self._bots[player].tree
        if tree is not None:
            self._suspended[player] = False
            if self._stopping == player:
                self.stop_due = NEVER
            tree.resume()

    def cpu_us(self) -> tuple[int | None, int | None]:
        """Return the CPU time of each bot so far, in microseconds.

        None where it is not counted, or where no turn was long enough to be measured.
        """
        if not self._counts or not self._has_measured:
            return (None, None)
        if self.is_measuring:  # the game ended without a reply
            self._count_off_turn(1 - self._player)
            self._end_measurement()
        first, second = (self._read(player) for player in (0, 1))
        return (first and first.cpu_ns // 1000, second and second.cpu_ns // 1000)

    def end_game(self) -> None:
        """Continue suspended bots, and give both their shares of the processors, so that they can end."""
        for player in (0, 1):
            self._resume(player)
        if self._has_measured:  # else no shares were changed; to find the processes would take 0.1 ms
            for bot in self._bots:
                if bot.tree is not None:
                    bot.tree.set_on_turn(on_turn=True)

    def close(self) -> None:
        """Close the descriptors."""
        if self._own_wait is not None:
            self._own_wait.close()


def _at_latest(older: Reading, newer: Reading | None, turn_began: float) -> Reading | None:
    """Return the counters at the beginning of a turn that was noticed late, of the bot that is not on turn.

    On a busy host, seconds may pass until then.  Between an older reading and the turn, the bot used at most
    all cores: all further CPU time was used in the turn.
    """
    if newer is None:
        return None
    began_ns = max(older.at_ns, round(turn_began * 1e9))
    most_ns = older.cpu_ns + _cores() * (began_ns - older.at_ns)
    return newer if most_ns >= newer.cpu_ns else older._replace(cpu_ns=most_ns, at_ns=began_ns)


def _off_turn(begin: Reading, now: Reading | None) -> OffTurnUsage | None:
    if now is None:
        return None
    span_us = max(0, now.at_ns - begin.at_ns) // 1000
    return OffTurnUsage(between(begin, now).cpu_us, span_us, core_count())


class Grace:
    """A limit of charged time for a bot that is not on turn, such as the time to end after END.

    The limit begins when the object is created, and is measured like a turn.  Without counters, and with the
    wall clock, all time that passes is charged until the bot has exited.
    """

    def __init__(self, timer: TurnTimer, player: int, limit_s: float, *, covers_exit: bool = True) -> None:
        """Begin the limit.  ``covers_exit`` is False for a limit that begins after the bot's exit."""
        self._timer, self._player = timer, player
        self._limit_us = self._due_us = round(limit_s * 1e6)
        self._is_fair = timer.clock == FAIR
        self._covers_exit = covers_exit
        self.is_hosts_fault = False
        """True if the grace ended because the host kept the bot waiting for too long."""
        self._looked_us = 0
        """Wall time of the last call of ``is_over`` that read the counters."""
        self._has_exited = self._has_exited_in_time = False
        timer.start_measuring(player)
        self._began = time.monotonic()

    def again(self, limit_s: float) -> "Grace":
        """Return another limit for the same bot, which has exited.  The limit begins now."""
        return Grace(self._timer, self._player, limit_s, covers_exit=False)

    def wait_s(self) -> float:
        """Return the seconds until ``is_over`` is to be called again; to be called just before that wait."""
        self._timer.mark()
        return max(0.0, min(self._began + self._due_us / 1e6, self._timer.due) - time.monotonic())

    def is_over(self) -> bool:
        """Read the counters if that is due; return True if more time is charged than the limit.

        Once the bot has exited in time, the time in which the kernel removes its processes is not charged.
        """
        self._timer.poll()
        wall_us = self._wall_us()
        if wall_us <= self._due_us:
            return False
        usage = self._usage()
        is_queued = usage is not None and self._timer.is_queued(self._player)
        spent_us = charged_us(wall_us, usage)
        more_us = extension_us(self._limit_us, spent_us, usage, is_queued=is_queued)
        if self._covers_exit and not self._has_exited and self._timer.is_exiting(self._player):
            self._has_exited = True
            # The bot exited after the last call: no more than the time since then is the kernel's.
            self._has_exited_in_time = spent_us - (wall_us - self._looked_us) <= self._limit_us
        self._looked_us = wall_us
        if more_us is None and self._has_exited_in_time:
            more_us = QUEUED_EXTENSION_US
        if more_us is None:
            return True
        if wall_us > host_fault_us(self._limit_us):
            self.is_hosts_fault = True
            return True
        self._due_us = wall_us + more_us
        return False

    def spent_us(self) -> int:
        """Return the time that is charged so far, in microseconds."""
        spent_us = charged_us(self._wall_us(), self._usage())
        return min(spent_us, self._limit_us) if self._has_exited_in_time else spent_us

    def _wall_us(self) -> int:
        return round((time.monotonic() - self._began) * 1e6)

    def _usage(self) -> Usage | None:
        return self._timer.usage() if self._is_fair else None
