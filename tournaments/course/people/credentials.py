"""Credentials other than passwords: sessions of browsers, one-time links and API tokens.

Secrets of sessions, links and tokens are generated here, handed out once, and stored as SHA-256 alone.  They
have 190 random bits and more, so that a digest without salt reveals nothing about them; and since the
database looks up the digest, the time of the lookup reveals nothing about the secret either.
"""

import hashlib
import hmac
import secrets
import string
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, delete, func, insert, or_, select, update

from tournaments.course.model import Account, CourseError, LinkPurpose, Session, Token
from tournaments.course.people.accounts import account_of, delete_unsent_links, end_link, keep_password
from tournaments.course.schema import account, link, mail, session, token
from tournaments.course.texts import person_name
from tournaments.course.transactions import Transactions
from tournaments.database.base import StoreError

SECRET_BYTES = 32
"""Random bytes of the secrets of sessions and links."""
TOKEN_PREFIX = "kal_"
"""Prefix by which people and secret scanners recognize a token of Kalarena."""
FEED_PREFIX = "feed_"
"""Prefix of the tokens of feeds, which are in addresses: they read the feed and can do nothing else."""
TOKEN_CHARACTERS = string.digits + string.ascii_letters
TOKEN_LENGTH = 40
"""Characters after the prefix: 238 bits."""


def new_secret() -> str:
    """Return a secret for a session or a link: letters, digits, ``-`` and ``_``."""
    return secrets.token_urlsafe(SECRET_BYTES)


def new_token(prefix: str = TOKEN_PREFIX) -> str:
    """Return a token for a program: the prefix and 40 letters and digits."""
    return prefix + "".join(secrets.choice(TOKEN_CHARACTERS) for _ in range(TOKEN_LENGTH))


def digest_of(secret: str) -> str:
    """Return the digest that is stored for a secret; any text is accepted, since requests may contain any."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def csrf_of(secret: str) -> str:
    """Return the CSRF token of a session, derived from its secret, so that the database holds neither."""
    return hmac.digest(secret.encode("utf-8", "surrogatepass"), b"csrf", "sha256").hex()


def _is_enabled(connection: Connection, account_id: int) -> bool:
    enabled = select(account.c.id).where(account.c.id == account_id, account.c.disabled.is_(False))
    return connection.execute(enabled).first() is not None


VALID_DAYS = 30
"""Days of validity: an invitation is sent before a term begins, and used in its first weeks."""
VOID = "this link was used already, or is too old: ask your lecturer for a new one"


class Links:
    """Table of links; an account has at most one, the newest."""

    def __init__(
        self,
        transactions: Transactions,
        mail: Callable[[int, LinkPurpose, datetime, datetime], str | None] = lambda *_: None,
    ) -> None:
        """``mail`` is called for a new link, with the moments of its end and of now.

        It returns the secret of a link that goes out by mail, or None for a link that does not.
        """
        self._transactions = transactions
        self._mail = mail

    def make(self, account_id: int, purpose: LinkPurpose, now: datetime, days: int = VALID_DAYS) -> str:
        """Make a new link and return its secret; an earlier link of the account becomes void.

        The link goes out by mail, too, if the course sends mail and the account has an address.  Raises
        CourseError if there is no such account, or it is disabled.
        """
        until = now + timedelta(days=days)
        with self._transactions.writing() as connection:
            if not _is_enabled(connection, account_id):
                raise CourseError(f"there is no account {account_id}, or it is disabled: no link can be made")
            end_link(connection, account_id)
            secret = self._mail(account_id, purpose, until, now) or new_secret()
            connection.execute(
                insert(link).values(
                    digest=digest_of(secret),
                    account_id=account_id,
                    purpose=purpose.value,
                    created_at=now,
                    expires_at=until,
                )
            )
        return secret

    def find(self, secret: str, now: datetime) -> tuple[Account, LinkPurpose] | None:
        """Return the account and the purpose of a link; None if it is void."""
        query = select(account, link.c.purpose).join(link).where(_valid(secret, now))
        with self._transactions.reading() as connection:
            row = connection.execute(query).one_or_none()
            return None if row is None else (account_of(row), LinkPurpose(row.purpose))

    def use_hashed(self, secret: str, kept: str, now: datetime) -> Account:
        """Set the password with a link, given its hash.  Of two simultaneous uses of a link one succeeds.

        Sessions end; after a reset, tokens are revoked, too.  Raises CourseError if the link is void.
        """
        with self._transactions.writing() as connection:
            found = self.find(secret, now)
            if found is None:
                raise CourseError(VOID)
            if found[1] is LinkPurpose.RESET:
                # The password may not be all that was lost: tokens made with it are revoked.
                of_account = token.c.account_id == found[0].id
                connection.execute(update(token).where(of_account).values(revoked=True))
            return keep_password(connection, found[0].id, kept)

    def purge(self, now: datetime) -> None:
        """Delete expired links, and the unsent mails of links that are void."""
        with self._transactions.writing() as connection:
            connection.execute(delete(link).where(link.c.expires_at <= now))
            delete_unsent_links(connection, mail.c.account_id.not_in(select(link.c.account_id)))


def _valid(secret: str, now: datetime) -> ColumnElement[bool]:
    return (link.c.digest == digest_of(secret)) & (link.c.expires_at > now)


MOST = 20
"""Maximum number of unrevoked tokens of an account: one for each machine, and some forgotten ones."""
LONGEST_DAYS = 3660
NOTED_AFTER = timedelta(minutes=1)
"""Minimum interval between recorded uses, each of which is a write to the disk."""


class Tokens:
    """Table of tokens."""

    def __init__(self, transactions: Transactions, using: Transactions) -> None:
        """``using`` are the same transactions, counted as those that record uses."""
        self._transactions = transactions
        self._using = using

    def make(
        self, account_id: int, name: str, now: datetime, days: int | None, prefix: str = TOKEN_PREFIX
    ) -> tuple[str, Token]:
        """Create a token, valid for ``days`` days or without an end; return its secret and the token.

        ``prefix`` is TOKEN_PREFIX, or FEED_PREFIX for a token that only reads a feed.

        The secret cannot be read again.  Raises CourseError if the name or the number of days is invalid,
        there are too many tokens already, or there is no such account.
        """
        name = person_name(name, "token's name")
        if days is not None and not 1 <= days <= LONGEST_DAYS:
            raise CourseError(f"a token is valid for 1 to {LONGEST_DAYS} days, not {days}")
        expires_at = None if days is None else now + timedelta(days=days)
        secret = new_token(prefix)
        with self._transactions.writing() as connection:
            if connection.execute(select(account.c.id).where(account.c.id == account_id)).first() is None:
                raise CourseError(f"there is no account {account_id}")
            valid = (token.c.account_id == account_id) & token.c.revoked.is_(False)
            if connection.execute(select(func.count()).where(valid)).scalar_one() >= MOST:
                raise CourseError(f"an account has at most {MOST} tokens: revoke one of them first")
            values = {"account_id": account_id, "name": name, "created_at": now, "expires_at": expires_at}
            statement = insert(token).values(digest=digest_of(secret), revoked=False, **values)
            row = connection.execute(statement.returning(token)).one()
            return secret, _token_of(row)

    def find(self, secret: str, now: datetime, prefix: str = TOKEN_PREFIX) -> Account | None:
        """Return the account of a token, and record the use if it can be stored.

        Returns None if the token has another prefix, is expired or revoked, or the account is disabled.
        """
        if not secret.startswith(prefix):
            return None
        valid = (
            (token.c.digest == digest_of(secret))
            & token.c.revoked.is_(False)
            & or_(token.c.expires_at.is_(None), token.c.expires_at > now)
        )
        query = select(account, token.c.id.label("token_id"), token.c.used_at).join(token)
        with self._transactions.reading() as connection:
            row = connection.execute(query.where(valid, account.c.disabled.is_(False))).one_or_none()
        if row is None:
            return None
        if row.used_at is None or now - row.used_at >= NOTED_AFTER:
            # A full disk must not lock out everybody who has access.
            with suppress(StoreError), self._using.writing() as connection:
                connection.execute(update(token).where(token.c.id == row.token_id).values(used_at=now))
        return account_of(row)

    def of(self, account_id: int) -> list[Token]:
        """Return an account's tokens that are not revoked, newest first."""
        query = select(token).where(token.c.account_id == account_id, token.c.revoked.is_(False))
        with self._transactions.reading() as connection:
            return [_token_of(row) for row in connection.execute(query.order_by(token.c.id.desc()))]

    def revoke_all(self, account_id: int) -> None:
        """Revoke all tokens of an account."""
        with self._transactions.writing() as connection:
            of_account = token.c.account_id == account_id
            connection.execute(update(token).where(of_account).values(revoked=True))

    def revoke(self, token_id: int, account_id: int) -> None:
        """Revoke a token.  Raises CourseError if the account has no such token."""
        own_token = (token.c.id == token_id) & (token.c.account_id == account_id)
        with self._transactions.writing() as connection:
            if connection.execute(select(token.c.id).where(own_token)).first() is None:
                raise CourseError(f"there is no token {token_id}")
            connection.execute(update(token).where(own_token).values(revoked=True))


def _token_of(row: Any) -> Token:
    return Token(row.id, row.account_id, row.name, row.created_at, row.expires_at, row.used_at)


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
            if not _is_enabled(connection, account_id):
                raise CourseError("this account cannot sign in: ask your lecturer")
            values = {"account_id": account_id, "created_at": now, "expires_at": begun.expires_at}
            connection.execute(insert(session).values(digest=digest_of(secret), **values))
        return secret, begun

    def find(self, secret: str, now: datetime) -> Session | None:
        """Return the session of a secret; None if it has ended or never existed.

        The session is renewed if that can be stored.
        """
        valid = (session.c.digest == digest_of(secret)) & (session.c.expires_at > now)
        with self._transactions.reading() as connection:
            row = connection.execute(select(session).where(valid)).one_or_none()
        if row is None:
            return None
        expires_at = row.expires_at
        if now + LIFETIME - expires_at > RENEWED_AFTER:
            # A full disk must not lock out everybody who is signed in: the session stays valid as it is.
            with suppress(StoreError):
                with self._transactions.writing() as connection:  # it may have been ended in the meantime
                    renewed = update(session).where(valid).values(expires_at=now + LIFETIME)
                    connection.execute(renewed)
                expires_at = now + LIFETIME
        return Session(row.account_id, csrf_of(secret), row.created_at, expires_at)

    def end(self, secret: str) -> None:
        """End the session of a browser."""
        with self._ending.writing() as connection:
            connection.execute(delete(session).where(session.c.digest == digest_of(secret)))

    def purge(self, now: datetime) -> None:
        """Delete expired sessions."""
        with self._transactions.writing() as connection:
            connection.execute(delete(session).where(session.c.expires_at <= now))
