"""Routes and their access rules.  Every route declares one, and a test opens all of them in every role."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import trio

if TYPE_CHECKING:
    from collections.abc import Callable

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum

from starlette.requests import Request
from starlette.responses import Response

Handler = Callable[[Request], Awaitable[Response]]


class Access(StrEnum):
    """Users that a route admits.  The handler checks their permissions on the objects of a page."""

    EVERYBODY = "everybody"
    """Also visitors, whatever the course's settings are: signing in, assets, health."""
    PUBLIC = "public"
    """Visitors if the lecturer made the standings public; else those who are signed in."""
    SIGNED_IN = "signed in"
    STUDENT = "student"
    """Students who have a team."""
    LECTURER = "lecturer"
    """Lecturers and admins."""
    ADMIN = "admin"


@dataclass(frozen=True)
class Route:
    """An address, its handler, and its access rule."""

    method: str
    """GET or POST; GET answers HEAD, too."""
    path: str
    """Path in Starlette's syntax, such as ``/bots/{team:int}``."""
    handler: Handler
    access: Access
    name: str
    """Unique; ``url_for(name, ...)`` in templates."""
    api: bool = False
    """Part of the HTTP API: authenticated by a token alone, answers in JSON, needs no CSRF text."""
    body_limit: int = 65_536
    """Most bytes of a request's body; routes for uploads allow more."""


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
