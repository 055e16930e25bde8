"""Accounting of a turn's time from readings of the system's counters (pure: readings in, times out).

The fair clock charges the time in which a bot ran or could not have run.  It does not charge the time in
which the bot had something to run and the host ran none of it, called stalled time here.

In a control group the kernel counts stalled time itself (the line ``full`` of ``cpu.pressure``).  Elsewhere
it counts, for each thread, the CPU time and the wait for a CPU.  A turn is divided into short intervals by
readings, and the waits of all threads are taken for stalled time, but

- at most as far as the intervals in which a thread waited are unexplained: nothing of the bot ran, and
- in a whole turn, at most the time in which the bot was awake.

The first bound is for threads that queue behind each other.  The second one is for a bot that sleeps for a
moment after each such queue, and for threads that wait at the same time: their waits are added up.  A bot is
asleep at a reading if none of its threads is ready to run; the share of such readings estimates the share of
time (``Sleep``).

A wait is counted by the kernel when it is over.  It may have begun in an earlier interval if the thread was
ready to run at the readings between.

The last wait of a thread that ends between two readings is lost with it.  It is estimated from the CPU time
of ended threads, which is known, and from the stalled time of the bot's other threads for each millisecond
that they ran.  A thread that ended without CPU time is credited nothing.

A bot cannot lower its charge below its CPU time, which counts for all threads and processes together.  CPU
time of processes that end uncounted (their parent ignores SIGCHLD) shows as ``Reading.hides_cpu``; nothing
is then taken for stalled.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple

TICK_NS = 10_000_000
"""A running thread's counter may be behind by a tick of the scheduler: 1 to 10 ms (Linux, CONFIG_HZ)."""
MUCH_CPU_NS = 1_000_000
"""A thread that ran for less was hardly given more than one time slice."""
MUCH_WAIT_NS = 500_000
"""Waits of some microseconds come with every wake-up; a wait for another program's time slice is longer."""
DEVIATIONS = 2.0
"""Standard errors by which the share of time asleep may be smaller than the share of readings, in the bot's
favour: it is, in 97 of 100 turns."""
INTERVALS_KEPT = 512
"""A wait that began more intervals ago is not looked for: at 10 ms each that is a wait of five seconds."""


class ThreadTimes(NamedTuple):
    """The scheduler's counters of one thread (Linux, Documentation/scheduler/sched-stats.rst)."""

    cpu_ns: int
    """CPU time; of a running thread up to a tick old."""
    wait_ns: int
    """Time that the thread was ready to run and had no CPU.  A wait under way is not included."""
    runs: int
    """Number of times that the thread was given a CPU."""
    ready: bool = False
    """True if the thread ran or was ready to run when the counters were read."""


NEW_THREAD = ThreadTimes(0, 0, 0)


class Reading(NamedTuple):
    """A moment's counters of a bot's processes."""

    cpu_ns: int
    """CPU time of all threads and processes so far, ended ones included, in ns.  That of ended processes is
    known in steps of 10 ms (clock ticks)."""
    threads: dict[int, ThreadTimes]
    """Counters by thread number; empty where ``stalled_ns`` is known."""
    at_ns: int = 0
    """Time of the reading, in ns of the monotonic clock."""
    stalled_ns: int | None = None
    """Stalled time so far as the kernel counts it for a control group, in ns; None where there is none."""
    hides_cpu: bool = False
    """True if processes were seen to end whose CPU time no parent counted."""

    @property
    def is_asleep(self) -> bool:
        """True if no thread ran or was ready to run."""
        return not any(thread.ready for thread in self.threads.values())


class Spent(NamedTuple):
    """Time spent between two readings, in microseconds."""

    cpu_us: int
    """CPU time of all threads together."""
    wait_us: int
    """Stalled time: something of the bot was ready to run and the host ran none of it."""


def between(before: Reading, after: Reading) -> Spent:
    """Return the time spent between two readings, taken as one interval."""
    account = TurnAccount(before, before.at_ns)
    account.add(after)
    return account.spent


@dataclass(slots=True)
class _Interval:
    began_ns: int
    ended_ns: int
    unexplained_ns: int
    """Time that is neither CPU time nor stalled time, as far as is known by now, in ns."""


class Contention:
    """Ratio of a bot's stalled time to its CPU time, over several turns.

    Recent times weigh more: the sums are halved whenever they pass ``MEMORY_NS`` of CPU time.
    """

    MEMORY_NS = 2_000_000_000

    def __init__(self) -> None:
        self._cpu_ns = self._wait_ns = self._squares = 0.0

    def add(self, cpu_ns: int, waits_ns: Iterable[tuple[int, int]], stalled_ns: int) -> None:
        """Add the times of living threads.

        Args:
            cpu_ns: Their CPU time.
            waits_ns: The length of each thread's wait and the number of waits in it.
            stalled_ns: How much of all these waits was stalled time.
        """
        self._cpu_ns += cpu_ns
        waits = list(waits_ns)
        all_ns = sum(wait_ns for wait_ns, _ in waits)
        share = min(1.0, stalled_ns / all_ns) if all_ns else 0.0
        for wait_ns, count in waits:
            self._wait_ns += share * wait_ns
            self._squares += share * wait_ns * wait_ns / max(1, count)
        if self._cpu_ns > self.MEMORY_NS:
            self._cpu_ns /= 2
            self._wait_ns /= 2
            self._squares /= 2

    @property
    def one_wait_ns(self) -> int:
        """Length of the wait to which a moment of stalled time belongs, on average.

        Waits of some microseconds, of which there are many, hardly count in it.
        """
        return int(self._squares / self._wait_ns) if self._wait_ns else 0

    def expected_wait_ns(self, cpu_ns: int, threads: int) -> int:
        """Return how long ``threads`` threads that ran for ``cpu_ns`` altogether will have waited."""
        if not self._cpu_ns:
            return 0
        by_cpu = cpu_ns * self._wait_ns / self._cpu_ns
        return int(by_cpu) + min(threads, cpu_ns // MUCH_CPU_NS) * self.one_wait_ns


class Sleep:
    """Share of time in which a bot was asleep, by its state at readings."""

    def __init__(self) -> None:
        self._all_ns = self._asleep_ns = self._squares = 0

    def add(self, length_ns: int, *, is_asleep: bool) -> None:
        """Add a reading, and the time since the reading before."""
        self._all_ns += length_ns
        self._asleep_ns += length_ns if is_asleep else 0
        self._squares += length_ns * length_ns

    @property
    def least_share(self) -> float:
        """Lower end of an interval for the share, 0 to 1.  A reading stands for the time before it."""
        if not self._squares:
            return 0.0
        share = self._asleep_ns / self._all_ns
        readings = self._all_ns**2 / self._squares  # of equal intervals that would give as much information
        error = sqrt(share * (1 - share) / readings) + 1 / readings  # all alike is no proof that all are
        return max(0.0, share - DEVIATIONS * error)


class TurnAccount:
    """The times of one turn, from a reading at its beginning and any number of later ones.

    ``began_ns`` is when the turn began.  The first reading may be older, if the bot did little since then: at
    most ``earlier_ns`` of CPU time.
    """

    def __init__(
        self,
        first: Reading,
        began_ns: int,
        earlier_ns: int = 0,
        *,
        contention: Contention | None = None,
        cores: int = 1,
    ) -> None:
        # CPU time that was used before the turn is not the turn's.
        self._first = self._last = first._replace(cpu_ns=first.cpu_ns + earlier_ns)
        self._began_ns = self._until_ns = began_ns
        self._contention = Contention() if contention is None else contention
        self._cores = cores
        self._intervals: list[_Interval] = []
        self._waiting: dict[int, int] = {}
        """Number of a thread that was ready to run at the last reading -> earliest moment at which its
        wait can have begun, in ns."""
        self._stalled_ns = 0
        self._sleep = Sleep()
        self._newest: tuple[int, bool] | None = None
        """Time before the last reading, in ns, and whether the bot was asleep then.  The reading counts when
        another one follows: at the last one of a turn, every bot has replied and is asleep."""
        self.hides_cpu = False
        """True if processes were seen to end in this turn whose CPU time no parent counted."""
        self.is_contended = False
        """True if the bot waited long for a CPU, or a thread ended, between the last two readings."""

    @property
    def spent(self) -> Spent:
        """Time spent in the turn until the last reading."""
        first, last = self._first, self._last
        cpu_ns = max(0, last.cpu_ns - first.cpu_ns)
        stalled_ns = self._stalled_ns
        if first.stalled_ns is not None and last.stalled_ns is not None:
            # Stalled time before the turn, counted if the first reading is older, does not fit into it.
            most_ns = max(0, self._until_ns - self._began_ns - cpu_ns)
            stalled_ns = min(max(0, last.stalled_ns - first.stalled_ns), most_ns)
        elif self.hides_cpu:
            stalled_ns = 0
        else:
            length_ns = self._until_ns - self._began_ns
            awake_ns = int(length_ns * (1 - self._sleep.least_share))
            stalled_ns = min(stalled_ns, max(0, awake_ns - cpu_ns // self._cores))
        return Spent(cpu_ns // 1000, stalled_ns // 1000)

    def add(self, reading: Reading) -> None:
        """Add a later reading."""
        length_ns = max(0, reading.at_ns - self._until_ns)
        cpu_ns = max(0, reading.cpu_ns - self._last.cpu_ns)
        began_ns, before_ns = self._until_ns, self._stalled_ns
        self._intervals.append(_Interval(began_ns, reading.at_ns, max(0, length_ns - cpu_ns)))
        del self._intervals[:-INTERVALS_KEPT]
        if self._newest is not None:
            length, was_asleep = self._newest
            self._sleep.add(length, is_asleep=was_asleep)
        self._newest = (length_ns, reading.is_asleep)
        moves = self._moves(reading)
        lived_ns = sum(now.cpu_ns - was.cpu_ns for _, was, now in moves)
        ended = len(self._last.threads) - sum(was is not NEW_THREAD for _, was, _ in moves)
        ended_cpu_ns = max(0, cpu_ns - lived_ns)
        if not ended:  # then more CPU time than that of the living may only be ahead of their counters
            ended_cpu_ns = max(0, ended_cpu_ns - TICK_NS * min(self._cores, len(moves)))
        waiting: dict[int, int] = {}
        for number, was, now in moves:
            since_ns = self._waiting.get(number, began_ns)
            self._credit(since_ns, now.wait_ns - was.wait_ns)
            if now.ready:
                has_run = now.runs != was.runs or now.cpu_ns != was.cpu_ns
                waiting[number] = began_ns if has_run else since_ns
        waits_ns = [(now.wait_ns - was.wait_ns, now.runs - was.runs) for _, was, now in moves]
        self._contention.add(lived_ns, waits_ns, self._stalled_ns - before_ns)
        if ended or ended_cpu_ns:
            expected_ns = self._contention.expected_wait_ns(ended_cpu_ns, max(1, ended))
            self._credit(began_ns - self._contention.one_wait_ns, expected_ns)
        waited_ns = sum(wait_ns for wait_ns, _ in waits_ns)
        self.is_contended = waited_ns > MUCH_WAIT_NS or ended > 0 or ended_cpu_ns > 0
        self._waiting = waiting
        self._until_ns = reading.at_ns
        self.hides_cpu = self.hides_cpu or reading.hides_cpu
        self._last = reading

    def _moves(self, reading: Reading) -> list[tuple[int, ThreadTimes, ThreadTimes]]:
        """Return the number of each living thread, its counters at the last reading and now."""
        before = self._last.threads
        moves = []
        for number, now in reading.threads.items():
            was = before.get(number, NEW_THREAD)
            # Counters only grow: smaller ones are of a new thread that got an old one's number.
            if now.cpu_ns < was.cpu_ns or now.wait_ns < was.wait_ns:
                was = NEW_THREAD
                self._waiting.pop(number, None)
            moves.append((number, was, now))
        return moves

    def _credit(self, since_ns: int, wait_ns: int) -> None:
        """Count a wait that began at ``since_ns`` or later as stalled, as far as that time is unexplained.

        The earliest time is taken first: what came last may belong to a wait that is not counted yet.
        """
        if not wait_ns:
            return
        first = len(self._intervals) - 1
        while first > 0 and self._intervals[first - 1].ended_ns > since_ns:
            first -= 1
        for interval in self._intervals[first:]:
            lasted_ns = interval.ended_ns - max(interval.began_ns, since_ns)
            credited_ns = min(wait_ns, lasted_ns, interval.unexplained_ns)
            interval.unexplained_ns -= credited_ns
            self._stalled_ns += credited_ns
            wait_ns -= credited_ns
