"""Tokens, with which programs submit for an account."""

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import func, insert, or_, select, update

from tournaments.course.accounts import account_of
from tournaments.course.credentials import digest_of, new_token
from tournaments.course.errors import CourseError
from tournaments.course.model import Account, Token
from tournaments.course.schema import account, token
from tournaments.course.texts import person_name
from tournaments.course.transactions import Transactions

MOST = 20
"""Maximum number of unrevoked tokens of an account: one for each machine, and some forgotten ones."""
LONGEST_DAYS = 3660
NOTED_AFTER = timedelta(minutes=1)
"""Minimum interval between recorded uses, each of which is a write to the disk."""


class Tokens:
    """Table of tokens."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def make(self, account_id: int, name: str, now: datetime, days: int | None) -> tuple[str, Token]:
        """Create a token, valid for ``days`` days or without an end; return its secret and the token.

        The secret cannot be read again.  Raises CourseError if the name or the number of days is invalid,
        there are too many tokens already, or there is no such account.
        """
        name = person_name(name, "token's name")
        if days is not None and not 1 <= days <= LONGEST_DAYS:
            raise CourseError(f"a token is valid for 1 to {LONGEST_DAYS} days, not {days}")
        expires_at = None if days is None else now + timedelta(days=days)
        secret = new_token()
        with self._transactions.writing() as connection:
            if connection.execute(select(account.c.id).where(account.c.id == account_id)).first() is None:
                raise CourseError(f"there is no account {account_id}")
            mine = (token.c.account_id == account_id) & token.c.revoked.is_(False)
            if connection.execute(select(func.count()).where(mine)).scalar_one() >= MOST:
                raise CourseError(f"an account has at most {MOST} tokens: revoke one of them first")
            values = {"account_id": account_id, "name": name, "created_at": now, "expires_at": expires_at}
            statement = insert(token).values(digest=digest_of(secret), revoked=False, **values)
            row = connection.execute(statement.returning(token)).one()
            return secret, _token_of(row)

    def find(self, secret: str, now: datetime) -> Account | None:
        """Return the account of a token and record the use.

        Returns None if the token is expired or revoked, or the account is disabled.
        """
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
            with self._transactions.writing() as connection:
                connection.execute(update(token).where(token.c.id == row.token_id).values(used_at=now))
        return account_of(row)

    def of(self, account_id: int) -> list[Token]:
        """Return an account's tokens that are not revoked, newest first."""
        query = select(token).where(token.c.account_id == account_id, token.c.revoked.is_(False))
        with self._transactions.reading() as connection:
            return [_token_of(row) for row in connection.execute(query.order_by(token.c.id.desc()))]

    def revoke(self, token_id: int, account_id: int) -> None:
        """Revoke a token.  Raises CourseError if the account has no such token."""
        mine = (token.c.id == token_id) & (token.c.account_id == account_id)
        with self._transactions.writing() as connection:
            if connection.execute(select(token.c.id).where(mine)).first() is None:
                raise CourseError(f"there is no token {token_id}")
            connection.execute(update(token).where(mine).values(revoked=True))


def _token_of(row: Any) -> Token:
    return Token(row.id, row.account_id, row.name, row.created_at, row.expires_at, row.used_at)
