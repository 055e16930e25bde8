"""Control groups (version 2): one for each bot, where a part of the tree was delegated to us.

``systemd-run --user --scope -p Delegate=yes kalarena ...`` does that.  The group's memory is then bounded as a
whole, by the kernel, at the moment that it is used (Documentation/admin-guide/cgroup-v2.rst of the kernel).
"""

import contextlib
import sys
from pathlib import Path

from referee.limits import MIB, Limits

OWN_LEAF = "kalarena-referees"
"""We ourselves must be in a leaf: a group with controllers for its children holds no processes of its own."""
WANTED = ("memory", "pids")
SPARE_PROCESSES = 8
"""For bubblewrap's own two, and the programs that lead to the bot's."""


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
        return str(group.parent)  # moved there by whoever started us
    offered = _words(group / "cgroup.controllers")
    missing = [name for name in WANTED if name not in offered]
    if missing:
        raise CgroupError(f"no control group with {' and '.join(missing)} was delegated to us")
    try:
        leaf = group / OWN_LEAF
        leaf.mkdir(exist_ok=True)
        for pid in _words(group / "cgroup.procs"):
            (leaf / "cgroup.procs").write_text(pid)
        (group / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in WANTED))
    except OSError as error:
        raise CgroupError(f"no control group was delegated to us ({error.strerror}: {group})") from error
    return str(group)


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
            with contextlib.suppress(FileNotFoundError):  # a kernel without swap
                self._write("memory.swap.max", "0")
        except OSError as error:
            self.remove()
            raise CgroupError(f"{self.path}: no control group could be made: {error.strerror}") from error

    def _write(self, name: str, value: str) -> None:
        (self.path / name).write_text(value)

    def ran_out_of_memory(self) -> bool:
        """Whether the kernel has killed the group for its memory."""
        return _events(self.path / "memory.events").get("oom_kill", 0) > 0

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
        """Remove the group, which must be empty; one that is not stays, and is removed by the next run."""
        with contextlib.suppress(OSError):
            self.path.rmdir()


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
