"""Whether the kernel has ended processes because there was no memory left: on this host, or in what a batch
system or a container lets us have of it.

It ends the process that has most, often a bot, though that may be far within its own limit.  Bots that have
no control group of their own are in ours, which counts that; where no group does, the host's own count is
taken, which others' processes are in, too.
"""

from collections.abc import Iterator

GROUPS = "/proc/self/cgroup"
FIRST, SECOND = "/sys/fs/cgroup/memory", "/sys/fs/cgroup"
"""Where control groups of either version are mounted."""
VMSTAT = "/proc/vmstat"
NAME = b"\noom_kill "
"""mm/vmstat.c, mm/memcontrol.c"""


def killed_for_memory() -> int:
    """How many there were since whoever counts them began; 0 where nobody does."""
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
            yield f"{SECOND}{path}/memory.events.local"  # without the groups below ours
    yield VMSTAT


def _text(path: str) -> bytes:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - for each bot, and that is quicker
            return file.read()
    except OSError:
        return b""
