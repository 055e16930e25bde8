"""Short-lived cache of sessions, which every request for a page and every open page needs.

Entries become invalid as soon as this process writes to accounts, teams or sessions.  Writes of another
process (`kalarena admin`) take effect after RECOGNIZED_FOR at most.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from tournaments.course.course import Course
from tournaments.course.credentials import digest_of
from tournaments.course.model import Account, Session
from tournaments.web.http.routing import in_thread

RECOGNIZED_FOR = timedelta(seconds=30)
"""Lifetime of an entry: a reader opens several pages in that time."""


MOST_RECOGNIZED = 2_000
"""Most browsers in the cache; the oldest entries are removed first."""


@dataclass(frozen=True)
class _Known:
    writes: int
    at: datetime
    session: Session
    account: Account


class SessionCache:
    """Cache of sessions and their accounts, for the tasks of one event loop."""

    def __init__(self, course: Course, now: Callable[[], datetime]) -> None:
        """``now`` is the clock by which sessions expire."""
        self._course = course
        self._now = now
        self._known: OrderedDict[str, _Known] = OrderedDict()

    async def find(self, secret: str) -> tuple[Session, Account] | None:
        """Return the session of a browser's secret and its account; None if it is over or may not be used."""
        digest = digest_of(secret)
        known = self._fresh(digest)
        if known is not None:
            return known.session, known.account
        self._known.pop(digest, None)
        # Taken before the read: a write during the read makes the entry invalid.
        writes, at = self._course.writes_of_people, self._now()
        found = await in_thread(self._read, secret)
        if found is not None:  # invalid secrets are not cached: there is no end to them
            self._known[digest] = _Known(writes, at, *found)
            if len(self._known) > MOST_RECOGNIZED:
                self._known.popitem(last=False)
        return found

    def _fresh(self, digest: str) -> _Known | None:
        known = self._known.get(digest)
        if known is None or known.writes != self._course.writes_of_people:
            return None
        now = self._now()
        is_young = timedelta(0) <= now - known.at < RECOGNIZED_FOR and now < known.session.expires_at
        return known if is_young else None

    def _read(self, secret: str) -> tuple[Session, Account] | None:
        with self._course.reading():
            session = self._course.sessions.find(secret, self._now())
            account = session and self._course.accounts.get(session.account_id)
        return (session, account) if session and account and not account.disabled else None
