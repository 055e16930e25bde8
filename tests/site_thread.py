"""A site on a real socket, in a thread of its own, for tests with a real browser.

Playwright's synchronous interface has an event loop of its own, so that the test cannot have the site's.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import trio

from tests.web_site import World
from tournaments.web.server import listen, serve, url_of

T = TypeVar("T")
LIMIT_S = 30


@dataclass
class RunningSite:
    """What a test may do with it."""

    url: str
    _token: trio.lowlevel.TrioToken

    def do(self, work: Callable[..., T], *args: Any) -> T:
        """Call something in the site's own thread."""
        return trio.from_thread.run_sync(work, *args, trio_token=self._token)


@contextmanager
def running_site(world: World) -> Iterator[RunningSite]:
    """Serve a world until the end of the block, which takes a second at most."""
    sockets = listen("127.0.0.1", 0)
    started = threading.Event()
    tokens: list[trio.lowlevel.TrioToken] = []

    async def main() -> None:
        tokens.append(trio.lowlevel.current_trio_token())
        async with trio.open_nursery() as nursery:
            await nursery.start(serve, world.app, sockets, world.site.closing)
            started.set()

    thread = threading.Thread(target=trio.run, args=(main,))
    thread.start()
    try:
        assert started.wait(LIMIT_S)
        running = RunningSite(url_of(sockets), tokens[0])
        yield running
    finally:
        running.do(world.site.closing.set)
        thread.join(LIMIT_S)
        assert not thread.is_alive(), "the site did not end"
