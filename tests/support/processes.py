"""Processes that tests look for, wait for, and end."""

import contextlib
import os
import select
import signal
from pathlib import Path

GONE_WITHIN_S = 120.0
"""Bound for the end of what somebody who was killed leaves behind: milliseconds where cores are free."""
HEEDING = """
import os, signal, sys
signal.signal(signal.SIGHUP, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Program that runs a command which heeds SIGHUP, also if these tests were started with nohup."""


def descendants(pid: int) -> list[int]:
    """Return all living processes that a process or its children started."""
    found = []
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it ended while we looked
        for thread in Path(f"/proc/{pid}/task").iterdir():
            for child in map(int, (thread / "children").read_text().split()):
                found += [child, *descendants(child)]
    return found


def open_pidfds(pids: list[int]) -> list[int]:
    """Return a descriptor of each process that still lives."""
    opened = []
    for pid in pids:
        try:
            opened.append(os.pidfd_open(pid))
        except ProcessLookupError:
            continue  # ended between the two looks
    return opened


def all_end(pidfds: list[int], within_s: float = GONE_WITHIN_S) -> bool:
    """Return True if all these processes end in time."""
    waiting = set(pidfds)
    poller = select.poll()
    for descriptor in waiting:
        poller.register(descriptor, select.POLLIN)
    while waiting:
        ready = poller.poll(within_s * 1000)
        if not ready:
            return False
        for descriptor, _ in ready:
            poller.unregister(descriptor)
            os.close(descriptor)
            waiting.discard(descriptor)
    return True


def command_lines_with(text: str) -> list[str]:
    """Return the command lines of living processes that contain a text, their arguments joined by spaces."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        except OSError:
            continue
        if text in line:
            found.append(line)
    return found


def living_with(mark: str) -> list[int]:
    """Return the processes that have a text on their command line or in their environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            known = (folder / "cmdline").read_bytes() + (folder / "environ").read_bytes()
        except OSError:
            continue
        if mark.encode() in known and int(folder.name) != os.getpid():
            found.append(int(folder.name))
    return found


def kill_all_with(mark: str) -> None:
    """End the processes that a failed test has left."""
    for pid in living_with(mark):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
