"""Control groups (version 2), one for each bot, if a part of the tree was delegated to this user.

``systemd-run --user --scope -p Delegate=yes kalarena ...`` delegates one.  The kernel then bounds the memory
of the whole group at the moment of its use (Documentation/admin-guide/cgroup-v2.rst of the kernel).

The controllers ``cpu`` and ``cpuset`` are used where they are delegated.  With the first one, the processors
are shared by groups and not by threads: a bot gains nothing by starting many of them, and a bot that is not
on turn gets what the others leave.  The second one keeps a bot on the cores of its referee: a process can
widen its own affinity mask, but not the cores of its group.
"""

import contextlib
import errno
import os
import re
import sys
import time
from pathlib import Path

from referee.judge.limits import MIB, Limits
from referee.sandbox.host_resources import file_words, usable_cores

OWN_LEAF = "kalarena-referees"
"""Name of the group for Kalarena's own processes, which must be in a leaf: a group with controllers for its
children has no processes of its own."""
WANTED = ("memory", "pids")
OPTIONAL = ("cpu", "cpuset")
"""Controllers without which a group is still useful.  systemd delegates ``cpuset`` to no user by itself."""
TURN_WEIGHT, LEAST_TURN_WEIGHT = 100, 10
"""Values of cpu.weight for a bot on turn: the kernel's default, and the least value for a referee with a nice
value."""
OFF_TURN_WEIGHT = 1
"""The least value of cpu.weight."""
WEIGHT_PER_NICE = 1.25
"""Ratio of the weights of two neighbouring nice values (Linux, kernel/sched/core.c)."""
SPARE_PROCESSES = 8
"""Processes added to a bot's limit, for bubblewrap's own two and the programs that start the bot's."""
BOTS_GROUP = "kalarena-bot-"
"""Beginning of the names of bots' groups; the number of the process that made the group follows, and the
bot's number there."""
SPLIT_TRIES = 20
"""Attempts to enable the controllers while another program keeps starting processes in the same group."""
EMPTY_S = 2.0
"""Seconds that ``remove`` waits for the end of killed processes, which takes milliseconds, or more
on a busy host."""
FREEZE_CHECK_S = 0.0002
"""Seconds between two readings of the state of a group that is being frozen, which takes 0.1 ms."""
SYSTEMD = Path("/run/systemd/system")
"""Directory that exists if systemd runs the system (sd_booted(3))."""
DELEGATED = ("trusted.delegate", "user.delegate")
"""Extended attributes by which systemd marks a delegated group (systemd.resource-control(5), Delegate=); the
second one since version 251, and only the second one is shown to ordinary users."""


def group_name(number: int) -> str:
    """Return the name of the control group for this process's bot with this number."""
    return f"{BOTS_GROUP}{os.getpid()}-{number}"


class CgroupError(Exception):
    """No control group can be used; the message gives the reason."""


def delegated_group() -> str:
    """Return the path of the group in which bots' groups can be made.  Raises CgroupError.

    This process moves to a leaf of that group.
    """
    if sys.platform != "linux":
        raise CgroupError("control groups are Linux's")
    group = _own_group()
    if group.name == OWN_LEAF:
        group = group.parent  # another Kalarena process has moved this one, or its parent, there
    else:
        _check_delegated(group)
    try:
        _split(group)
    except OSError as error:
        raise CgroupError(f"no control group was delegated to us ({error.strerror}: {group})") from error
    _remove_abandoned(group)
    return str(group)


def _check_delegated(group: Path) -> None:
    """Raise CgroupError if this group was not delegated to this user, before anything is changed.

    Root may write to every group.  A group delegated to root differs from those of the system, whose
    processes must not be moved, by systemd's mark; where there is no systemd, any group but the root of the
    tree is accepted.
    """
    offered = file_words(group / "cgroup.controllers")
    missing = [name for name in WANTED if name not in offered]
    if missing:
        raise CgroupError(f"no control group with {' and '.join(missing)} was delegated to us")
    if not (group / "cgroup.type").exists():  # only the root of the whole tree has none
        raise CgroupError("no control group was delegated to us (we are in that of the whole system)")
    if os.geteuid() == 0 and SYSTEMD.is_dir() and not _is_marked(group):
        raise CgroupError(f"no control group was delegated to us ({group} is systemd's own)")
    for name in ("", "cgroup.procs", "cgroup.subtree_control"):
        if not os.access(group / name, os.W_OK):
            raise CgroupError(f"no control group was delegated to us ({group} is not ours)")


def _is_marked(group: Path) -> bool:
    if sys.platform != "linux":
        return False
    for name in DELEGATED:
        with contextlib.suppress(OSError):
            if os.getxattr(group, name) == b"1":
                return True
    return False


def _split(group: Path) -> None:
    """Move all processes of the group to the leaf, and enable controllers for bots' groups beside it."""
    leaf = group / OWN_LEAF
    leaf.mkdir(exist_ok=True)
    for tries_left in reversed(range(SPLIT_TRIES)):
        for pid in file_words(group / "cgroup.procs"):
            with contextlib.suppress(ProcessLookupError):  # has ended meanwhile
                (leaf / "cgroup.procs").write_text(pid)
        try:
            (group / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in WANTED))
            break
        except OSError as error:  # busy: with a process that was started meanwhile
            if error.errno != errno.EBUSY or not tries_left:
                raise
    for name in OPTIONAL:
        with contextlib.suppress(OSError):
            (group / "cgroup.subtree_control").write_text(f"+{name}")


def missing_controllers(group: str) -> list[str]:
    """Return those of OPTIONAL that bots' groups in this group do not have."""
    enabled = file_words(Path(group, "cgroup.subtree_control"))
    return [name for name in OPTIONAL if name not in enabled]


def _remove_abandoned(group: Path) -> None:
    """Remove the groups of referees that were killed.  A group with processes in it stays."""
    for path in group.glob(f"{BOTS_GROUP}*"):
        referee = path.name.removeprefix(BOTS_GROUP).partition("-")[0]
        if not Path("/proc", referee).exists():  # a living referee may be about to use its group
            with contextlib.suppress(OSError):
                path.rmdir()


FULL_PRESSURE = re.compile(rb"^full .*\btotal=(\d+)$", re.MULTILINE)
"""Pattern of the line of a pressure file for the time in which nothing of a group ran; ``total`` is in
microseconds."""
USAGE = re.compile(rb"^usage_usec (\d+)$", re.MULTILINE)
"""Pattern of the line of cpu.stat for the CPU time in microseconds."""
PAGE_BYTES = 4096
"""More than the length of these files."""


class BotGroup:
    """One bot's control group.  Raises CgroupError; the caller must call ``remove``."""

    def __init__(self, parent: str, name: str, limits: Limits) -> None:
        self.path = Path(parent, name)
        self._descriptors: dict[str, int] = {}
        """Descriptors of the files that are read or written during turns, by name; below 0 for a file that
        is not there."""
        self._weight = 0
        try:
            self.remove()  # left by a run that was killed, with the events that it saw
            self.path.mkdir()
            self._write("memory.max", str(limits.memory_mb * MIB))
            self._write("memory.oom.group", "1")
            self._write("pids.max", str(limits.processes + SPARE_PROCESSES))
            # A kernel without swap has no such file; opening it fails with EACCES, as none can be made there.
            with contextlib.suppress(FileNotFoundError, PermissionError):
                self._write("memory.swap.max", "0")
            self._bind_to_cores(usable_cores())
        except OSError as error:
            self.remove()
            raise CgroupError(f"{self.path}: no control group could be made: {error.strerror}") from error
        self.set_on_turn(on_turn=True)

    def _write(self, name: str, value: str) -> None:
        (self.path / name).write_text(value)

    def _bind_to_cores(self, cores: list[int]) -> None:
        """Bind the group to the cores of this process if its group has more.  A bot cannot leave them."""
        offered = file_words(self.path / "cpuset.cpus.effective")
        if offered and len(cores) < _count(offered[0]):
            self._write("cpuset.cpus", ",".join(map(str, cores)))

    def set_on_turn(self, *, on_turn: bool) -> None:
        """Give the group its share of the processors on turn, or what others leave off turn.

        Does nothing where the controller ``cpu`` is not delegated.  The share on turn follows the nice value
        of this process, because nice values of processes count only within a group.
        """
        weight = OFF_TURN_WEIGHT
        if on_turn:
            nice = max(0, os.getpriority(os.PRIO_PROCESS, 0))
            weight = max(LEAST_TURN_WEIGHT, round(TURN_WEIGHT / WEIGHT_PER_NICE**nice))
        if weight == self._weight:
            return
        self._weight = weight
        descriptor = self._open("cpu.weight", os.O_WRONLY)
        if descriptor >= 0:
            with contextlib.suppress(OSError):  # the group may be gone
                os.pwrite(descriptor, str(weight).encode(), 0)

    def freeze(self, within_s: float) -> bool:
        """Stop all processes of the group; return False if that takes longer than ``within_s``.

        The caller must then call ``thaw``, or kill them.
        """
        try:
            self._write("cgroup.freeze", "1")
        except OSError:
            return False
        until = time.monotonic() + within_s
        while not _events(self.path / "cgroup.events").get("frozen"):
            if time.monotonic() >= until:
                return False
            time.sleep(FREEZE_CHECK_S)
        return True

    def thaw(self) -> None:
        """Continue the processes of the group."""
        with contextlib.suppress(OSError):  # the group may be gone
            self._write("cgroup.freeze", "0")

    def _open(self, name: str, flags: int) -> int:
        """Return a descriptor of a file of the group, which is kept open; -1 if there is no such file."""
        descriptor = self._descriptors.get(name)
        if descriptor is None:
            try:
                descriptor = os.open(self.path / name, flags | os.O_CLOEXEC)
            except OSError:
                descriptor = -1
            self._descriptors[name] = descriptor
        return descriptor

    def close(self) -> None:
        """Close the descriptors.  The group stays."""
        for descriptor in self._descriptors.values():
            if descriptor >= 0:
                os.close(descriptor)
        self._descriptors.clear()

    def memory_kills(self) -> tuple[int, int]:
        """Return how often the group reached its own limit, and how often the kernel killed in the group.

        A kill without the former means that the host had no memory left.
        """
        events = _events(self.path / "memory.events")
        return events.get("oom", 0), events.get("oom_kill", 0)

    def peak_memory_bytes(self) -> int | None:
        """Return the group's peak memory; None where the kernel does not report it (before 5.19)."""
        words = file_words(self.path / "memory.peak")
        return int(words[0]) if words else None

    def cpu_times_ns(self) -> tuple[int, int] | None:
        """Return the CPU time of all processes that were ever in the group, and its stalled time, in ns.

        Stalled time is the line ``full`` of ``cpu.pressure``: something was ready to run and nothing ran
        (Linux, Documentation/accounting/psi.rst; for groups since 5.13).  None where the kernel counts none.
        """
        pressure, stat = self._open("cpu.pressure", os.O_RDONLY), self._open("cpu.stat", os.O_RDONLY)
        if pressure < 0 or stat < 0:
            return None
        try:
            found = FULL_PRESSURE.search(os.pread(pressure, PAGE_BYTES, 0))
            used = USAGE.search(os.pread(stat, PAGE_BYTES, 0))
        except OSError:
            return None
        return None if found is None or used is None else (int(used[1]) * 1000, int(found[1]) * 1000)

    def kill(self) -> None:
        """Kill all processes of the group."""
        # The group may be gone.  Kernels before 5.14 have no such file: there bubblewrap ends the bot.
        with contextlib.suppress(OSError):
            self._write("cgroup.kill", "1")

    def remove(self) -> None:
        """Remove the group.  Its processes must have been killed.

        If processes stay in it, the group stays as well, until the next run.
        """
        self.close()
        until = time.monotonic() + EMPTY_S
        while True:
            try:
                self.path.rmdir()
            except OSError as error:
                if error.errno == errno.EBUSY and time.monotonic() < until:
                    time.sleep(0.001)
                    continue
            return


def _own_group() -> Path:
    """Return the directory of this process's group.  Raises CgroupError."""
    mount = None
    try:
        for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
            before, _, after = line.partition(" - ")
            if after.startswith("cgroup2 "):
                mount = before.split(" ")[4]
        for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines():
            if mount is not None and line.startswith("0::"):
                return Path(mount + line.removeprefix("0::"))
    except OSError as error:
        raise CgroupError(f"control groups cannot be read: {error}") from error
    raise CgroupError("this system has no control groups of version 2")


def _events(path: Path) -> dict[str, int]:
    words = file_words(path)
    return {name: int(value) for name, value in zip(words[::2], words[1::2], strict=True)}


def _count(cores: str) -> int:
    """Return the number of cores in a list such as ``0-3,8``."""
    ranges = (part.partition("-") for part in cores.split(","))
    return sum(int(last or first) - int(first) + 1 for first, _, last in ranges)
