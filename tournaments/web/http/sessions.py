"""Sessions of browsers: signed cookies, and a short-lived cache of sessions with their accounts.

Every request for a page and every open page needs the session.  Entries of the cache become invalid as soon
as this process writes to accounts, teams or sessions.  Writes of another process (`kalarena admin`) take
effect after MAX_AGE at most.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

from itsdangerous import BadSignature, URLSafeTimedSerializer
from starlette.responses import Response

from tournaments.course.course import Course
from tournaments.course.model import Account, Session
from tournaments.course.people.credentials import digest_of
from tournaments.server.cache import SingleFlightCache
from tournaments.web.http.routing import in_thread

DAY_S = 86_400
MAX_AGE = timedelta(seconds=30)
"""Lifetime of a session in the cache: a reader opens several pages in that time."""
MOST_SESSIONS = 2_000
"""Maximum number of sessions in the cache."""


@dataclass(frozen=True)
class Kind:
    """Name and lifetime of a cookie."""

    name: str
    lasts_s: int


class Cookie(Enum):
    """The cookies of this site."""

    SESSION = Kind("session", 14 * DAY_S)
    """The secret of a session; it lasts as long as ``Sessions`` keeps it."""
    FORM = Kind("form", DAY_S)
    """The CSRF text of forms before there is a session."""
    NOTE = Kind("note", 60)
    """A sentence for the page after a redirection."""

    PLAYER = Kind("player", 30 * DAY_S)
    """Secret of a visitor who plays casual games: the seats in these are the visitor's."""
    BROWSER = Kind("browser", 180 * DAY_S)
    """The account that signed in last with this browser, and a nonce: others cannot lock it out."""


class Cookies:
    """Reads and writes signed cookies, with HttpOnly and SameSite=Lax."""

    def __init__(self, key: bytes, secure: bool) -> None:
        self._key = key
        self._secure = secure

    def name(self, cookie: Cookie) -> str:
        """Return the full name; browsers accept ``__Host-`` from this very site over TLS only."""
        return f"__Host-kalarena-{cookie.value.name}" if self._secure else f"kalarena-{cookie.value.name}"

    def read(self, sent: Mapping[str, str], cookie: Cookie) -> str | None:
        """Return the value of a cookie; None if it is missing, too old or not signed by this site."""
        text = sent.get(self.name(cookie))
        if text is None:
            return None
        try:
            value, signed_at = self._serializer(cookie).loads(text, return_timestamp=True)
        except BadSignature:
            return None
        # Not by ``max_age``, which also refuses cookies that are newer than a clock that was put back.
        is_old = time.time() - signed_at.timestamp() > cookie.value.lasts_s
        return value if isinstance(value, str) and not is_old else None

    def write(self, response: Response, cookie: Cookie, value: str) -> None:
        """Set a cookie in a response."""
        response.set_cookie(
            self.name(cookie),
            str(self._serializer(cookie).dumps(value)),
            max_age=cookie.value.lasts_s,
            path="/",
            secure=self._secure,
            httponly=True,
            samesite="lax",
        )

    def clear(self, response: Response, cookie: Cookie) -> None:
        """Delete a cookie in a response."""
        response.delete_cookie(
            self.name(cookie), path="/", secure=self._secure, httponly=True, samesite="lax"
        )

    def _serializer(self, cookie: Cookie) -> URLSafeTimedSerializer:
        return URLSafeTimedSerializer(self._key, salt=f"kalarena {cookie.value.name}")


@dataclass(frozen=True)
class _Entry:
    session: Session
    account: Account
    writes: int
    """Number of writes to accounts, teams and sessions before the read."""
    at: datetime


class SessionCache:
    """Cache of sessions and their accounts, for the tasks of one event loop."""

    def __init__(self, course: Course, now: Callable[[], datetime], most: int = MOST_SESSIONS) -> None:
        """``now`` is the clock by which sessions expire."""
        self._course = course
        self._now = now
        self._cache: SingleFlightCache[str, _Entry | None] = SingleFlightCache(most)

    async def get(self, secret: str) -> tuple[Session, Account] | None:
        """Return the session of a browser's secret and its account; None if it is over or may not be used."""
        entry = await self._cache.get(digest_of(secret), lambda: self._entry(secret), self._is_fresh)
        return None if entry is None else (entry.session, entry.account)

    async def _entry(self, secret: str) -> _Entry | None:
        # Both are taken before the read: a write during the read makes the entry invalid.
        writes, at = self._course.writes_of_people, self._now()
        found = await in_thread(self._read, secret)
        return None if found is None else _Entry(*found, writes, at)

    def _is_fresh(self, entry: _Entry | None) -> bool:
        """Return True if an entry is valid.  Invalid secrets are not kept: there is no end to them."""
        if entry is None or entry.writes != self._course.writes_of_people:
            return False
        now = self._now()
        return timedelta(0) <= now - entry.at < MAX_AGE and now < entry.session.expires_at

    def _read(self, secret: str) -> tuple[Session, Account] | None:
        with self._course.reading():
            session = self._course.sessions.find(secret, self._now())
            account = session and self._course.accounts.get(session.account_id)
        return (session, account) if session and account and not account.disabled else None
