"""A guard process that ends the sandboxes of a referee that was killed while it made them.

bubblewrap asks the kernel to end it with its parent, and its first process with it, but each of them some
milliseconds after its start: a referee that is killed before that leaves a sandbox behind, idle or with its
bot.  (bubblewrap 0.8.0: of 300 parents that were killed within 8 ms of its start, 169 left one.)  A process
that confines bots therefore has another one beside it, a guard, which does nothing until that process is gone
and then kills each sandbox with its mark.  The mark takes the place of the program's name in bubblewrap's
command line.  Bots can see the mark as well; every process that has it as its name is killed, and no other.

This file is also the guard's program, and imports little for that reason.
"""

import os
import signal
import sys
import time

END_LIMIT_S = 10.0
"""Seconds to keep killing; a sandbox that is not gone then is stuck in the kernel."""
LOOK_S = 0.005
LOOKS = 3
"""Number of scans in a row that must find no process.  One scan can miss a process: its parent was there when
the processes were listed, and had ended when it was examined, but had started this one in between.
bubblewrap has two generations."""
DEAF_TO = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
"""Signals that request a process's end, blocked in the guard, which ends by itself when it is not needed."""
MARK_BYTES = 8
"""Random bytes in a mark: enough that no other process has it by accident."""

_PROC = "/proc"


class SandboxReaper:
    """Handle of this process's guard."""

    def __init__(self) -> None:
        """Start the guard process.  Raises OSError."""
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
                setsigmask=DEAF_TO,
            )
        except OSError:
            os.close(self._writing)
            raise
        finally:
            os.close(reading)

    def watches(self) -> bool:
        """Return True if the guard is alive and is a child of this process.

        In a process that was forked from the guard's owner this is False.
        """
        if self.owner != os.getpid():
            return False
        try:
            return os.waitpid(self.pid, os.WNOHANG) == (0, 0)
        except ChildProcessError:
            return False

    def let_go(self) -> None:
        """Close this process's end of the guard's pipe."""
        os.close(self._writing)


_guard: SandboxReaper | None = None


def mark() -> str:
    """Return the mark of this process's sandboxes.  Starts the guard if there is none.  Raises OSError."""
    global _guard  # one for each process
    if _guard is None or not _guard.watches():
        if _guard is not None:
            _guard.let_go()
        _guard = SandboxReaper()
    return _guard.mark


def reaper_pid() -> int | None:
    """Return the process number of this process's guard, or None."""
    return _guard.pid if _guard is not None and _guard.owner == os.getpid() else None


def end_all(marked: str) -> None:
    """Kill all processes with this mark until none is left, or for END_LIMIT_S."""
    until = time.monotonic() + END_LIMIT_S
    looks = LOOKS
    while looks and time.monotonic() < until:
        found = _bearers(marked)
        looks = LOOKS if found else looks - 1
        for pid in found:
            _kill(pid, marked)
        time.sleep(LOOK_S)


def _bearers(marked: str) -> list[int]:
    return [int(name) for name in os.listdir(_PROC) if name.isdigit() and _bears(name, marked)]  # noqa: PTH208


def _bears(name: str, marked: str) -> bool:
    expected = marked.encode() + b"\0"
    try:
        descriptor = os.open(f"{_PROC}/{name}/cmdline", os.O_RDONLY)
    except OSError:  # it has ended
        return False
    try:
        return os.read(descriptor, len(expected)) == expected
    except OSError:
        return False
    finally:
        os.close(descriptor)


def _kill(pid: int, marked: str) -> None:
    """Kill this process if it still has the mark."""
    try:
        held = os.pidfd_open(pid)
    except OSError:
        return
    try:
        if _bears(str(pid), marked):
            signal.pidfd_send_signal(held, signal.SIGKILL)
    except OSError:
        pass
    finally:
        os.close(held)


def main() -> None:
    """Wait for the end of standard input, then kill the processes with the mark."""
    os.chdir("/")  # so that no directory or file system is kept in use
    while os.read(0, 1):
        pass
    end_all(sys.argv[1])


if __name__ == "__main__":
    main()
