"""Routes and their access rules.  Every route declares one, and a test opens all of them in every role."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import ParamSpec, TypeVar

import trio
from starlette.requests import Request
from starlette.responses import Response
from trio.lowlevel import RunVar

P = ParamSpec("P")
T = TypeVar("T")

Handler = Callable[[Request], Awaitable[Response]]
LARGEST_NUMBER = 2**31 - 1
"""Largest number accepted in addresses and queries: the largest id that both databases take."""


class Access(StrEnum):
    """Users that a route admits.  The handler checks their permissions on the objects of a page."""

    EVERYBODY = "everybody"
    """Also visitors, whatever the course's settings are: signing in, assets, health."""
    PUBLIC = "public"
    """Visitors if the lecturer made the standings public; else those who are signed in."""
    PLAY = "play"
    """Those who may play casual games, by the lecturer's setting ``play_for``."""
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
    embedded: bool = False
    """True for a page that the sites in ``embed_origins`` can frame, and for its stream.

    Every user counts as a visitor there: the contents of a frame do not depend on its reader's account."""
    body_limit: int = 65_536
    """Most bytes of a request's body; routes for uploads allow more."""
    is_upload: bool = False
    """True for uploads, whose number is limited before a body is received: a form is held in memory."""


MOST_THREADS = 8
"""Most threads of pages at a time.  Reading a database is mostly Python, of which one thread runs at a time:
more threads hinder one another and the event loop, and each needs a connection to the database.  Trio's other
threads are for work that waits for a disk or another writer."""


_LIMITER: RunVar[trio.CapacityLimiter] = RunVar("threads of pages")


async def in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a blocking call in a thread, where it does not hold up the event loop."""
    limiter = limiter_of_loop(_LIMITER, MOST_THREADS)
    return await trio.to_thread.run_sync(partial(work, *args, **kwargs), limiter=limiter)


def limiter_of_loop(variable: RunVar[trio.CapacityLimiter], most: int) -> trio.CapacityLimiter:
    """Return the limiter of this event loop in a variable, which is made at its first use."""
    try:
        return variable.get()
    except LookupError:
        variable.set(trio.CapacityLimiter(most))
        return variable.get()
