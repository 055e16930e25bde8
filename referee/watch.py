"""Waiting for many descriptors at once, from Trio, at the price of one.

All descriptors of a game sit in one selector (epoll, kqueue), which has a descriptor of its own, and
Trio waits for that one.  Before a task is parked, the selector is asked directly for a moment: bots
that answer at once then cost no trip through the event loop.
"""

import selectors

import trio

BRIEF_WAIT_S = 0.001
"""How long a wait may hold up the event loop before it is parked: the selector's own resolution.  Each
game runs in a worker process whose loop has nothing else to do."""
BRIEF_WAITS_IN_A_ROW = 64
"""After this many waits that were not parked, other tasks get their turn and cancellation is noticed."""


class Watch:
    """A set of descriptors to wait for; each has a tag that tells what it is."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._unparked = 0

    def add(self, descriptor: int, tag: tuple[int, str]) -> None:
        """Wait for this descriptor to become readable, too."""
        self._selector.register(descriptor, selectors.EVENT_READ, tag)

    def remove(self, descriptor: int) -> None:
        """Stop waiting for it; it need not be there."""
        try:
            self._selector.unregister(descriptor)
        except KeyError:
            return

    async def ready(self, timeout_s: float) -> list[tuple[int, str]]:
        """The tags of readable descriptors; none if the time passed first."""
        found = self._selector.select(min(max(timeout_s, 0.0), BRIEF_WAIT_S))
        if found:
            self._unparked += 1
            if self._unparked >= BRIEF_WAITS_IN_A_ROW:
                self._unparked = 0
                await trio.lowlevel.checkpoint()
            return [key.data for key, _ in found]
        self._unparked = 0
        with trio.move_on_after(max(timeout_s - BRIEF_WAIT_S, 0.0)):
            await trio.lowlevel.wait_readable(self._selector)
        return [key.data for key, _ in self._selector.select(0)]

    def close(self) -> None:
        """Give the selector back."""
        self._selector.close()
