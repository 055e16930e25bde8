"""Readiness of many descriptors at once, for one Trio task.

All descriptors of a game are in one selector (epoll, kqueue).  The selector has a descriptor of its own, and
Trio waits for that one.  Before a task is parked, the selector is polled directly for a moment: bots that
answer at once then cost no trip through the event loop.
"""

import os
import select
import selectors
import sys
from typing import Protocol

import trio

from referee.errors import RefereeError

BRIEF_WAIT_S = 0.001
"""Seconds that a poll may block the event loop of a process that does nothing but play one game: the
selector's own resolution."""
YIELDS = 4
"""Number of polls with a mere yield of the CPU before ``poll`` sleeps.  Where the bots share a core with the
referee, a bot that answers at once has then answered.  Measured: a tenth of the time and CPU of a move less;
more yields gain nothing."""
POLLS_PER_CHECKPOINT = 64
"""Number of polls after which other tasks run, and cancellation is noticed; in a shared loop, one."""


_READ = getattr(select, "EPOLLIN", 0)


class _Selector(Protocol):
    """Interface of ``select.epoll`` on Linux: the selectors module would cost 2 us more for each line."""

    def register(self, fd: int, eventmask: int = ...) -> None: ...
    def unregister(self, fd: int) -> None: ...
    def poll(self, timeout: float = ...) -> list[tuple[int, int]]: ...
    def fileno(self) -> int: ...
    def close(self) -> None: ...


class _PortableSelector:
    """Implementation for systems without epoll."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()

    def register(self, fd: int, eventmask: int = 0) -> None:
        self._selector.register(fd, selectors.EVENT_READ)

    def unregister(self, fd: int) -> None:
        self._selector.unregister(fd)

    def poll(self, timeout: float = 0.0) -> list[tuple[int, int]]:
        return [(key.fd, mask) for key, mask in self._selector.select(timeout)]

    def fileno(self) -> int:
        return self._selector.fileno()

    def close(self) -> None:
        self._selector.close()


class Poller:
    """A set of descriptors to wait for, each with a tag that identifies it.

    With ``owns_loop`` the event loop has nothing else to do, and ``poll`` may block it for a moment.
    """

    def __init__(self, *, owns_loop: bool = True) -> None:
        self._owns_loop = owns_loop
        try:
            self._selector: _Selector = select.epoll() if sys.platform == "linux" else _PortableSelector()
        except OSError as error:  # out of descriptors
            raise RefereeError(f"could not watch the bots: {error}") from error
        self._tags: dict[int, tuple[int, str]] = {}
        self._polls = 0

    def add(self, descriptor: int | None, tag: tuple[int, str]) -> None:
        """Add a descriptor, if there is one, to wait until it is readable."""
        if descriptor is not None:
            self._selector.register(descriptor, _READ)
            self._tags[descriptor] = tag

    def remove(self, descriptor: int | None) -> None:
        """Remove a descriptor; it need not be in the set."""
        if descriptor is not None and self._tags.pop(descriptor, None) is not None:
            self._selector.unregister(descriptor)

    def poll(self) -> list[tuple[int, str]]:
        """Return the tags of readable descriptors, after at most BRIEF_WAIT_S; the task is not parked.

        In a loop that is shared this does not wait at all.
        """
        if not self._owns_loop:
            return self.poll_once()
        poll = self._selector.poll
        for _ in range(YIELDS):
            found = poll(0.0)
            if found:
                break
            os.sched_yield()
        else:
            found = poll(BRIEF_WAIT_S)
        self._polls += 1
        tags = self._tags
        return [tags[descriptor] for descriptor, _ in found]

    def poll_once(self) -> list[tuple[int, str]]:
        """Return the tags of descriptors that are readable now, without a wait or a yield of the CPU."""
        found = self._selector.poll(0.0)
        if self._owns_loop:
            self._polls += 1
        elif found:  # else the caller waits, and other tasks run
            self._polls = POLLS_PER_CHECKPOINT
        return [self._tags[descriptor] for descriptor, _ in found]

    @property
    def is_checkpoint_due(self) -> bool:
        """True if ``checkpoint`` must be called before the next poll."""
        return self._polls >= POLLS_PER_CHECKPOINT

    async def checkpoint(self) -> None:
        """Let other tasks run, and take part in cancellation."""
        self._polls = 0
        await trio.lowlevel.checkpoint()

    async def wait(self, timeout_s: float) -> list[tuple[int, str]]:
        """Wait, and return the tags of readable descriptors; empty after a timeout.  Always a checkpoint."""
        self._polls = 0
        with trio.move_on_after(max(timeout_s, 0.0)):
            await trio.lowlevel.wait_readable(self._selector)
        return [self._tags[descriptor] for descriptor, _ in self._selector.poll(0.0)]

    def close(self) -> None:
        """Close the selector."""
        self._selector.close()
