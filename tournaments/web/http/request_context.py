"""The site's shared objects, and the context of a request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import trio
from starlette.requests import Request

from tournaments.server.read_cache import ReadCache
from tournaments.web.http.cookies import Cookies
from tournaments.web.http.errors import NotSignedIn
from tournaments.web.http.rate_limits import Limits
from tournaments.web.http.routing import in_thread
from tournaments.web.http.session_cache import SessionCache
from tournaments.web.http.streams import Streams
from tournaments.web.views.competition_view import ViewedCompetitions
from tournaments.web.views.game_caches import LiveBoards, MoveTimes, Replays

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime
    from pathlib import Path

    from starlette.requests import Request

    from tournaments.course.course import Course
    from tournaments.course.model import Account, Session
    from tournaments.course.settings import Settings
    from tournaments.server.service import Service
    from tournaments.web.http.routing import Route
    from tournaments.web.http.security import Network


SETTINGS_S = 1.0
"""Seconds for which settings are cached: each request needs them."""
MOST_HASHES = 2
"""Passwords hashed at a time; each takes 64 MiB and a core for 50 ms."""


@dataclass
class Site:
    """One course's site."""

    course: Course
    service: Service
    now: Callable[[], datetime]
    """Clock with aware times, in UTC."""
    data: Path
    """The data directory."""
    secret: bytes
    """The key that cookies are signed with."""
    routes: Sequence[Route]
    public_url: str | None = None
    """Public address of the site, without a slash at the end; None: the address in each request."""
    trusted_proxies: Sequence[Network] = ()
    limits: Limits = field(default_factory=Limits)
    closing: trio.Event = field(default_factory=trio.Event)
    """Set when the server begins to shut down, which ends streams."""
    hashing: trio.CapacityLimiter = field(default_factory=lambda: trio.CapacityLimiter(MOST_HASHES))
    _settings: tuple[float, Settings] | None = None

    def __post_init__(self) -> None:
        self.cookies = Cookies(self.secret, self.https)
        self.recall = ReadCache(self.course)
        self.recognized = SessionCache(self.course, lambda: self.now())
        self.streams = Streams(self.closing)
        self.boards = LiveBoards()
        self.shows = ViewedCompetitions()
        self.times = MoveTimes()
        self.replays = Replays()

    @property
    def https(self) -> bool:
        """True if users reach the site by TLS, which a proxy in front of it provides."""
        return self.public_url is not None and self.public_url.startswith("https:")

    async def settings(self) -> Settings:
        """Return the lecturer's settings, at most a second old."""
        now = trio.current_time()
        if self._settings is None or not 0 <= now - self._settings[0] < SETTINGS_S:
            self._settings = (now, await in_thread(self.course.settings.load))
        return self._settings[1]

    def forget_settings(self) -> None:
        """Discard the cached settings after a change."""
        self._settings = None


@dataclass
class RequestContext:
    """Context of one request, in ``request.state.visit``."""

    site: Site
    settings: Settings
    route: Route
    address: str
    """Address of the client, behind our own proxies."""
    me: Account | None = None
    session: Session | None = None
    session_secret: str | None = None
    form_text: str | None = None
    """CSRF text of forms while there is no session."""
    note: str | None = None
    """A sentence that the redirecting page left for this one."""


def context_of(request: Request) -> RequestContext:
    """Return the context of a request."""
    visit: RequestContext = request.state.visit
    return visit


def site_of(request: Request) -> Site:
    """Return the site of a request."""
    return context_of(request).site


def settings_of(request: Request) -> Settings:
    """Return the settings as they were when the request came."""
    return context_of(request).settings


def me_of(request: Request) -> Account | None:
    """Return the current account; None for a visitor."""
    return context_of(request).me


def account_of(request: Request) -> Account:
    """Return the current account, on a route for signed-in users.

    Raises:
        NotSignedIn: The user is a visitor.

    """
    me = me_of(request)
    if me is None:
        raise NotSignedIn("Sign in to see this page.")
    return me


async def note(request: Request, action: str, subject: str, **detail: Any) -> None:
    """Add an entry to the journal; ``detail`` must be valid JSON and hold no secrets."""
    site = site_of(request)
    await in_thread(site.course.journal.note, site.now(), account_of(request).id, action, subject, detail)
