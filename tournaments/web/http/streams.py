"""Count of the open event streams, with limits in all and for each viewer."""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import trio

MOST_STREAMS = 1_000
"""Most streams in all; 200 students with a few pages each have fewer, as hidden pages have none."""


MOST_OF_ACCOUNT = 12
"""Most streams of an account: a browser has at most 6 to one server (HTTP/1.1); people have two browsers."""


MOST_OF_ADDRESS = 250
"""Most streams of visitors from one address; a class may share one."""


VISITORS_SHARE = 0.5
"""Share of all streams for visitors: however many their addresses, they do not lock out signed-in users."""


async def always() -> bool:
    """Return True, for a viewer who may see a stream as long as it lasts."""
    await trio.lowlevel.checkpoint()
    return True


@dataclass(frozen=True)
class Viewer:
    """The account or visitor that a stream is for."""

    name: str
    most: int
    """Most streams at a time."""
    is_visitor: bool = False
    """True if the viewer is not signed in."""
    may_still_see: Callable[[], Awaitable[bool]] = field(default=always, compare=False)
    """Checks the permission again, which may have ended since the stream began."""


class Streams:
    """All streams that are open."""

    def __init__(self, closing: trio.Event, most: int = MOST_STREAMS) -> None:
        """``closing`` is set when the server shuts down, which ends all streams."""
        self.closing = closing
        self.most = most
        self._open: Counter[str] = Counter()
        self._visitors = 0

    @property
    def number(self) -> int:
        """Number of open streams."""
        return self._open.total()

    def has_room(self, viewer: Viewer) -> bool:
        """Return True if the viewer may open one more stream."""
        if viewer.is_visitor and self._visitors >= VISITORS_SHARE * self.most:
            return False
        return self.number < self.most and self._open[viewer.name] < viewer.most

    @contextmanager
    def opened(self, viewer: Viewer) -> Iterator[None]:
        """Count one more stream during the block; call ``has_room`` first, with no checkpoint in between."""
        self._open[viewer.name] += 1
        self._visitors += viewer.is_visitor
        try:
            yield
        finally:
            self._visitors -= viewer.is_visitor
            self._open[viewer.name] -= 1
            if not self._open[viewer.name]:
                del self._open[viewer.name]
