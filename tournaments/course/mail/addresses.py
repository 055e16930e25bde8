"""E-mail addresses of accounts, their confirmation, and the kinds of mails that people want."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from tournaments.course.model import CHOSEN_KINDS, CourseError, MailAddress, MailKind, MailState
from tournaments.course.people.credentials import digest_of
from tournaments.course.schema import mail, mail_address
from tournaments.course.texts import email_of
from tournaments.course.transactions import Transactions

CONFIRM_WITHIN = timedelta(days=2)
"""Validity of a link that confirms an address: its person waits for it, or looks at it on the next day."""
VOID = "this link was used already, or is too old: ask for a new one on the page Account"


class Addresses:
    """Table of addresses.  An account without a row has no address, and wants all kinds of mails."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def of(self, account_id: int) -> MailAddress:
        """Return the address and the wishes of an account."""
        with self._transactions.reading() as connection:
            row = connection.execute(_of(account_id)).one_or_none()
            return MailAddress() if row is None else _address_of(row)

    def known(self) -> frozenset[int]:
        """Return the ids of all accounts with an address."""
        known = select(mail_address.c.account_id).where(mail_address.c.address.is_not(None))
        with self._transactions.reading() as connection:
            return frozenset(connection.execute(known).scalars())

    def enrol(self, account_id: int, address: str) -> bool:
        """Set the address from a roster, unless the person has set or removed an address.

        The lecturer vouches for the address, so that the invitation can go to it.  Returns whether the
        address was changed.  Raises CourseError if it is invalid.
        """
        address = email_of(address)
        with self._transactions.writing() as connection:
            before = self.of(account_id)
            if before.is_own or before.address == address:
                return False
            _set(connection, account_id, address=address)
            _readdress(connection, account_id, address)
            return True

    def choose(self, account_id: int, kinds: Iterable[MailKind]) -> bool:
        """Set the kinds of mails that a person wants; return whether that is a change."""
        wanted = frozenset(kinds)
        with self._transactions.writing() as connection:
            if self.of(account_id).kinds == wanted:
                return False
            _set(connection, account_id, **{kind.value: kind in wanted for kind in CHOSEN_KINDS})
            return True

    def remove(self, account_id: int) -> bool:
        """Remove an address, a pending one and all waiting mails; return whether there was any address.

        Without one nothing is changed, so that a later roster can still bring one.
        """
        with self._transactions.writing() as connection:
            before = self.of(account_id)
            if before.address is None and before.pending is None:
                return False
            values = _pending() | {"address": None, "is_own": True}
            _set(connection, account_id, **values)
            connection.execute(delete(mail).where(_waiting(account_id)))
            return True

    def begin(self, account_id: int, address: str, secret: str, now: datetime) -> datetime:
        """Store an address that its person has to confirm with a secret; return until when.

        The current address stays until then.  Raises CourseError if the address is invalid.
        """
        address, until = email_of(address), now + CONFIRM_WITHIN
        with self._transactions.writing() as connection:
            _set(connection, account_id, **_pending(address, digest_of(secret), until))
            of_kind = _waiting(account_id) & (mail.c.kind == MailKind.ADDRESS.value)
            connection.execute(delete(mail).where(of_kind))
        return until

    def pending(self, account_id: int, secret: str, now: datetime) -> str | None:
        """Return the address that an account can confirm with a secret; None if the secret is void."""
        valid = (
            (mail_address.c.account_id == account_id)
            & (mail_address.c.pending_digest == digest_of(secret))
            & (mail_address.c.pending_until > now)
        )
        with self._transactions.reading() as connection:
            return connection.execute(select(mail_address.c.pending).where(valid)).scalar_one_or_none()

    def confirm(self, account_id: int, secret: str, now: datetime) -> str:
        """Let the pending address take the place of the current one, and return it.

        Mails that wait go to the new address.  Raises CourseError if the secret is void.
        """
        with self._transactions.writing() as connection:
            address = self.pending(account_id, secret, now)
            if address is None:
                raise CourseError(VOID)
            _set(connection, account_id, **_pending(), address=address, is_own=True)
            _readdress(connection, account_id, address)
            return address


def _of(account_id: int) -> Any:
    return select(mail_address).where(mail_address.c.account_id == account_id)


def _waiting(account_id: int) -> Any:
    return (mail.c.account_id == account_id) & (mail.c.state == MailState.WAITING.value)


def _pending(
    address: str | None = None, digest: str | None = None, until: datetime | None = None
) -> dict[str, Any]:
    return {"pending": address, "pending_digest": digest, "pending_until": until}


def _readdress(connection: Connection, account_id: int, address: str) -> None:
    """Let the mails that wait go to an account's new address."""
    others = _waiting(account_id) & (mail.c.kind != MailKind.ADDRESS.value)
    connection.execute(update(mail).where(others).values(address=address))


def _set(connection: Connection, account_id: int, **values: Any) -> None:
    if connection.execute(_of(account_id)).first() is None:
        wishes = {kind.value: True for kind in CHOSEN_KINDS}
        row = {"account_id": account_id, "is_own": False} | wishes | values
        connection.execute(insert(mail_address).values(**row))
    else:
        of_account = mail_address.c.account_id == account_id
        connection.execute(update(mail_address).where(of_account).values(**values))


def _address_of(row: Any) -> MailAddress:
    kinds = frozenset(kind for kind in CHOSEN_KINDS if row._mapping[kind.value])
    return MailAddress(row.address, row.pending, row.is_own, kinds)
