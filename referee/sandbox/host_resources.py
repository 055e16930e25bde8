"""Memory and cores of this host that its processes may use, with the limits of a container or a batch job."""

import os
from collections.abc import Iterator
from pathlib import Path

from referee.judge.limits import default_memory_mb

GROUPS = Path("/proc/self/cgroup")
MEMORY_INFO = Path("/proc/meminfo")
MOUNT = Path("/sys/fs/cgroup")
"""Mount point of control groups of version 2, and folder with the mount points of version 1's controllers."""
VMSTAT = "/proc/vmstat"
KILLED = b"\noom_kill "
"""Beginning of the counter's line in all of these files (mm/vmstat.c, mm/memcontrol.c)."""


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


def killed_for_memory() -> int:
    """Return how many processes the kernel has killed because memory ran out, from an arbitrary start.

    The kernel kills the process that uses most memory, often a bot, though the bot may be far within its own
    limit.  Bots without a control group of their own are in that of the referee, whose counter is read; where
    no group counts, the host's own counter is read, which includes the processes of other users.  The number
    is 0 where none are counted.
    """
    for path in _kill_counters():
        _, _, after = _read(path).partition(KILLED)
        if after:
            return int(after.split(maxsplit=1)[0])
    return 0


def file_words(path: Path) -> list[str]:
    """Return the words of a small file of the kernel; none if the file cannot be read."""
    return _read(str(path)).decode("ascii", "replace").split()


def _installed_bytes() -> int:
    words = file_words(MEMORY_INFO)
    if "MemTotal:" in words[:-1]:
        return int(words[words.index("MemTotal:") + 1]) * 1024
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 0


def _own_groups() -> Iterator[tuple[list[str], str]]:
    """Yield the controllers (none in version 2) and the path of each control group of this process."""
    for line in _read(str(GROUPS)).decode("utf-8", "surrogateescape").splitlines():
        _, controllers, path = line.split(":", 2)
        yield [name for name in controllers.split(",") if name], path


def _limit_files(name: str, controller: str, old_name: str) -> Iterator[Path]:
    """Yield the files with the limits of this process's control group and of the groups above it.

    Args:
        name: The file's name in version 2.
        controller: The controller in version 1.
        old_name: The file's name in version 1.
    """
    for controllers, path in _own_groups():
        if not controllers:
            mount, file = MOUNT, name
        elif controller in controllers:
            mount, file = MOUNT / controller, old_name
        else:
            continue
        group = Path(path)
        for above in (group, *group.parents):
            yield mount / str(above).lstrip("/") / file
        yield mount / file


def _kill_counters() -> Iterator[str]:
    """Yield the files that may count killed processes, the best one first."""
    for controllers, path in _own_groups():
        if controllers == ["memory"]:
            yield f"{MOUNT}/memory{path}/memory.oom_control"
        elif not controllers:
            yield f"{MOUNT}{path}/memory.events.local"  # without the groups below this one
    yield VMSTAT


def _number(path: Path) -> int:
    """Return the number in a file; 0 if there is none, as in ``max``."""
    words = file_words(path)
    return int(words[0]) if words and words[0].isdigit() else 0


def _quota(path: Path) -> tuple[int, int]:
    """Return the CPU time that may be used in a period of time, and the period; 0 if it is not limited."""
    if path.name == "cpu.max":
        words = file_words(path)
        return (int(words[0]), int(words[1])) if len(words) == 2 and words[0].isdigit() else (0, 0)
    return _number(path), _number(path.with_name("cpu.cfs_period_us"))


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - for each bot, and that is quicker
            return file.read()
    except OSError:
        return b""
