"""Memory that a confined bot makes the kernel hold, and that none of its processes shows.

The size of its files is bounded, but not their number; and what waits in sockets is bounded for each alone.
Both are looked at from outside, through /proc/PID of one of its processes.
"""

import os
from functools import lru_cache
from pathlib import Path

from referee.sandbox import SCRATCH

FILE_BYTES = 1228
"""What an empty file of a tmpfs costs: measured as 1.2 KiB."""
FREE_FILES = 2000
"""So many are not counted: a bot that unpacks something."""
SOCKET_BYTES = 212_992
"""What may wait in a socket whose buffers have their usual size (net.core.wmem_default of Linux, which is
asked for, too); the filter of system calls keeps bots from changing that."""
STREAM_BYTES = 4 << 20
"""The same for TCP (the most of net.ipv4.tcp_wmem)."""
FREE_SOCKETS = 16
"""So many sockets are not counted: runtimes wake themselves up with a few."""


def hidden_bytes(pid: int) -> int:
    """An upper bound of it, in bytes; 0 where it cannot be looked at.

    ``pid`` must be of a process in namespaces of its own: else this would count the whole machine's.
    """
    root = Path("/proc", str(pid))
    total = 0
    for place in (SCRATCH, "/tmp", "/dev/shm") if _has_own_root(root) else ():
        try:
            found = os.statvfs(f"{root}/root{place}")
        except OSError:
            break  # its first directory, the scratch, is not there yet
        total += max(0, found.f_files - found.f_ffree - FREE_FILES) * FILE_BYTES
    counts = _socket_counts(root)
    total += max(0, counts.get("sockets", 0) - FREE_SOCKETS) * _socket_bytes()
    return total + (counts.get("TCP", 0) + counts.get("TCP6", 0)) * STREAM_BYTES


def _has_own_root(process: Path) -> bool:
    """Whether its sandbox is far enough to have a file system of its own."""
    try:
        return not os.path.samefile(process / "root", "/")  # noqa: PTH121
    except OSError:
        return False


@lru_cache(maxsize=1)
def _socket_bytes() -> int:
    try:
        return max(SOCKET_BYTES, int(Path("/proc/sys/net/core/wmem_default").read_text()))
    except (OSError, ValueError):
        return SOCKET_BYTES


def _socket_counts(root: Path) -> dict[str, int]:
    """How many sockets are in use in a process's network namespace: all (``sockets``), and by kind.

    The tables of single sockets (net/tcp and so on) would cost 3 ms each time.
    """
    counts = {}
    for name in ("sockstat", "sockstat6"):
        try:
            lines = (root / "net" / name).read_text().splitlines()
        except OSError:
            continue
        for line in lines:
            kind, *words = line.replace(":", "").split()
            counts[kind] = int(words[1])
    return counts
