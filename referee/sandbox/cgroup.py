"""Control groups (version 2), one for each bot, if a part of the tree was delegated to this user.

``systemd-run --user --scope -p Delegate=yes kalarena ...`` delegates one.  The kernel then bounds the memory
of the whole group at the moment of its use (Documentation/admin-guide/cgroup-v2.rst of the kernel).
"""

import contextlib
import errno
import os
import re
import sys
import time
from pathlib import Path

from referee.judge.limits import MIB, Limits
from referee.sandbox.host_resources import file_words

OWN_LEAF = "kalarena-referees"
"""Name of the group for Kalarena's own processes, which must be in a leaf: a group with controllers for its
children has no processes of its own."""
WANTED = ("memory", "pids")
SPARE_PROCESSES = 8
"""Processes added to a bot's limit, for bubblewrap's own two and the programs that start the bot's."""
BOTS_GROUP = "kalarena-bot-"
"""Beginning of the names of bots' groups; the number of the process that made the group follows, and the
bot's number there."""
SPLIT_TRIES = 20
"""Attempts to enable the controllers while another program keeps starting processes in the same group."""
EMPTY_S = 0.2
"""Seconds that ``remove`` waits for the end of killed processes."""
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
            return
        except OSError as error:  # busy: with a process that was started meanwhile
            if error.errno != errno.EBUSY or not tries_left:
                raise


def _remove_abandoned(group: Path) -> None:
    """Remove the groups of referees that were killed.  A group with processes in it stays."""
    for path in group.glob(f"{BOTS_GROUP}*"):
        referee = path.name.removeprefix(BOTS_GROUP).partition("-")[0]
        if not Path("/proc", referee).exists():  # a living referee may be about to use its group
            with contextlib.suppress(OSError):
                path.rmdir()


FULL_PRESSURE = re.compile(r"^full .*\btotal=(\d+)$", re.MULTILINE)
"""Pattern of the line of a pressure file for the time in which nothing of a group ran; ``total`` is in
microseconds."""


class BotGroup:
    """One bot's control group.  Raises CgroupError; the caller must call ``remove``."""

    def __init__(self, parent: str, name: str, limits: Limits) -> None:
        self.path = Path(parent, name)
        try:
            self.remove()  # left by a run that was killed, with the events that it saw
            self.path.mkdir()
            self._write("memory.max", str(limits.memory_mb * MIB))
            self._write("memory.oom.group", "1")
            self._write("pids.max", str(limits.processes + SPARE_PROCESSES))
            # A kernel without swap has no such file; opening it fails with EACCES, as none can be made there.
            with contextlib.suppress(FileNotFoundError, PermissionError):
                self._write("memory.swap.max", "0")
        except OSError as error:
            self.remove()
            raise CgroupError(f"{self.path}: no control group could be made: {error.strerror}") from error

    def _write(self, name: str, value: str) -> None:
        (self.path / name).write_text(value)

    def memory_kills(self) -> tuple[int, int]:
        """Return how often the group reached its own limit, and how often the kernel killed in the group.

        A kill without the former means that the host had no memory left.
        """
        events = _events(self.path / "memory.events")
        return events.get("oom", 0), events.get("oom_kill", 0)

    def most_memory_mb(self) -> int:
        """Return the group's peak memory, in MiB; 0 where the kernel does not report it (before 5.19)."""
        words = file_words(self.path / "memory.peak")
        return int(words[0]) // MIB if words else 0

    def cpu_times_ns(self) -> tuple[int, int] | None:
        """Return the CPU time of all processes that were ever in the group, and its stalled time, in ns.

        Stalled time is the line ``full`` of ``cpu.pressure``: something was ready to run and nothing ran
        (Linux, Documentation/accounting/psi.rst; for groups since 5.13).  None where the kernel counts none.
        """
        try:
            pressure = (self.path / "cpu.pressure").read_text(encoding="utf-8")
            used_us = _events(self.path / "cpu.stat")["usage_usec"]
        except (OSError, LookupError, ValueError):
            return None
        found = FULL_PRESSURE.search(pressure)
        return None if found is None else (used_us * 1000, int(found[1]) * 1000)

    def kill(self) -> None:
        """Kill all processes of the group."""
        # The group may be gone.  Kernels before 5.14 have no such file: there bubblewrap ends the bot.
        with contextlib.suppress(OSError):
            self._write("cgroup.kill", "1")

    def remove(self) -> None:
        """Remove the group.  Its processes must have been killed.

        If processes stay in it, the group stays as well, until the next run.
        """
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
        raise CgroupError(f"control groups cannot be looked at: {error}") from error
    raise CgroupError("this system has no control groups of version 2")


def _events(path: Path) -> dict[str, int]:
    words = file_words(path)
    return {name: int(value) for name, value in zip(words[::2], words[1::2], strict=True)}
