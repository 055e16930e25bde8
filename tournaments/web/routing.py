"""Who may open which address.  Every route says it here, and a test walks all of them as everybody."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum

from starlette.requests import Request
from starlette.responses import Response

Handler = Callable[[Request], Awaitable[Response]]


class Access(StrEnum):
    """Whom a route lets in.  What a page then shows, or whose object it is, is the handler's to look at."""

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
    """An address, what answers there, and who may ask."""

    method: str
    """GET or POST; GET answers HEAD, too."""
    path: str
    """As Starlette reads it, such as ``/bots/{team:int}``."""
    handler: Handler
    access: Access
    name: str
    """Unique; ``url_for(name, ...)`` in templates."""
    api: bool = False
    """Part of the HTTP API: authenticated by a token alone, answers in JSON, needs no CSRF text."""
    body_limit: int = 65_536
    """Bytes that a request's body may have; uploads have more."""
