"""Control groups (version 2): one for each bot, where a part of the tree was delegated to us.

``systemd-run --user --scope -p Delegate=yes kalarena ...`` does that.  The group's memory is then bounded as
a whole, by the kernel, at the moment that it is used (Documentation/admin-guide/cgroup-v2.rst of the kernel).
"""

import contextlib
import errno
import os
import sys
import time
from pathlib import Path

from referee.limits import MIB, Limits

OWN_LEAF = "kalarena-referees"
"""We ourselves must be in a leaf: a group with controllers for its children holds no processes of its own."""
WANTED = ("memory", "pids")
SPARE_PROCESSES = 8
"""For bubblewrap's own two, and the programs that lead to the bot's."""
BOTS_GROUP = "kalarena-bot-"
"""Names of bots' groups begin so; the number of the process that made it follows, and the bot's index."""
SPLIT_TRIES = 20
"""How often controllers are tried to be enabled while something goes on starting processes beside us."""
EMPTY_S = 0.2
"""How long ``remove`` waits for killed processes to be gone, which takes a moment."""
SYSTEMD = Path("/run/systemd/system")
"""There if systemd runs the system (sd_booted(3))."""
DELEGATED = ("trusted.delegate", "user.delegate")
"""What systemd marks a group with that it was asked to delegate (systemd.resource-control(5), Delegate=); the
second one since version 251, and only the second one is shown to ordinary users."""


def group_name(index: int) -> str:
    """The name of the group of this process's bot with this index."""
    return f"{BOTS_GROUP}{os.getpid()}-{index}"


class CgroupError(Exception):
    """There is no control group that we could use; the message says why."""


def delegated_group() -> str:
    """The path of the group that bots' groups can be made in; this process moves to a leaf of it.

    Raises CgroupError.
    """
    if sys.platform != "linux":
        raise CgroupError("control groups are Linux's")
    group = _own_group()
    if group.name == OWN_LEAF:
        group = group.parent  # moved there by whoever started us, or by another of us
    else:
        _check_delegated(group)
    try:
        _split(group)
    except OSError as error:
        raise CgroupError(f"no control group was delegated to us ({error.strerror}: {group})") from error
    _remove_abandoned(group)
    return str(group)


def _check_delegated(group: Path) -> None:
    """Raise CgroupError if this group is not ours to split, before anything is changed.

    Root may write to every group.  What tells root's own one from those of the system, whose processes are
    not to be moved, is that systemd has marked it; where there is none, any but the root of all will do.
    """
    offered = _words(group / "cgroup.controllers")
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
    """Move all processes of the group to our leaf, and enable controllers for bots' groups beside it."""
    leaf = group / OWN_LEAF
    leaf.mkdir(exist_ok=True)
    for tries_left in reversed(range(SPLIT_TRIES)):
        for pid in _words(group / "cgroup.procs"):
            with contextlib.suppress(ProcessLookupError):  # has ended meanwhile
                (leaf / "cgroup.procs").write_text(pid)
        try:
            (group / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in WANTED))
            return
        except OSError as error:  # busy: with a process that was started meanwhile
            if error.errno != errno.EBUSY or not tries_left:
                raise


def _remove_abandoned(group: Path) -> None:
    """Remove bots' groups whose referee was killed.  One with processes in it stays."""
    for path in group.glob(f"{BOTS_GROUP}*"):
        referee = path.name.removeprefix(BOTS_GROUP).partition("-")[0]
        if not Path("/proc", referee).exists():  # else it may be about to use it
            with contextlib.suppress(OSError):
                path.rmdir()


class BotGroup:
    """One bot's control group.  Raises CgroupError; ``remove`` must follow."""

    def __init__(self, parent: str, name: str, limits: Limits) -> None:
        self.path = Path(parent, name)
        try:
            self.remove()  # left by a run that was killed, with the events that it saw
            self.path.mkdir()
            self._write("memory.max", str(limits.memory_mb * MIB))
            self._write("memory.oom.group", "1")
            self._write("pids.max", str(limits.processes + SPARE_PROCESSES))
            # A kernel without swap has no such file, and says EACCES: files cannot be made there.
            with contextlib.suppress(FileNotFoundError, PermissionError):
                self._write("memory.swap.max", "0")
        except OSError as error:
            self.remove()
            raise CgroupError(f"{self.path}: no control group could be made: {error.strerror}") from error

    def _write(self, name: str, value: str) -> None:
        (self.path / name).write_text(value)

    def ran_out_of_memory(self) -> bool:
        """Whether the kernel has killed the group because it reached its own limit."""
        events = _events(self.path / "memory.events")
        return events.get("oom_kill", 0) > 0 and events.get("oom", 0) > 0

    def was_killed_for_others(self) -> bool:
        """Whether the kernel has killed the group within its limit: the host had no memory left."""
        events = _events(self.path / "memory.events")
        return events.get("oom_kill", 0) > 0 and events.get("oom", 0) == 0

    def most_memory_mb(self) -> int:
        """The most memory that it ever held, in MiB; 0 where the kernel does not tell (before 5.19)."""
        words = _words(self.path / "memory.peak")
        return int(words[0]) // MIB if words else 0

    def kill(self) -> None:
        """Kill all processes of the group."""
        with contextlib.suppress(
            OSError
        ):  # gone already, or a kernel before 5.14: bubblewrap's way is enough
            self._write("cgroup.kill", "1")

    def remove(self) -> None:
        """Remove the group, whose processes must be killed; if they stay, so does it, until the next run."""
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
    """The directory of the group that we are in.  Raises CgroupError."""
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


def _words(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").split()
    except OSError:
        return []


def _events(path: Path) -> dict[str, int]:
    words = _words(path)
    return {name: int(value) for name, value in zip(words[::2], words[1::2], strict=True)}
