"""One process as /proc shows it (Linux): its threads, its children, its times, its memory.

A process is held by its directory in /proc, kept open: the number of a process that has ended may be
given to another one, its directory is not.  Files that are read often are kept open, too, since opening
one costs 1.1 us and reading it 0.25 to 1 us; how many may be kept is limited for a whole tree.

Whatever is read here may end meanwhile.  OSError then says so; who asks for more than one process goes on.
"""

import ctypes
import os
import platform
import re
import signal
import time
from contextlib import suppress
from pathlib import Path

CPU_CLOCK = 2
"""CPUCLOCK_SCHED of linux/posix-timers.h: (~pid << 3) | 2 is the clock of all threads of a process."""
TICK_NS = 1_000_000_000 // (os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100)
"""What the times in /proc/PID/stat are counted in: 10 ms as a rule."""
PAGE_BYTES = 4096
"""The kernel hands out a file of /proc in pieces of at most one page."""
WAITS_FILE = "/schedstat" if Path("/proc/self/schedstat").exists() else "/stat"
"""Its second field is a thread's wait for a CPU; that of stat, where there is no such file, is no number."""
THREAD_TRIES = 3
"""Times that the threads of a process are listed again when one has ended or begun meanwhile."""
KCMP = {"x86_64": 312, "aarch64": 272}
"""The number of the system call kcmp(2)."""
KCMP_VM = 1
"""linux/kcmp.h: do two processes share their memory?"""

HALTED = frozenset("TtZXxD")
"""States of a thread that runs no code of its own until it is continued: stopped, traced, ended, and the
uninterruptible sleep D, since a thread that leaves it takes its waiting SIGSTOP first.  The parent in a
vfork() sleeps like that until its child goes on, so waiting for its T would be in vain."""

STDIN_READS = {
    # man 2 syscall; asm/unistd_64.h and asm-generic/unistd.h: read, readv, recvfrom, recvmsg
    "x86_64": frozenset({b"0", b"19", b"45", b"47"}),
    "aarch64": frozenset({b"63", b"65", b"207", b"212"}),
}.get(platform.machine(), frozenset[bytes]())
"""System calls that read, and whose first argument is the descriptor."""

_STATUS_KIB = re.compile(rb"^(RssAnon|RssShmem|VmSwap|VmPTE):\s+(\d+) kB$", re.MULTILINE)
_ROLLUP_KIB = re.compile(rb"^(?:Pss_Anon|Pss_Shmem|SwapPss):\s+(\d+) kB$", re.MULTILINE)


class Room:
    """How many more descriptors may be kept open."""

    def __init__(self, descriptors: int) -> None:
        self.left = descriptors


class ProcFile:
    """A small file in a directory of /proc, kept open as long as there is room."""

    __slots__ = ("_descriptor", "_directory", "_path", "_room")

    def __init__(self, path: str, directory: int | None, room: Room) -> None:
        self._path = path
        self._directory = directory
        self._room = room
        self._descriptor = -1
        if room.left > 0 and directory is not None:
            self._descriptor = os.open(path, os.O_RDONLY, dir_fd=directory)
            room.left -= 1

    def read(self) -> bytes:
        """Its text at this moment, of at most a page; OSError when what it tells of has ended."""
        if self._descriptor >= 0:
            return os.pread(self._descriptor, PAGE_BYTES, 0)
        return read_whole(self._path, self._directory, PAGE_BYTES)

    def close(self) -> None:
        """Give the descriptor back."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
            self._room.left += 1


def read_whole(path: str, directory: int | None, at_most: int) -> bytes:
    """A file's text, opened and closed again."""
    descriptor = os.open(path, os.O_RDONLY, dir_fd=directory)
    try:
        text = piece = os.read(descriptor, at_most)
        while piece and len(text) < at_most:
            text += (piece := os.read(descriptor, at_most - len(text)))
        return text
    finally:
        os.close(descriptor)


class _Thread:
    """The two files of a thread that are read every time."""

    __slots__ = ("children", "path", "waits")

    def __init__(self, path: str, directory: int | None, room: Room) -> None:
        self.path = path
        self.children = ProcFile(path + "/children", directory, room)
        try:
            self.waits = ProcFile(path + WAITS_FILE, directory, room)
        except OSError:
            self.children.close()
            raise

    def close(self) -> None:
        self.children.close()
        self.waits.close()


class Process:
    """A process, alive or not yet reaped.  OSError if there is none of that number.

    What is no method is of the last ``look()``.
    """

    def __init__(self, number: int, room: Room) -> None:
        self.number = number
        self.state = ""
        """The letter of its first thread."""
        self.parent = 0
        self.reaped_ns = 0
        """CPU time of the children that ended and that it has waited for, in steps of 10 ms."""
        self.thread_count = 0
        """Threads; one for a process that has ended and was not reaped."""
        self.waits_ns: dict[int, int] = {}
        """By thread number: how long it has waited for a CPU."""
        self._room = room
        self._threads: dict[int, _Thread] = {}
        self._directory: int | None = None
        self._prefix = f"/proc/{number}/"
        if room.left > 1:  # one for the directory, one for stat
            # Not O_PATH: a directory that is open for reading serves pidfd_send_signal(), too.
            self._directory = os.open(self._prefix, os.O_RDONLY | os.O_DIRECTORY)
            self._prefix = ""
            room.left -= 1
        try:
            self._stat = ProcFile(self._prefix + "stat", self._directory, room)
        except OSError:
            self._close_directory()
            raise

    @property
    def held(self) -> bool:
        """Whether its directory is kept open, so that it cannot be taken for another one later."""
        return self._directory is not None

    @property
    def ended(self) -> bool:
        """Whether all of its threads have ended, and only its reaping is left."""
        return self.state in "ZXx" and self.thread_count <= 1

    def look(self) -> list[int]:
        """Take its state, and return the numbers of its children.

        The children are read before the times: one that was reaped before is in the times, one that is
        reaped later will be missed by who looks at it then.
        """
        children: list[int] = []
        for again in range(THREAD_TRIES):
            if again or not self._threads:
                self._list_threads()
            children = []
            waits = self.waits_ns = {}
            try:
                for number, thread in self._threads.items():
                    if text := thread.children.read():
                        children += self._numbers(text, thread)
                    # Of a thread that has ended the children are empty, and only this fails.
                    with suppress(ValueError, IndexError):
                        waits[number] = int(thread.waits.read().split()[1])
            except OSError:  # a thread has ended; or the process has, which listing the threads will tell
                continue
            self._take_stat()
            # All that we know live, and there are as many as we know: these are its threads.
            if self.thread_count == len(self._threads):
                return children
        self._take_stat()  # threads come and go faster than we look
        return children

    def cpu_ns(self) -> int:
        """CPU time of all its threads so far, ended ones included, in ns."""
        return time.clock_gettime_ns((~self.number << 3) | CPU_CLOCK)

    def states(self) -> list[tuple[str, str]]:
        """Where each thread is found, and its state; threads that end meanwhile are left out."""
        if len(self._threads) == 1:  # the state of the process is that of its only thread
            return [(thread.path, self.state) for thread in self._threads.values()]
        found = []
        for thread in list(self._threads.values()):
            with suppress(OSError, ValueError):
                text = read_whole(thread.path + "/stat", self._directory, PAGE_BYTES)
                found.append((thread.path, text[text.rindex(b")") + 2 :][:1].decode("ascii")))
        return found

    def halted(self) -> bool:
        """Whether no thread runs code of its own."""
        # The first thread may have ended before the others, or be stopped after them.
        return self.state in HALTED and all(state in HALTED for _, state in self.states())

    def reads_stdin(self, thread_path: str) -> bool:
        """Whether a sleeping thread waits in a system call that reads descriptor 0.  OSError if that is
        not for us to know.
        """
        fields = read_whole(thread_path + "/syscall", self._directory, PAGE_BYTES).split()
        return len(fields) > 1 and fields[0] in STDIN_READS and fields[1] == b"0x0"

    def stdin_identity(self) -> tuple[int, int]:
        """What its descriptor 0 is: the same pair for the same pipe."""
        status = os.stat(self._prefix + "fd/0", dir_fd=self._directory)
        return status.st_dev, status.st_ino

    def memory_kib(self) -> tuple[int, int]:
        """Memory that is its own or shared, swapped memory included; and of it the page tables.  In KiB.

        Neither files that it has mapped nor its program count.  (0, 0) once it has ended.
        """
        text = read_whole(self._prefix + "status", self._directory, 2 * PAGE_BYTES)
        found = {name: int(kib) for name, kib in _STATUS_KIB.findall(text, text.find(b"\nRssAnon:") + 1)}
        return sum(found.values()), found.get(b"VmPTE", 0)

    def own_share_kib(self) -> int:
        """The same without page tables, each page divided by how many have it mapped.  30 us and more."""
        text = read_whole(self._prefix + "smaps_rollup", self._directory, PAGE_BYTES)
        if not text:
            raise OSError("no memory left to tell of")
        return sum(map(int, _ROLLUP_KIB.findall(text)))

    def signal(self, which: signal.Signals) -> None:
        """Send a signal; nothing happens if it has ended or is not ours to signal."""
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
        """Give all descriptors back."""
        for thread in self._threads.values():
            thread.close()
        self._threads.clear()
        self._stat.close()
        self._close_directory()

    def _close_directory(self) -> None:
        if self._directory is not None:
            os.close(self._directory)
            self._directory = None
            self._room.left += 1

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
                self._threads[number] = _Thread(f"{self._prefix}task/{number}", self._directory, self._room)

    def _take_stat(self) -> None:
        """man 5 proc_pid_stat: the name in parentheses may hold anything, parentheses and newlines too."""
        text = self._stat.read()
        fields = text[text.rindex(b")") + 2 :].split(None, 18)
        self.state = fields[0].decode("ascii")
        self.parent = int(fields[1])
        self.reaped_ns = (int(fields[13]) + int(fields[14])) * TICK_NS
        self.thread_count = int(fields[17])


def share_memory(one: int, other: int) -> bool:
    """Whether two processes have the very same memory, as after vfork(); False where it cannot be told."""
    number = KCMP.get(platform.machine())
    if number is None:
        return False
    return int(ctypes.CDLL(None).syscall(number, one, other, KCMP_VM, 0, 0)) == 0
