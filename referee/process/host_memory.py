"""The number of processes that the kernel has killed because memory ran out.

It counts for this host, or for the part of it that a batch system or a container gives this process.  The
kernel kills the process that uses most memory, often a bot, though the bot may be far within its own limit.
Bots without a control group of their own are in that of the referee, whose counter is read; where no group
counts, the host's own counter is read, which includes the processes of other users.
"""

from collections.abc import Iterator

GROUPS = "/proc/self/cgroup"
FIRST, SECOND = "/sys/fs/cgroup/memory", "/sys/fs/cgroup"
"""Mount points of the memory controller of version 1 and of control groups of version 2."""
VMSTAT = "/proc/vmstat"
NAME = b"\noom_kill "
"""mm/vmstat.c, mm/memcontrol.c"""


def killed_for_memory() -> int:
    """Return the number of processes killed so far, from an arbitrary start; 0 where none are counted."""
    for place in _places():
        _, _, after = _text(place).partition(NAME)
        if after:
            return int(after.split(maxsplit=1)[0])
    return 0


def _places() -> Iterator[str]:
    for line in _text(GROUPS).decode("utf-8", "surrogateescape").splitlines():
        _, kinds, path = line.split(":", 2)
        if kinds == "memory":
            yield f"{FIRST}{path}/memory.oom_control"
        elif not kinds:
            yield f"{SECOND}{path}/memory.events.local"  # without the groups below this one
    yield VMSTAT


def _text(path: str) -> bytes:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - for each bot, and that is quicker
            return file.read()
    except OSError:
        return b""
