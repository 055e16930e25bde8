"""Where pages do what blocks."""

from collections.abc import Callable
from functools import partial
from typing import ParamSpec, TypeVar

import trio

P = ParamSpec("P")
T = TypeVar("T")

MOST_THREADS = 8
"""Of pages, at a time.  Reading a database is mostly Python, of which one thread runs at a time: more of them
hinder one another and the event loop, and each would want a connection to the database.  What waits for a
disk or another writer has the rest."""

_LIMITER: trio.lowlevel.RunVar[trio.CapacityLimiter] = trio.lowlevel.RunVar("threads of pages")


async def in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do something that blocks where it does not hold up everybody."""
    return await trio.to_thread.run_sync(partial(work, *args, **kwargs), limiter=_limiter())


def _limiter() -> trio.CapacityLimiter:
    """That of this event loop."""
    try:
        return _LIMITER.get()
    except LookupError:
        made = trio.CapacityLimiter(MOST_THREADS)
        _LIMITER.set(made)
        return made
