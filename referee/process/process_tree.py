"""Readings of a bot's process tree from /proc: CPU time, waits for a CPU, memory, and activity.

A living tree changes while it is read:

- Processes end between two readings, and their time moves to their parent.  A walk in which a process
  vanished is not settled and is repeated, a few times.
- The children of a process that ends get another parent.  Inside a sandbox that is the sandbox's root, and
  they stay in the tree.  Elsewhere they leave it; those that were seen before are still members, since each
  is held by its own directory in /proc.
- Bots may fork while they are being stopped.  A tree counts as stopped after two walks in a row that found
  the same processes, all of them stopped.

On systems without /proc all methods return empty values.
"""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from referee.process.cpu_accounting import Reading, ThreadTimes
from referee.process.procfs import STDIN_READS, TICK_NS, FdBudget, Process, read_whole, share_memory

DESCRIPTORS_KEPT = 64
"""Descriptors kept open for one tree: a Java machine has 20 to 30 threads, with two files each.  The two bots
of a game take an eighth of the usual limit of 1,024 for a process."""
WALKS = 4
"""Maximum number of walks until one is settled; a tree in which processes keep ending is read as it is."""
FIRST_PAUSE_S = 20e-6
LAST_PAUSE_S = 1e-3
"""Shortest and longest time between two walks of ``stop()``, doubled each time: a signal takes effect within
some 10 us where the bot has a core of its own; where it shares the referee's core, the referee must sleep."""
KIB = 1024
MUCH_IN_TABLES = 16 << 20
ENOUGH_PER_TABLES = 64
"""Largest page tables, all together, of processes whose shared memory is read exactly: this size, or this
part of the memory limit.  Such tables stand for 8 GiB of mapped pages, or for 8 times the limit; reading
through them takes 5 to 10 ms if few of the pages are in use, and 0.1 s if 60 processes use 96 MB each in
pages of 4 KB.  Through 256 MiB of tables it takes 0.15 s and, while the bot fills more of them on all cores,
0.4 s."""


class _Seen(NamedTuple):
    """Counters of one process."""

    own_ns: int
    """CPU time of all its threads."""
    reaped_ns: int
    """CPU time of the children that it has waited for."""
    parent: int


class ProcessTree:
    """A process and all its descendants.

    ``skip_root`` is for a root that is the sandbox's own first process and not the bot.  The readings then
    include only the CPU time of the orphans that this process has reaped.  ``has_adapter`` is for a bot that
    an adapter of referee/adapters starts.
    """

    def __init__(
        self,
        root: int,
        *,
        skip_root: bool = False,
        has_adapter: bool = False,
    ) -> None:
        self._skip_root, self._has_adapter = skip_root, has_adapter
        self._root_number = root
        self._fd_budget = FdBudget(DESCRIPTORS_KEPT)
        self._known: dict[int, Process] = {}
        """Members seen so far, the root among them, that are held by their directory; parents first."""
        self._reaped_by_root_ns = 0
        self._seen: dict[int, _Seen] = {}
        """The last reading of each process, by process number."""
        self._owed_ns: dict[int, int] = {}
        """CPU time of ended children at their last reading that has not moved to their parent yet, by the
        parent's process number."""
        self._cpu_ns = 0
        """CPU time of all members by the last reading, in ns."""
        self._available = Path("/proc/self/task").is_dir()
        self._root: Process | None = None
        if self._available:
            try:
                self._root = self._known[root] = Process(root, self._fd_budget)
            except OSError:  # it has ended, and so has the tree
                self._root = None

    def pids(self) -> list[int]:
        """Return the process numbers of the living members, parents before their children."""
        return [member.number for member in self._living()]

    def read(self) -> Reading:
        """Return the current counters.  The root must not be reaped before: its times vanish with it."""
        at_ns = time.monotonic_ns()
        threads: dict[int, ThreadTimes] = {}
        seen: dict[int, _Seen] = {}
        for _ in range(WALKS):
            members, settled = self._walk()
            threads, seen = {}, {}
            at_ns = time.monotonic_ns()
            for member in members:
                try:
                    seen[member.number] = _Seen(member.cpu_ns(), member.reaped_ns, member.parent)
                except OSError:
                    settled = False
                    continue
                ready = {int(path.rpartition("/")[2]) for path, state in member.states() if state == "R"}
                for number, times in member.threads.items():
                    threads[number] = times._replace(ready=number in ready)
            if settled:
                break
        if self._skip_root:
            seen[self._root_number] = _Seen(0, self._reaped_by_root_ns, 0)
        hides_cpu = self._follow_ended(seen)
        cpu_ns = sum(each.own_ns + each.reaped_ns for each in seen.values()) + sum(self._owed_ns.values())
        self._cpu_ns = max(self._cpu_ns, cpu_ns)
        return Reading(self._cpu_ns, threads, at_ns, hides_cpu=hides_cpu)

    def _follow_ended(self, seen: dict[int, "_Seen"]) -> bool:
        """Follow the CPU time of ended processes; return True if some of it was counted by no other process.

        The time moves to the process that waits for them, their parent or an ancestor, in whole ticks of user
        and system time.  If the parent ignores SIGCHLD, the time is lost (POSIX, wait).  When more time moves
        than was owed, the surplus is not kept: CPU time that was counted once does not replace another
        process's.
        """
        before, self._seen = self._seen, seen
        owed_ns = {number: owed for number, owed in self._owed_ns.items() if number in seen}
        for number in before.keys() - seen.keys():
            heir = before[number].parent
            while heir not in seen and heir in before:
                heir = before[heir].parent
            if heir not in seen and self._skip_root:
                heir = self._root_number
            if heir in seen:  # else the time moves to a process that is not the bot's
                spent_ns = before[number].own_ns + before[number].reaped_ns + self._owed_ns.get(number, 0)
                owed_ns[heir] = owed_ns.get(heir, 0) + spent_ns
        for number, owed in owed_ns.items():
            reaped_before_ns = before[number].reaped_ns if number in before else 0
            owed_ns[number] = max(0, owed - (seen[number].reaped_ns - reaped_before_ns))
        self._owed_ns = {number: owed for number, owed in owed_ns.items() if owed}
        return any(owed > 2 * TICK_NS for owed in self._owed_ns.values())

    def memory_bytes(self, enough: int) -> int:
        """Return the memory of the members in bytes, with swapped memory and page tables.

        Up to ``enough`` this is a quick sum, in which a page counts once for each process that has it.  If
        that sum is higher, each page counts once.  Files count only where they are mapped and shared memory.
        """
        quick: dict[int, tuple[int, int]] = {}
        members = self._settled()
        for member in members:
            try:
                quick[member.number] = member.memory_kib()
            except OSError:
                continue
        total = sum(kib for kib, _ in quick.values())
        if total * KIB <= enough:
            return total * KIB
        # After vfork() two processes have one memory, and /proc shows all of it for both.
        alone = [
            member
            for member in members
            if member.number in quick
            and not (member.parent in quick and share_memory(member.number, member.parent))
        ]
        # Page tables are not shared, and large ones take long to read: a bot may grow in the meantime.
        total, looked_through = 0, 0
        for member in sorted(alone, key=lambda member: quick[member.number][1]):
            kib, tables = quick[member.number]
            looked_through += tables * KIB
            if looked_through <= max(MUCH_IN_TABLES, enough // ENOUGH_PER_TABLES):
                with suppress(OSError):  # not readable by this user, or just ended
                    kib = member.own_share_kib() + tables
            total += kib
        return total * KIB

    def count(self) -> int:
        """Return the number of threads of all members, which RLIMIT_NPROC limits.

        A process that is not yet reaped counts as one.
        """
        return sum(member.thread_count for member in self._settled())

    def stop(self, within_s: float) -> bool:
        """Send SIGSTOP to all members until all are stopped; return False if some are not within that time.

        The caller must then call ``resume()``, or kill them.  A stopped bot may have arranged that the kernel
        continues it (a timer with SIGCONT): a caller that relies on the stop must compare the CPU time
        afterwards.
        """
        if not self._available:
            return False
        until = time.monotonic() + within_s
        stopped: set[int] | None = None
        pause = FIRST_PAUSE_S
        while True:
            members, settled = self._walk()
            active = [member for member in members if not member.is_inactive()]
            for member in active:
                member.signal(signal.SIGSTOP)
            before, stopped = stopped, None
            if settled and not active:
                stopped = {member.number for member in members}
                if stopped == before:
                    return True
            # The first walk that finds all stopped is confirmed by a second one, even after the time limit.
            if time.monotonic() >= until and (stopped is None or before is not None):
                return False
            if stopped is None:
                time.sleep(pause)
                pause = min(2 * pause, LAST_PAUSE_S)

    def set_on_turn(self, *, on_turn: bool) -> None:
        """Change the share of the processors by the turn: only a control group has one."""

    def resume(self) -> None:
        """Send SIGCONT to all members, children before their parents.

        A system call that a stop interrupted is continued, with few exceptions (man 7 signal): epoll_wait()
        and reads with a timeout fail with EINTR.
        """
        for member in reversed(self._settled()):
            member.signal(signal.SIGCONT)

    def is_queued(self) -> bool:
        """Return True if a thread is ready to run and has no CPU at this moment.

        Then more threads are ready than the CPU time used meanwhile explains.  False if one ends meanwhile.
        """
        try:
            before_ns = {member.number: member.cpu_ns() for member in self._living()}
            began_ns, members = time.monotonic_ns(), self._living()
            ready = sum(state == "R" for member in members for _, state in member.states())
            used_ns = sum(member.cpu_ns() - before_ns.get(member.number, 0) for member in members)
            passed_ns = time.monotonic_ns() - began_ns
        except OSError:
            return False
        return ready > used_ns / max(1, passed_ns) + 0.5

    def is_exiting(self) -> bool:
        """Return True if no member runs code of its own any more: all have ended, or are about to.

        On a busy host, an exit can take long (0.8 s was seen): the kernel waits for a CPU, and for locks.
        """
        try:
            return self._available and all(member.ended or member.is_exiting() for member in self._settled())
        except (OSError, ValueError):
            return False

    def has_running_thread(self) -> bool:
        """Return True if a thread runs or could run, or if that cannot be determined."""
        try:
            members = self._living() if self._available else None
            return members is None or any(state == "R" for one in members for _, state in one.states())
        except (OSError, ValueError):
            return True

    def activity(self) -> str:
        """Return the activity of the tree at this moment.

        "reading" if a thread waits in a read of standard input, "running" if one runs or could run, "stopped"
        if all are, "ended" if no process is left, "waiting" for all else, which includes poll() and similar
        calls.  Empty if the activity cannot be determined.
        """
        try:
            return self._activity()
        except (OSError, ValueError):
            return ""

    def close(self) -> None:
        """Close all descriptors; the tree has no members afterwards."""
        for member in self._known.values():
            member.close()
        self._known.clear()
        self._root = None

    def _activity(self) -> str:
        if not self._available:
            return ""
        members = self._living()
        if not members:
            return "ended"
        seen: set[str] = set()
        hidden = not STDIN_READS
        for member in members:
            for path, state in member.states():
                seen.add(state)
                if state != "S":
                    continue
                try:
                    if member.reads_stdin(path) and self._is_stdin_of_root(member):
                        return "reading"
                except PermissionError:
                    hidden = True
                except OSError:
                    continue
        if "R" in seen:
            return "running"
        if seen - {"Z", "X", "x"} <= {"T", "t"}:
            return "stopped"
        return "" if hidden else "waiting"

    def _is_stdin_of_root(self, member: Process) -> bool:
        """Return True if a member's standard input is the bot's.

        A bot may have helpers that read input from the bot itself.
        """
        bot = self._root
        # The sandbox's own process starts the bot first, and so does an adapter.
        for _ in range(self._skip_root + self._has_adapter):
            if bot is not None:
                bot = next((each for each in self._known.values() if each.parent == bot.number), None)
        if bot is None or member is bot:
            return True
        try:
            return member.stdin_identity() == bot.stdin_identity()
        except OSError:
            return True

    def _living(self) -> list[Process]:
        """Return the members that have not ended, after a walk."""
        return [member for member in self._settled() if not member.ended]

    def _settled(self) -> list[Process]:
        """Return the members, after a walk in which none vanished if possible."""
        members: list[Process] = []
        for _ in range(WALKS):
            members, settled = self._walk()
            if settled:
                break
        return members

    def _walk(self) -> tuple[list[Process], bool]:
        """Read all members again; return them, parents first, and True if no process ended meanwhile."""
        known = self._known
        members: list[Process] = []
        settled = True
        todo = list(known)
        listed = set(todo)
        for number in todo:  # grows in the loop
            member = known.get(number)
            ended_before = False
            try:
                if member is None:
                    member = Process(number, self._fd_budget)
                    if member.held:
                        known[number] = member
                else:
                    ended_before = member.ended
                for child in member.poll():
                    if child not in listed:
                        listed.add(child)
                        todo.append(child)
            except (OSError, ValueError):
                settled = False
                if member is not None:
                    self._forget(member)
                continue
            # Its children may have gone to a process that was read before.
            if member.ended and not ended_before:
                settled = False
            if self._skip_root and member is self._root:
                self._reaped_by_root_ns = member.reaped_ns
            else:
                members.append(member)
        return members, settled

    def _forget(self, member: Process) -> None:
        member.close()
        if self._known.get(member.number) is member:
            del self._known[member.number]
        if member is self._root:
            self._root = None


class OwnWait:
    """The run-queue wait of the thread that creates the object, for use by the same thread."""

    def __init__(self) -> None:
        try:
            self._descriptor = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
        except OSError:
            self._descriptor = -1

    def wait_ns(self) -> int:
        """Return the thread's total wait for a CPU, in ns; 0 where that is not counted."""
        try:
            return int(os.pread(self._descriptor, 64, 0).split()[1])
        except (OSError, IndexError):
            return 0

    def close(self) -> None:
        """Close the descriptor; the wait is 0 afterwards."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def has_counters() -> bool:
    """Return True if this system counts waits for a CPU.

    A kernel without such counters has the file, with zeros in it.
    """
    try:
        fields = read_whole("/proc/thread-self/schedstat", None, 64).split()
    except OSError:
        return False
    # The third is how often the thread was given a CPU: at least once, since it runs now.
    return len(fields) == 3 and int(fields[2]) > 0
