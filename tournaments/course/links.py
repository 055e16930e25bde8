"""One-time links, with which people choose a password."""

from datetime import datetime, timedelta

from sqlalchemy import delete, insert, select, update
from sqlalchemy.sql.elements import ColumnElement

from tournaments.course.accounts import account_of, keep_password
from tournaments.course.credentials import digest_of, new_secret
from tournaments.course.errors import CourseError
from tournaments.course.model import Account, LinkPurpose
from tournaments.course.passwords import Passwords
from tournaments.course.schema import account, link, token
from tournaments.course.transactions import Transactions

VALID_DAYS = 30
"""Days of validity: an invitation is sent before a term begins, and used in its first weeks."""
VOID = "this link was used already, or is too old: ask your lecturer for a new one"


class Links:
    """Table of links; an account has at most one, the newest."""

    def __init__(self, transactions: Transactions, passwords: Passwords) -> None:
        self._transactions = transactions
        self._passwords = passwords

    def make(self, account_id: int, purpose: LinkPurpose, now: datetime, days: int = VALID_DAYS) -> str:
        """Make a new link and return its secret; an earlier link of the account becomes void.

        Raises CourseError if there is no such account, or it is disabled.
        """
        secret = new_secret()
        with self._transactions.writing() as connection:
            usable = select(account.c.id).where(account.c.id == account_id, account.c.disabled.is_(False))
            if connection.execute(usable).first() is None:
                raise CourseError(f"there is no account {account_id}, or it is disabled: no link can be made")
            connection.execute(delete(link).where(link.c.account_id == account_id))
            connection.execute(
                insert(link).values(
                    digest=digest_of(secret),
                    account_id=account_id,
                    purpose=purpose.value,
                    created_at=now,
                    expires_at=now + timedelta(days=days),
                )
            )
        return secret

    def find(self, secret: str, now: datetime) -> tuple[Account, LinkPurpose] | None:
        """Return the account and the purpose of a link; None if it is void."""
        query = select(account, link.c.purpose).join(link).where(_valid(secret, now))
        with self._transactions.reading() as connection:
            row = connection.execute(query).one_or_none()
            return None if row is None else (account_of(row), LinkPurpose(row.purpose))

    def use(self, secret: str, password: str, now: datetime) -> Account:
        """Set the password with a link.  Of two simultaneous uses of a link one succeeds.

        Sessions end; after a reset, tokens are revoked, too.

        Raises CourseError if the link is void, or the password too short or too long, which leaves it valid.
        """
        if self.find(secret, now) is None:  # before the costly hash
            raise CourseError(VOID)
        kept = self._passwords.hash(password)
        with self._transactions.writing() as connection:
            found = self.find(secret, now)
            if found is None:
                raise CourseError(VOID)
            if found[1] is LinkPurpose.RESET:
                # The password may not be all that was lost: tokens made with it are revoked.
                mine = token.c.account_id == found[0].id
                connection.execute(update(token).where(mine).values(revoked=True))
            return keep_password(connection, found[0].id, kept)

    def purge(self, now: datetime) -> None:
        """Delete expired links."""
        with self._transactions.writing() as connection:
            connection.execute(delete(link).where(link.c.expires_at <= now))


def _valid(secret: str, now: datetime) -> ColumnElement[bool]:
    return (link.c.digest == digest_of(secret)) & (link.c.expires_at > now)
