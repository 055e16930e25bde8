"""What /proc tells of a bot's tree of processes: CPU time, waits for a CPU, memory, and what it is doing.

Three things are hard about a tree that is alive, and are dealt with here:

- Processes end between two looks, and their time moves to their parent.  A walk in which one vanished is
  not settled and is made again, a few times.
- A process may give its children to another one by ending.  Inside a sandbox they go to its root, and
  stay in the tree.  Elsewhere they leave it; those that were seen before are still members, since each is
  held by its own directory in /proc.
- Bots may fork while they are being stopped.  A tree counts as stopped after two walks in a row that found
  the same processes, all of them stopped.

Where there is no /proc, all of this can be called and tells nothing.
"""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from referee.procfs import STDIN_READS, Process, Room, read_whole, share_memory

DESCRIPTORS_KEPT = 64
"""Kept open for one tree: a Java machine has 20 to 30 threads, at two files each.  The two bots of a game
take an eighth of the 1,024 that a process usually may have."""
WALKS = 4
"""Walks until one is settled; a bot that always has a process ending is read as it is found."""
FIRST_PAUSE_S = 20e-6
LAST_PAUSE_S = 1e-3
"""Between two walks of ``stop()``, doubling: a signal is taken within some 10 us where the bot has a core
of its own; where it shares ours it needs us to sleep."""
KIB = 1024
MUCH_IN_TABLES = 16 << 20
ENOUGH_PER_TABLES = 64
"""Processes whose shared memory is to be told exactly may have page tables of this size together, or of
this part of what they may use.  Such tables stand for 8 GiB of mapped pages, or for 8 times all that is
allowed; to look through them takes 5 to 10 ms where through 256 MiB it takes 0.15 s and, while the bot fills
more of them on all cores, 0.4 s."""


class Reading(NamedTuple):
    """A moment's counters of a tree."""

    cpu_ns: int
    """CPU time of all its threads so far, ended ones and reaped children included, in ns.  That of reaped
    children is known in steps of 10 ms (clock ticks), and not at all if their parent ignores SIGCHLD."""
    waits_ns: dict[int, int]
    """By thread number: ns that it has waited for a CPU.  A wait under way is not in it yet."""
    processes: frozenset[int] = frozenset()
    """The numbers of its processes, ended ones that nobody has reaped included."""


class Spent(NamedTuple):
    """What a tree took from one reading to the next, in microseconds."""

    cpu_us: int
    """CPU time of all threads together."""
    wait_us: int
    """The longest time that one thread waited for a CPU."""


def between(before: Reading, after: Reading) -> Spent:
    """What was spent from one reading to a later one; a thread that is new counts from 0."""
    known = before.waits_ns.get
    longest = 0
    for thread, wait in after.waits_ns.items():
        earlier = known(thread, 0)
        # Counters only grow: a smaller one is of a new thread that got an old one's number.
        if (more := wait - earlier if wait >= earlier else wait) > longest:
            longest = more
    return Spent(max(0, after.cpu_ns - before.cpu_ns) // 1000, longest // 1000)


class ProcessTree:
    """A process and all that descend from it.

    ``skip_root`` is for a root that is not the bot, but the sandbox's own first process.  Nothing here is
    about it then, except that the time of orphans which it has reaped counts.
    """

    def __init__(self, root: int, *, skip_root: bool = False) -> None:
        self._skip_root = skip_root
        self._room = Room(DESCRIPTORS_KEPT)
        self._known: dict[int, Process] = {}
        """Members seen so far, the root among them, that are held by their directory; parents first."""
        self._reaped_by_root_ns = 0
        self._available = Path("/proc/self/task").is_dir()
        self._root: Process | None = None
        if self._available:
            try:
                self._root = self._known[root] = Process(root, self._room)
            except OSError:  # it has ended, and so has the tree
                self._root = None

    def numbers(self) -> frozenset[int]:
        """The numbers of all its processes now, as in a Reading."""
        return frozenset(member.number for member in self._settled())

    def pids(self) -> list[int]:
        """The process numbers of the members that live, parents before their children."""
        return [member.number for member in self._settled() if not member.ended]

    def read(self) -> Reading:
        """The counters now.  Read while the root is not reaped: its times go with it."""
        waits: dict[int, int] = {}
        cpu = 0
        for _ in range(WALKS):
            members, settled = self._walk()
            waits = {}
            cpu = self._reaped_by_root_ns
            for member in members:
                try:
                    cpu += member.cpu_ns() + member.reaped_ns
                except OSError:
                    settled = False
                    continue
                waits.update(member.waits_ns)
            if settled:
                break
        return Reading(cpu, waits, frozenset(member.number for member in members))

    def memory_bytes(self, enough: int) -> int:
        """Bytes of memory that the members use, swapped ones and page tables included.

        Up to ``enough`` a quick sum that counts pages once for each process that has them.  If it comes
        out higher, each page counts once.  Files count only where they are mapped and shared memory.
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
        # A vfork() is one memory with two processes, for both of which /proc tells all of it.
        alone = [
            member
            for member in members
            if member.number in quick
            and not (member.parent in quick and share_memory(member.number, member.parent))
        ]
        # Tables are nobody else's, and what has many takes long to look at: a bot may grow in the meantime.
        total, looked_through = 0, 0
        for member in sorted(alone, key=lambda member: quick[member.number][1]):
            kib, tables = quick[member.number]
            looked_through += tables * KIB
            if looked_through <= max(MUCH_IN_TABLES, enough // ENOUGH_PER_TABLES):
                with suppress(OSError):  # not for us to read, or just ended
                    kib = member.own_share_kib() + tables
            total += kib
        return total * KIB

    def count(self) -> int:
        """Threads of all members, which is what RLIMIT_NPROC limits; one for each that is not yet reaped."""
        return sum(member.thread_count for member in self._settled())

    def stop(self, within_s: float) -> bool:
        """Send SIGSTOP to all members until all are stopped; False if they are not within that time.

        Some may then be stopped and others not: ``go_on()``, or kill them.  A stopped bot may have asked
        the kernel to continue it (a timer with SIGCONT): whoever relies on it compares the CPU time after.
        """
        if not self._available:
            return False
        until = time.monotonic() + within_s
        stopped: set[int] | None = None
        pause = FIRST_PAUSE_S
        while True:
            members, settled = self._walk()
            moving = [member for member in members if not member.halted()]
            for member in moving:
                member.signal(signal.SIGSTOP)
            before, stopped = stopped, None
            if settled and not moving:
                stopped = {member.number for member in members}
                if stopped == before:
                    return True
            # The first walk that finds all stopped is confirmed by a second one, even if it is late.
            if time.monotonic() >= until and (stopped is None or before is not None):
                return False
            if stopped is None:
                time.sleep(pause)
                pause = min(2 * pause, LAST_PAUSE_S)

    def go_on(self) -> None:
        """Send SIGCONT to all members, children before their parents.

        A system call that a stop interrupted goes on, with few exceptions (man 7 signal): epoll_wait()
        and reads with a timeout fail with EINTR.
        """
        for member in reversed(self._settled()):
            member.signal(signal.SIGCONT)

    def doing(self) -> str:
        """What the tree does at this moment.

        "reading" if a thread waits in a read of standard input, "running" if one runs or could run,
        "stopped" if all are, "ended" if no process is left, "waiting" for all else: poll() and its like
        are that, too.  Empty where it cannot be told.
        """
        try:
            return self._doing()
        except (OSError, ValueError):
            return ""

    def close(self) -> None:
        """Give all descriptors back; nobody is a member any more."""
        for member in self._known.values():
            member.close()
        self._known.clear()
        self._root = None

    def _doing(self) -> str:
        if not self._available:
            return ""
        members = [member for member in self._settled() if not member.ended]
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
        """A bot may have helpers that read what the bot itself sends them."""
        bot = self._root
        if self._skip_root and bot is not None:  # the bot is the first that the sandbox's own process started
            bot = next((each for each in self._known.values() if each.parent == bot.number), None)
        if bot is None or member is bot:
            return True
        try:
            return member.stdin_identity() == bot.stdin_identity()
        except OSError:
            return True

    def _settled(self) -> list[Process]:
        """The members, after a walk in which none vanished, if there is one."""
        members: list[Process] = []
        for _ in range(WALKS):
            members, settled = self._walk()
            if settled:
                break
        return members

    def _walk(self) -> tuple[list[Process], bool]:
        """All members with a fresh look at each, parents first; and whether nobody ended meanwhile."""
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
                    member = Process(number, self._room)
                    if member.held:
                        known[number] = member
                else:
                    ended_before = member.ended
                for child in member.look():
                    if child not in listed:
                        listed.add(child)
                        todo.append(child)
            except (OSError, ValueError):
                settled = False
                if member is not None:
                    self._forget(member)
                continue
            # Its children may have gone to a process that was looked at before.
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
    """The run-queue wait of the thread that makes this, from then on, for use by the same thread."""

    def __init__(self) -> None:
        try:
            self._descriptor = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
        except OSError:
            self._descriptor = -1

    def wait_ns(self) -> int:
        """How long the thread has waited for a CPU in all, in ns; 0 where that is not counted."""
        try:
            return int(os.pread(self._descriptor, 64, 0).split()[1])
        except (OSError, IndexError):
            return 0

    def close(self) -> None:
        """Give the descriptor back; the wait is 0 from now on."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def has_counters() -> bool:
    """Whether this system counts waits for a CPU.  A kernel without them has the file, with zeros in it."""
    try:
        fields = read_whole("/proc/thread-self/schedstat", None, 64).split()
    except OSError:
        return False
    # The third is how often the thread was given a CPU, which it is as it reads this.
    return len(fields) == 3 and int(fields[2]) > 0
