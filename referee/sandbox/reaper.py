"""The sandbox reaper: a process that kills the sandboxes of a referee that was killed while it made them.

bubblewrap sets its parent-death signal, and that of its first process, only some milliseconds after its
start: a referee that is killed before that leaves a sandbox behind, idle or with its bot.  (bubblewrap 0.8.0:
of 300 parents that were killed within 8 ms of its start, 169 left one.)  A process that confines bots
therefore has a reaper beside it, which waits for the end of that process and then kills each sandbox with its
mark.  The mark is a word of the sandbox's command line, from the start of the first program on.  Bots can see
the mark as well.  Every process that has it as a word of its command line is killed, except the reaper.

This file is also the reaper's program, and imports little for that reason.
"""

import os
import signal
import sys
import time

END_LIMIT_S = 10.0
"""Seconds to keep killing; a sandbox that is not gone then is stuck in the kernel."""
SETTLE_S = 0.3
"""Seconds without a marked process after which none is expected.

A child that was forked, and waits for a processor before it executes bubblewrap, has no mark yet: on two busy
cores, three scans in 15 ms missed one.
"""
EMPTY_SCANS = 3
"""Scans without a marked process after which none is expected.

A scan misses a process that starts during it, or that executes a program just then.  It can take longer than
SETTLE_S on a busy host.
"""
SCAN_INTERVAL_S = 0.005
LONGEST_INTERVAL_S = 0.04
"""Longest interval between two scans.  The interval grows while nothing is found: a scan reads all processes
of the host."""
COMMAND_BYTES = 32_768
"""Bytes of a command line in which the mark is searched for.

The words before it are options, scripts, and at most four paths of 4,096 bytes (PATH_MAX,
include/uapi/linux/limits.h).
"""
BLOCKED_SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
"""Signals that request a process's end, blocked in the reaper, which ends by itself."""
MARK_BYTES = 8
"""Random bytes in a mark: enough that no other process has it by accident."""

_PROC = "/proc"


class SandboxReaper:
    """Handle of this process's reaper."""

    def __init__(self) -> None:
        """Start the reaper process.  Raises OSError."""
        self.owner = os.getpid()
        self.mark = f"kalarena-sandbox-{os.urandom(MARK_BYTES).hex()}"
        reading, self._writing = os.pipe()
        """Open until the last process that has it ends: this one, and children that were just forked and have
        not executed their program yet."""
        null = (os.O_RDWR, 0)
        try:
            self.pid = os.posix_spawn(
                sys.executable,
                [sys.executable, "-I", "-S", __file__, self.mark],
                os.environ,
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, reading, 0),
                    (os.POSIX_SPAWN_OPEN, 1, os.devnull, *null),
                    (os.POSIX_SPAWN_OPEN, 2, os.devnull, *null),
                ],
                setsid=True,  # signals to this process's terminal or group must not reach it
                setsigmask=BLOCKED_SIGNALS,
            )
        except OSError:
            os.close(self._writing)
            raise
        finally:
            os.close(reading)

    def is_alive(self) -> bool:
        """Return True if the reaper is alive and is a child of this process.

        The result is False in a process that was forked from the reaper's owner.
        """
        if self.owner != os.getpid():
            return False
        try:
            return os.waitpid(self.pid, os.WNOHANG) == (0, 0)
        except ChildProcessError:
            return False

    def release(self) -> None:
        """Close this process's end of the reaper's pipe."""
        os.close(self._writing)


_reaper: SandboxReaper | None = None


def mark() -> str:
    """Return the mark of this process's sandboxes.  Starts the reaper if there is none.  Raises OSError."""
    global _reaper  # one for each process
    if _reaper is None or not _reaper.is_alive():
        if _reaper is not None:
            _reaper.release()
        _reaper = SandboxReaper()
    return _reaper.mark


def reaper_pid() -> int | None:
    """Return the process number of this process's reaper, or None."""
    return _reaper.pid if _reaper is not None and _reaper.owner == os.getpid() else None


def kill_marked(mark: str) -> None:
    """Kill all processes with this mark, for END_LIMIT_S at most.

    The end is reached when at least EMPTY_SCANS scans, over at least SETTLE_S, have found no such process.
    """
    last_found = time.monotonic()
    ends_at = last_found + END_LIMIT_S
    empty_scans, interval_s = 0, SCAN_INTERVAL_S
    while empty_scans < EMPTY_SCANS or time.monotonic() < last_found + SETTLE_S:
        found = _marked_processes(mark)
        for pid in found:
            _kill(pid, mark)
        empty_scans += 1
        if found:
            last_found, empty_scans, interval_s = time.monotonic(), 0, SCAN_INTERVAL_S
        if time.monotonic() >= ends_at:
            return
        time.sleep(interval_s)
        interval_s = min(2 * interval_s, LONGEST_INTERVAL_S)


def _marked_processes(mark: str) -> list[int]:
    """Return the numbers of the processes with this mark, except this one, which has the mark as well."""
    names = os.listdir(_PROC)  # noqa: PTH208 - pathlib would be another import
    own = str(os.getpid())
    return [int(name) for name in names if name.isdigit() and name != own and _has_mark(name, mark)]


def _has_mark(name: str, mark: str) -> bool:
    try:
        descriptor = os.open(f"{_PROC}/{name}/cmdline", os.O_RDONLY)
    except OSError:  # it has ended
        return False
    try:
        return mark.encode() in os.read(descriptor, COMMAND_BYTES).split(b"\0")
    except OSError:
        return False
    finally:
        os.close(descriptor)


def _kill(pid: int, mark: str) -> None:
    """Kill this process if it still has the mark."""
    try:
        held = os.pidfd_open(pid)
    except OSError:
        return
    try:
        if _has_mark(str(pid), mark):
            signal.pidfd_send_signal(held, signal.SIGKILL)
    except OSError:
        pass
    finally:
        os.close(held)


def main() -> None:
    """Wait for the end of standard input, then kill the processes with the mark."""
    os.chdir("/")  # keeps no other directory or file system in use
    while os.read(0, 1):
        pass
    kill_marked(sys.argv[1])


if __name__ == "__main__":
    main()
