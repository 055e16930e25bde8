"""The site's shared objects, and the context of a request."""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import trio
from starlette.requests import Request

from tournaments.course.audit import Act
from tournaments.course.course import Course
from tournaments.course.model import Account, Session
from tournaments.course.settings import Settings
from tournaments.server.cache import ReadCache, SingleFlightCache
from tournaments.server.service import Service
from tournaments.web.http.errors import NotSignedIn, TooMany
from tournaments.web.http.rate_limits import Limits, RateLimit
from tournaments.web.http.routing import Route, in_thread
from tournaments.web.http.security import Network
from tournaments.web.http.sessions import Cookies, SessionCache
from tournaments.web.http.streams import Streams
from tournaments.web.views.competition_view import VersionEstimates, ViewedCompetitions
from tournaments.web.views.game_caches import LiveBoards, MoveTimes

T = TypeVar("T")

MOST_REPLAYS = 64
"""Most replays in the cache, of about 100 KiB each."""
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

    def __post_init__(self) -> None:
        self.last_settings = Settings()
        """The settings that were read last, for error pages while the database is away."""
        self.cookies = Cookies(self.secret, self.https)
        self.read_cache = ReadCache(self.course)
        self.sessions = SessionCache(self.course, lambda: self.now())
        self.streams = Streams(self.closing)
        self.uploads_under_way: Counter[int] = Counter()
        """Number of uploads that are being received or unpacked, by account."""
        self.live_boards = LiveBoards()
        self.views = ViewedCompetitions()
        self.histories = ViewedCompetitions()
        self.estimates = VersionEstimates()
        self.move_times = MoveTimes()
        self.replays: SingleFlightCache[Hashable, str] = SingleFlightCache(MOST_REPLAYS)

    @property
    def https(self) -> bool:
        """True if users reach the site by TLS, which a proxy in front of it provides."""
        return self.public_url is not None and self.public_url.startswith("https:")

    def check_rate(self, limit: RateLimit, key: Hashable, sentence: str) -> None:
        """Count an action.  Raises TooMany with this sentence if there were too many."""
        wait_s = limit.take(key, self.now().timestamp())
        if wait_s:
            raise TooMany(sentence, wait_s)

    async def settings(self) -> Settings:
        """Return the lecturer's settings, which another process changed a second ago at most."""
        self.last_settings = await self.read_cache.get(self.course.settings.load)
        return self.last_settings


@dataclass
class RequestContext:
    """Context of one request, in ``request.state.context``."""

    site: Site
    settings: Settings
    route: Route
    address: str
    """Address of the client, behind our own proxies."""
    user: Account | None = None
    session: Session | None = None
    session_secret: str | None = None
    form_text: str | None = None
    """CSRF text of forms while there is no session."""
    note: str | None = None
    """A sentence that the redirecting page left for this one."""


def context_of(request: Request) -> RequestContext:
    """Return the context of a request."""
    context: RequestContext = request.state.context
    return context


def site_of(request: Request) -> Site:
    """Return the site of a request."""
    return context_of(request).site


def site_address(request: Request) -> str:
    """Return the public address of the site, without a slash at the end."""
    return site_of(request).public_url or str(request.base_url).rstrip("/")


def settings_of(request: Request) -> Settings:
    """Return the settings as they were when the request came."""
    return context_of(request).settings


def current_user(request: Request) -> Account | None:
    """Return the current account; None for a visitor."""
    return context_of(request).user


def current_team_id(request: Request) -> int | None:
    """Return the team of the current account; None for a visitor or an account without a team."""
    user = current_user(request)
    return None if user is None else user.team_id


def signed_in_user(request: Request) -> Account:
    """Return the current account, on a route for signed-in users.

    Raises:
        NotSignedIn: The user is a visitor.

    """
    user = current_user(request)
    if user is None:
        raise NotSignedIn("Sign in to see this page.")
    return user


async def act(request: Request, work: Callable[[Act], T], action: str, subject: str = "", **detail: Any) -> T:
    """Call ``work`` in a thread, as an action of the current account; see ``Course.act``."""
    site, user = site_of(request), signed_in_user(request)

    def do() -> T:
        with site.course.act(site.now(), user.id, action, subject, **detail) as act:
            return work(act)

    return await in_thread(do)
