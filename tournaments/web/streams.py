"""How many streams of events are open, and for whom."""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import trio

MOST_STREAMS = 1_000
"""At a time in all; 200 students with a few pages each are fewer, as pages that are hidden have none."""
MOST_OF_ACCOUNT = 12
"""A browser has at most 6 to one server (HTTP/1.1); people have two browsers."""
MOST_OF_ADDRESS = 250
"""Of visitors; a class may come from one address."""
VISITORS_SHARE = 0.5
"""Of all streams: visitors, from however many addresses, do not lock out those who are signed in."""


async def always() -> bool:
    """For a viewer who may see a stream as long as it lasts."""
    await trio.lowlevel.checkpoint()
    return True


@dataclass(frozen=True)
class Viewer:
    """Whoever a stream is for."""

    name: str
    most: int
    """Streams at a time."""
    is_visitor: bool = False
    """Whether it is somebody who is not signed in."""
    may_still_see: Callable[[], Awaitable[bool]] = field(default=always, compare=False)
    """Looks again; what was allowed when the stream began need not be any more."""


class Streams:
    """All streams that are open."""

    def __init__(self, closing: trio.Event, most: int = MOST_STREAMS) -> None:
        """``closing`` is set when the server is to end: then all of them do."""
        self.closing = closing
        self.most = most
        self._open: Counter[str] = Counter()
        self._visitors = 0

    @property
    def number(self) -> int:
        """How many are open."""
        return self._open.total()

    def has_place(self, viewer: Viewer) -> bool:
        """Whether one more may be opened."""
        if viewer.is_visitor and self._visitors >= VISITORS_SHARE * self.most:
            return False
        return self.number < self.most and self._open[viewer.name] < viewer.most

    @contextmanager
    def one_more(self, viewer: Viewer) -> Iterator[None]:
        """Meanwhile one more is open; ask ``has_place`` first, with no checkpoint in between."""
        self._open[viewer.name] += 1
        self._visitors += viewer.is_visitor
        try:
            yield
        finally:
            self._visitors -= viewer.is_visitor
            self._open[viewer.name] -= 1
            if not self._open[viewer.name]:
                del self._open[viewer.name]
