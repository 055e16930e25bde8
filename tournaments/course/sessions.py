"""Sessions of browsers that are signed in."""

from datetime import datetime, timedelta

from sqlalchemy import delete, insert, select, update

from tournaments.course.credentials import csrf_of, digest_of, new_secret
from tournaments.course.errors import CourseError
from tournaments.course.model import Session
from tournaments.course.schema import account, session
from tournaments.course.transactions import Transactions

LIFETIME = timedelta(days=14)
"""Lifetime after the last use."""
RENEWED_AFTER = timedelta(hours=1)
"""Minimum age of a recorded use before it is renewed, which is a write to the disk."""


class Sessions:
    """Table of sessions.  Changing the password, or disabling the account, ends them."""

    def __init__(self, transactions: Transactions, ending: Transactions) -> None:
        """``ending`` are the same transactions, counted as those that end access."""
        self._transactions = transactions
        self._ending = ending

    def start(self, account_id: int, now: datetime) -> tuple[str, Session]:
        """Start a session; return the secret for the browser, and the session.

        Raises CourseError if there is no such account, or it is disabled.
        """
        secret = new_secret()
        begun = Session(account_id, csrf_of(secret), now, now + LIFETIME)
        with self._transactions.writing() as connection:
            usable = select(account.c.id).where(account.c.id == account_id, account.c.disabled.is_(False))
            if connection.execute(usable).first() is None:
                raise CourseError("this account cannot sign in: ask your lecturer")
            values = {"account_id": account_id, "created_at": now, "expires_at": begun.expires_at}
            connection.execute(insert(session).values(digest=digest_of(secret), **values))
        return secret, begun

    def find(self, secret: str, now: datetime) -> Session | None:
        """Return the session of a secret and renew it; None if it has ended or never existed."""
        mine = (session.c.digest == digest_of(secret)) & (session.c.expires_at > now)
        with self._transactions.reading() as connection:
            row = connection.execute(select(session).where(mine)).one_or_none()
        if row is None:
            return None
        expires_at = row.expires_at
        if now + LIFETIME - expires_at > RENEWED_AFTER:
            expires_at = now + LIFETIME
            with self._transactions.writing() as connection:  # it may have been ended in the meantime
                connection.execute(update(session).where(mine).values(expires_at=expires_at))
        return Session(row.account_id, csrf_of(secret), row.created_at, expires_at)

    def end(self, secret: str) -> None:
        """End the session of a browser."""
        with self._ending.writing() as connection:
            connection.execute(delete(session).where(session.c.digest == digest_of(secret)))

    def end_all(self, account_id: int) -> None:
        """End all sessions of an account."""
        with self._ending.writing() as connection:
            connection.execute(delete(session).where(session.c.account_id == account_id))

    def purge(self, now: datetime) -> None:
        """Delete expired sessions."""
        with self._transactions.writing() as connection:
            connection.execute(delete(session).where(session.c.expires_at <= now))
