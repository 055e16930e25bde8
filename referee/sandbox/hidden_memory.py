"""An upper bound of a confined bot's kernel memory that is not in the figures of its processes.

The size of the bot's files is bounded, but not their number, and the data waiting in sockets is bounded only
for each socket.  Both are read from outside, through /proc/PID of one of its processes.
"""

import os
from functools import lru_cache
from pathlib import Path

from referee.sandbox.visible_files import SCRATCH

FILE_BYTES = 1228
"""Bytes of an empty file of a tmpfs: measured as 1.2 KiB."""
FREE_FILES = 2000
"""Number of files that are not counted, for a bot that unpacks something."""
SOCKET_BYTES = 212_992
"""Bytes that can wait in a socket whose buffers have their usual size (net.core.wmem_default of Linux, which
is read, too); the filter of system calls keeps bots from changing the size."""
STREAM_BYTES = 4 << 20
"""Bytes that can wait in a TCP connection (the maximum of net.ipv4.tcp_wmem)."""
FREE_SOCKETS = 16
"""Number of sockets that are not counted: runtimes wake themselves up with a few."""


def hidden_bytes(pid: int) -> int:
    """Return the upper bound, in bytes; 0 where nothing can be read.

    The process ``pid`` must be in namespaces of its own: otherwise this would count the whole machine's files
    and sockets.
    """
    root = Path("/proc", str(pid))
    total = 0
    for path in (SCRATCH, "/tmp", "/dev/shm") if _has_own_root(root) else ():
        try:
            found = os.statvfs(f"{root}/root{path}")
        except OSError:
            break  # the sandbox's first directory, the scratch one, is not mounted yet
        total += max(0, found.f_files - found.f_ffree - FREE_FILES) * FILE_BYTES
    counts = _socket_counts(root)
    total += max(0, counts.get("sockets", 0) - FREE_SOCKETS) * _socket_bytes()
    return total + (counts.get("TCP", 0) + counts.get("TCP6", 0)) * STREAM_BYTES


def _has_own_root(process: Path) -> bool:
    """Return True if the sandbox is far enough to have a file system of its own."""
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
    """Return the number of sockets in a process's network namespace: all (``sockets``), and by kind.

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
