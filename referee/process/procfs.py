"""Access to one process through /proc (Linux): its threads, children, times and memory.

The directory of a process in /proc is kept open, since the number of a process that has ended may be reused
for another one, and the open directory never is.  Files that are read often are kept open, too: opening a
file costs 1.1 us, reading it 0.25 to 1 us.  The number of open files is limited for a whole tree.

A process can end while it is read.  OSError is raised then; a caller that reads several processes goes on
with the next one.
"""

import ctypes
import os
import platform
import re
import signal
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from referee.process.cpu_accounting import ThreadTimes

CPU_CLOCK = 2
"""CPUCLOCK_SCHED of linux/posix-timers.h: (~pid << 3) | 2 is the clock of all threads of a process."""
TICK_NS = 1_000_000_000 // (os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100)
"""Unit of the times in /proc/PID/stat, in ns: 10 ms as a rule."""
PAGE_BYTES = 4096
"""Largest piece in which the kernel returns a file of /proc."""
TIMES_FILE = "/schedstat" if Path("/proc/self/schedstat").exists() else "/stat"
"""The file with a thread's times.  The three fields of schedstat are its CPU time, its wait for a CPU, and
how often it was given one.  Where there is no schedstat, stat is read, which has more than three fields."""
THREAD_TRIES = 3
"""Attempts to list the threads of a process when one has ended or begun meanwhile."""
KCMP = {"x86_64": 312, "aarch64": 272}
"""The number of the system call kcmp(2)."""
KCMP_VM = 1
"""linux/kcmp.h: compares the memory of two processes."""

INACTIVE_STATES = frozenset("TtZXxD")
"""States of a thread that runs no code of its own until it is continued: stopped, traced, ended, and the
uninterruptible sleep D, since a thread that leaves it takes its waiting SIGSTOP first.  The parent in a
vfork() sleeps like that until its child goes on, so waiting for its T would be in vain."""

STDIN_READS = {
    # man 2 syscall; asm/unistd_64.h and asm-generic/unistd.h: read, readv, recvfrom, recvmsg
    "x86_64": frozenset({b"0", b"19", b"45", b"47"}),
    "aarch64": frozenset({b"63", b"65", b"207", b"212"}),
}.get(platform.machine(), frozenset[bytes]())
"""Numbers of system calls that read from the descriptor in their first argument."""

_STATUS_KIB = re.compile(rb"^(RssAnon|RssShmem|VmSwap|VmPTE):\s+(\d+) kB$", re.MULTILINE)
_TRACER = re.compile(rb"^TracerPid:\s+(\d+)$", re.MULTILINE)
_ROLLUP_KIB = re.compile(rb"^(?:Pss_Anon|Pss_Shmem|SwapPss):\s+(\d+) kB$", re.MULTILINE)


PF_EXITING = 0x4
"""Flag of a thread that ends (Linux, include/linux/sched.h), in field 9 of /proc/PID/stat."""


class FdBudget:
    """The number of descriptors that may still be kept open."""

    def __init__(self, descriptors: int) -> None:
        self.left = descriptors


class ProcFile:
    """A small file in a directory of /proc, kept open while the budget allows."""

    __slots__ = ("_descriptor", "_directory", "_fd_budget", "_path")

    def __init__(self, path: str, directory: int | None, budget: FdBudget) -> None:
        self._path = path
        self._directory = directory
        self._fd_budget = budget
        self._descriptor = -1
        if budget.left > 0 and directory is not None:
            self._descriptor = os.open(path, os.O_RDONLY, dir_fd=directory)
            budget.left -= 1

    def read(self) -> bytes:
        """Return the file's text at this moment, of at most a page; OSError if its process has ended."""
        if self._descriptor >= 0:
            return os.pread(self._descriptor, PAGE_BYTES, 0)
        return read_whole(self._path, self._directory, PAGE_BYTES)

    def close(self) -> None:
        """Close the descriptor."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
            self._fd_budget.left += 1


def read_whole(path: str, directory: int | None, at_most: int) -> bytes:
    """Open a file, return its text, and close it again."""
    descriptor = os.open(path, os.O_RDONLY, dir_fd=directory)
    try:
        text = piece = os.read(descriptor, at_most)
        while piece and len(text) < at_most:
            text += (piece := os.read(descriptor, at_most - len(text)))
        return text
    finally:
        os.close(descriptor)


class _Thread:
    """The two files of a thread that are part of every reading."""

    __slots__ = ("children", "path", "times")

    def __init__(self, path: str, directory: int | None, budget: FdBudget) -> None:
        self.path = path
        self.children = ProcFile(path + "/children", directory, budget)
        try:
            self.times = ProcFile(path + TIMES_FILE, directory, budget)
        except OSError:
            self.children.close()
            raise

    def close(self) -> None:
        self.children.close()
        self.times.close()


class Process:
    """A process, alive or not yet reaped.  Raises OSError if there is none of that number.

    Attributes hold the values read by the last ``poll()``.
    """

    def __init__(self, number: int, budget: FdBudget) -> None:
        self.number = number
        self.state = ""
        """State of the first thread, as the letter in /proc/PID/stat."""
        self.parent = 0
        self.reaped_ns = 0
        """CPU time of the children that ended and that it has waited for, in steps of 10 ms."""
        self.thread_count = 0
        """Number of threads; one for a process that has ended and was not reaped."""
        self.threads: dict[int, ThreadTimes] = {}
        """CPU time and wait for a CPU, by thread number."""
        self._is_exiting = False
        """True if the first thread has PF_EXITING."""
        self._fd_budget = budget
        self._threads: dict[int, _Thread] = {}
        self._directory: int | None = None
        self._prefix = f"/proc/{number}/"
        if budget.left > 1:  # one for the directory, one for stat
            # Not O_PATH: a directory that is open for reading serves pidfd_send_signal(), too.
            self._directory = os.open(self._prefix, os.O_RDONLY | os.O_DIRECTORY)
            self._prefix = ""
            budget.left -= 1
        try:
            self._stat = ProcFile(self._prefix + "stat", self._directory, budget)
        except OSError:
            self._close_directory()
            raise

    @property
    def held(self) -> bool:
        """True if the directory is kept open, so that the process cannot be confused with a later one."""
        return self._directory is not None

    @property
    def ended(self) -> bool:
        """True if all threads have ended, and only the reaping is left."""
        return self.state in "ZXx" and self.thread_count <= 1

    def poll(self) -> list[int]:
        """Read the process, and return the numbers of its children.

        The children are read before the times: a child that was reaped before is in the times, and one that
        is reaped later is found missing when it is read itself.
        """
        children: list[int] = []
        for again in range(THREAD_TRIES):
            if again or not self._threads:
                self._list_threads()
            children = []
            times = self.threads = {}
            try:
                for number, thread in self._threads.items():
                    if text := thread.children.read():
                        children += self._numbers(text, thread)
                    # The children of an ended thread are empty, and only this read fails.
                    with suppress(ValueError):
                        cpu, wait, runs = thread.times.read().split()
                        times[number] = ThreadTimes(int(cpu), int(wait), int(runs))
            except OSError:  # a thread has ended, or the process has, which listing the threads shows
                continue
            self._read_stat()
            # All known threads are alive, and their number is right: these are all threads.
            if self.thread_count == len(self._threads):
                return children
        self._read_stat()  # threads come and go faster than they can be listed
        return children

    def cpu_ns(self) -> int:
        """Return the CPU time of all threads so far, ended ones included, in ns."""
        return time.clock_gettime_ns((~self.number << 3) | CPU_CLOCK)

    def states(self) -> list[tuple[str, str]]:
        """Return the path and the state of each thread; threads that end meanwhile are left out."""
        if len(self._threads) == 1:  # the state of the process is that of its only thread
            return [(thread.path, self.state) for thread in self._threads.values()]
        return [(path, fields[0].decode("ascii")) for path, fields in self._stats_of_threads()]

    def is_exiting(self) -> bool:
        """Return True if no thread runs code of its own any more: only the kernel's work at exit is left."""
        if self.thread_count <= 1:
            return self._is_exiting
        stats = self._stats_of_threads()
        is_complete = len(stats) == self.thread_count
        return is_complete and all(int(fields[6]) & PF_EXITING for _, fields in stats)

    def _stats_of_threads(self) -> list[tuple[str, list[bytes]]]:
        """Return the path of each thread, and the fields of its stat after the name; see ``_read_stat``."""
        found = []
        for thread in list(self._threads.values()):
            with suppress(OSError, ValueError):
                text = read_whole(thread.path + "/stat", self._directory, PAGE_BYTES)
                found.append((thread.path, text[text.rindex(b")") + 2 :].split(None, 7)))
        return found

    def is_inactive(self) -> bool:
        """Return True if no thread runs code of its own."""
        # The first thread may have ended before the others, or be stopped after them.
        return self.state in INACTIVE_STATES and all(state in INACTIVE_STATES for _, state in self.states())

    def reads_stdin(self, thread_path: str) -> bool:
        """Return True if a sleeping thread waits in a system call that reads descriptor 0.

        Raises OSError if this user may not read that.
        """
        fields = read_whole(thread_path + "/syscall", self._directory, PAGE_BYTES).split()
        return len(fields) > 1 and fields[0] in STDIN_READS and fields[1] == b"0x0"

    def stdin_identity(self) -> tuple[int, int]:
        """Return device and inode of descriptor 0: the same pair for the same pipe."""
        status = os.stat(self._prefix + "fd/0", dir_fd=self._directory)
        return status.st_dev, status.st_ino

    def memory_kib(self) -> tuple[int, int]:
        """Return the process's own and shared memory, with swapped memory, and its page tables' part, in KiB.

        Neither mapped files nor the program itself count.  (0, 0) once it has ended.
        """
        text = read_whole(self._prefix + "status", self._directory, 2 * PAGE_BYTES)
        found = {name: int(kib) for name, kib in _STATUS_KIB.findall(text, text.find(b"\nRssAnon:") + 1)}
        return sum(found.values()), found.get(b"VmPTE", 0)

    def own_share_kib(self) -> int:
        """Return the memory without page tables, in KiB, each page divided by the number of its users.

        This takes 30 us and more.
        """
        text = read_whole(self._prefix + "smaps_rollup", self._directory, PAGE_BYTES)
        if not text:
            raise OSError("the process has no memory any more")
        return sum(map(int, _ROLLUP_KIB.findall(text)))

    def signal(self, which: signal.Signals) -> None:
        """Send a signal; does nothing if the process has ended or belongs to another user."""
        with suppress(ProcessLookupError, PermissionError):
            if self._directory is not None:
                try:
                    signal.pidfd_send_signal(self._directory, which)
                except (ProcessLookupError, PermissionError):
                    return
                except OSError:  # an older kernel, or one that is not Linux and only looks like it
                    pass
                else:
                    return
            os.kill(self.number, which)

    def close(self) -> None:
        """Close all descriptors."""
        for thread in self._threads.values():
            thread.close()
        self._threads.clear()
        self._stat.close()
        self._close_directory()

    def _close_directory(self) -> None:
        if self._directory is not None:
            os.close(self._directory)
            self._directory = None
            self._fd_budget.left += 1

    def _numbers(self, text: bytes, thread: _Thread) -> list[int]:
        if len(text) > PAGE_BYTES // 2:  # there may be another page
            text = read_whole(thread.path + "/children", self._directory, PAGE_BYTES * PAGE_BYTES)
        return [int(number) for number in text.split()]

    def _list_threads(self) -> None:
        descriptor = os.open(self._prefix + "task", os.O_RDONLY | os.O_DIRECTORY, dir_fd=self._directory)
        try:
            there = {int(name) for name in os.listdir(descriptor)}  # noqa: PTH208 -- of a descriptor
        finally:
            os.close(descriptor)
        if not there:
            raise ProcessLookupError(self.number)
        for number in self._threads.keys() - there:
            self._threads.pop(number).close()
        for number in sorted(there - self._threads.keys()):
            with suppress(OSError):
                self._threads[number] = _Thread(
                    f"{self._prefix}task/{number}", self._directory, self._fd_budget
                )

    def _read_stat(self) -> None:
        """Read the file stat.

        The name in parentheses may hold anything, parentheses and newlines too (man 5 proc_pid_stat).
        """
        text = self._stat.read()
        fields = text[text.rindex(b")") + 2 :].split(None, 18)
        self.state = fields[0].decode("ascii")
        self.parent = int(fields[1])
        self.reaped_ns = (int(fields[13]) + int(fields[14])) * TICK_NS
        self.thread_count = int(fields[17])
        self._is_exiting = bool(int(fields[6]) & PF_EXITING)


def unreaped_status(number: int) -> int | None:
    """Return the exit status of a process that has ended and is not reaped; negative is a signal's number.

    None if there is no such process, or the system does not show the status.
    """
    try:
        text = read_whole(f"/proc/{number}/stat", None, PAGE_BYTES)
        fields = text[text.rindex(b")") + 2 :].split()
        # Fields 3 and 52 of man 5 proc_pid_stat.
        return os.waitstatus_to_exitcode(int(fields[49])) if fields[0] in (b"Z", b"X") else None
    except (OSError, ValueError, IndexError):
        return None


def tracer_of(number: int) -> int:
    """Return the number of the process that traces a process; 0 if there is none, or it is not known."""
    try:
        found = _TRACER.search(read_whole(f"/proc/{number}/status", None, 2 * PAGE_BYTES))
    except OSError:
        return 0
    return 0 if found is None else int(found[1])


def share_memory(one: int, other: int) -> bool:
    """Return True if two processes have the very same memory, as after vfork().

    False where the system cannot compare them.
    """
    number = KCMP.get(platform.machine())
    if number is None:
        return False
    return int(ctypes.CDLL(None).syscall(number, one, other, KCMP_VM, 0, 0)) == 0


def surviving_programs(leader: int, members: Collection[int]) -> list[str]:
    """Return the names of a bot's programs that are still alive after its own process has ended, in order.

    Args:
        leader: The number of the bot's own process, which leads a session.
        members: The numbers of processes that are known to be the bot's, in whatever session.
    """
    names = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, IndexError):
            number = int(entry.name)
            if number != leader and (number in members or os.getsid(number) == leader):
                text = (entry / "stat").read_text("utf-8", "replace")  # a program chooses its name
                name, _, rest = text.partition("(")[2].rpartition(")")
                fields = rest.split()
                has_ended = fields[0] in "ZX" or int(fields[6]) & PF_EXITING
                if not has_ended and name != "bwrap":
                    names.append(name)
    return sorted(names)
