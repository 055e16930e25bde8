"""Memory and cores of this host that its processes may use, with the limits of a container or a batch job."""

import os
from collections.abc import Iterator
from pathlib import Path

from referee.judge.limits import default_memory_mb

GROUPS = Path("/proc/self/cgroup")
MEMORY_INFO = Path("/proc/meminfo")
MOUNT = Path("/sys/fs/cgroup")
"""Mount point of control groups of version 2, and folder with the mount points of version 1's controllers."""


def host_memory_bytes() -> int:
    """Return the memory that this process may use, in bytes; 0 if it is unknown."""
    limits = [
        size
        for path in _limit_files("memory.max", "memory", "memory.limit_in_bytes")
        if (size := _number(path))
    ]
    return min([size for size in (_installed_bytes(), *limits) if size], default=0)


def usable_cores() -> list[int]:
    """Return the numbers of the cores on which this process may run, in order."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def core_count() -> int:
    """Return the number of cores in this process's CPU affinity, or fewer by a quota of CPU time."""
    cores = len(usable_cores())
    for path in _limit_files("cpu.max", "cpu", "cpu.cfs_quota_us"):
        quota, period = _quota(path)
        if quota > 0 and period > 0:
            cores = min(cores, -(-quota // period))
    return max(1, cores)


def default_memory_here(games: int | None = None) -> int:
    """Return the default memory limit of a bot on this host, in MiB; None means a game on each core."""
    return default_memory_mb(host_memory_bytes(), games or core_count())


def _installed_bytes() -> int:
    try:
        for line in MEMORY_INFO.read_text(encoding="ascii").splitlines():
            if line.startswith("MemTotal:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 0


def _limit_files(name: str, kind: str, old_name: str) -> Iterator[Path]:
    """Yield the files with the limits of this process's control group and of the groups above it.

    Args:
        name: The file's name in version 2.
        kind: The controller in version 1.
        old_name: The file's name in version 1.
    """
    try:
        lines = GROUPS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return
    for line in lines:
        _, kinds, path = line.split(":", 2)
        if not kinds:
            mount, file = MOUNT, name
        elif kind in kinds.split(","):
            mount, file = MOUNT / kind, old_name
        else:
            continue
        group = Path(path)
        for above in (group, *group.parents):
            yield mount / str(above).lstrip("/") / file
        yield mount / file


def _number(path: Path) -> int:
    """Return the number in a file; 0 if there is none, as in ``max``."""
    words = _words(path)
    return int(words[0]) if words and words[0].isdigit() else 0


def _quota(path: Path) -> tuple[int, int]:
    """Return the CPU time that may be used in a period of time, and the period; 0 if it is not limited."""
    if path.name == "cpu.max":
        words = _words(path)
        return (int(words[0]), int(words[1])) if len(words) == 2 and words[0].isdigit() else (0, 0)
    return _number(path), _number(path.with_name("cpu.cfs_period_us"))


def _words(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="ascii").split()
    except (OSError, ValueError):
        return []


MEMORY_GROUPS, UNIFIED_GROUPS = "/sys/fs/cgroup/memory", "/sys/fs/cgroup"
"""Mount points of the memory controller of version 1 and of control groups of version 2."""
VMSTAT = "/proc/vmstat"
KILLED = b"\noom_kill "
"""mm/vmstat.c, mm/memcontrol.c"""


def killed_for_memory() -> int:
    """Return how many processes the kernel has killed because memory ran out, from an arbitrary start.

    The kernel kills the process that uses most memory, often a bot, though the bot may be far within its own
    limit.  Bots without a control group of their own are in that of the referee, whose counter is read; where
    no group counts, the host's own counter is read, which includes the processes of other users.  The number
    is 0 where none are counted.
    """
    for place in _places():
        _, _, after = _text(place).partition(KILLED)
        if after:
            return int(after.split(maxsplit=1)[0])
    return 0


def _places() -> Iterator[str]:
    for line in _text(str(GROUPS)).decode("utf-8", "surrogateescape").splitlines():
        _, kinds, path = line.split(":", 2)
        if kinds == "memory":
            yield f"{MEMORY_GROUPS}{path}/memory.oom_control"
        elif not kinds:
            yield f"{UNIFIED_GROUPS}{path}/memory.events.local"  # without the groups below this one
    yield VMSTAT


def _text(path: str) -> bytes:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - for each bot, and that is quicker
            return file.read()
    except OSError:
        return b""
