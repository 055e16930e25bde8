"""Who is signed in, remembered for a moment: every page asks for it, and so does every page that is open.

What is remembered is forgotten as soon as this process writes anything of accounts, teams or sessions.  What
another process writes (`kalarena admin`) counts RECOGNIZED_FOR later at most.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from tournaments.course.course import Course
from tournaments.course.credentials import digest_of
from tournaments.course.model import Account, Session
from tournaments.web.threads import in_thread

RECOGNIZED_FOR = timedelta(seconds=30)
"""Somebody who reads looks at several pages in that time."""
MOST_RECOGNIZED = 2_000
"""Browsers; those that asked first are forgotten."""


@dataclass(frozen=True)
class _Known:
    writes: int
    at: datetime
    session: Session
    account: Account


class Recognized:
    """See above.  For the tasks of one event loop."""

    def __init__(self, course: Course, now: Callable[[], datetime]) -> None:
        """``now`` tells the time that sessions end by."""
        self._course = course
        self._now = now
        self._known: OrderedDict[str, _Known] = OrderedDict()

    async def find(self, secret: str) -> tuple[Session, Account] | None:
        """The session of a browser's secret, and whose it is; None if it is over or may not be used."""
        digest = digest_of(secret)
        known = self._fresh(digest)
        if known is not None:
            return known.session, known.account
        self._known.pop(digest, None)
        # Looked at before it is read: what is written then makes it old.
        writes, at = self._course.writes_of_people, self._now()
        found = await in_thread(self._read, secret)
        if found is not None:  # what is no session is not remembered: there is no end to it
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
