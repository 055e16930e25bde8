"""The journal of a course: an append-only log of actions, protected by triggers of the database."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import insert, or_, select

from tournaments.course.model import Event
from tournaments.course.schema import journal
from tournaments.course.transactions import Transactions
from tournaments.database.base import storable


@dataclass
class Act:
    """An action in progress; its journal entry is complete when the action ends."""

    subject: str
    detail: dict[str, Any] = field(default_factory=dict)
    """JSON data without secrets."""
    is_recorded: bool = True
    """False for an action that turned out to change nothing: it gets no entry."""


@dataclass(frozen=True)
class OldestFirst:
    """Start of a list of entries in ascending order."""

    after: int | None = None
    """Number after which the list begins; None for the oldest entry."""


class AuditLog:
    """Table of journal entries."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    @contextmanager
    def act(
        self, now: datetime, account_id: int | None, action: str, subject: str = "", **detail: Any
    ) -> Iterator[Act]:
        """See ``Course.act``."""
        act = Act(subject, detail)
        with self._transactions.writing() as connection:
            yield act
            if act.is_recorded:
                values = {"at": now, "account_id": account_id, "action": action}
                text = {"subject": storable(act.subject), "detail": json.dumps(act.detail)}
                connection.execute(insert(journal).values(**values, **text))

    def of_subject(self, subject: str) -> list[Event]:
        """Return all entries on a subject, oldest first."""
        query = select(journal).where(journal.c.subject == storable(subject)).order_by(journal.c.number)
        with self._transactions.reading() as connection:
            return [_event_of(row) for row in connection.execute(query)]

    def entries(
        self,
        limit: int,
        start: "int | OldestFirst | None" = None,
        *,
        group: str = "",
        account_id: int | None = None,
        text: str = "",
    ) -> list[Event]:
        """Return some entries, newest first.

        Args:
            limit: Most entries.
            start: Number below which they begin; None for the newest.  OldestFirst reverses the order.
            group: Beginning of their actions, up to the dot; empty for all.
            account_id: Their author; 0 for the server itself.
            text: Text in their action, subject or details, ignoring case.

        """
        number = journal.c.number
        query = select(journal).limit(limit)
        if isinstance(start, OldestFirst):
            query = query.order_by(number)
            if start.after is not None:
                query = query.where(number > start.after)
        else:
            query = query.order_by(number.desc())
            if start is not None:
                query = query.where(number < start)
        if group:
            query = query.where(journal.c.action.startswith(f"{group}.", autoescape=True))
        if account_id is not None:
            query = query.where(journal.c.account_id == (account_id or None))
        if text:
            wanted = storable(text)
            in_json = json.dumps(wanted)[1:-1]  # as details are stored
            query = query.where(
                or_(
                    journal.c.action.icontains(wanted, autoescape=True),
                    journal.c.subject.icontains(wanted, autoescape=True),
                    journal.c.detail.icontains(in_json, autoescape=True),
                )
            )
        with self._transactions.reading() as connection:
            return [_event_of(row) for row in connection.execute(query)]


def _event_of(row: Any) -> Event:
    return Event(**{**row._mapping, "detail": json.loads(row.detail)})
