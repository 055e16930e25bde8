"""Threads for the blocking calls of pages."""

from collections.abc import Callable
from functools import partial
from typing import ParamSpec, TypeVar

import trio

P = ParamSpec("P")
T = TypeVar("T")

MOST_THREADS = 8
"""Most threads of pages at a time.  Reading a database is mostly Python, of which one thread runs at a time:
more threads hinder one another and the event loop, and each needs a connection to the database.  Trio's other
threads are for work that waits for a disk or another writer."""

_LIMITER: trio.lowlevel.RunVar[trio.CapacityLimiter] = trio.lowlevel.RunVar("threads of pages")


async def in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a blocking call in a thread, where it does not hold up the event loop."""
    return await trio.to_thread.run_sync(partial(work, *args, **kwargs), limiter=_limiter())


def _limiter() -> trio.CapacityLimiter:
    """Return the limiter of this event loop."""
    try:
        return _LIMITER.get()
    except LookupError:
        made = trio.CapacityLimiter(MOST_THREADS)
        _LIMITER.set(made)
        return made
