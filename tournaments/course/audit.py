"""The journal of a course: an append-only log of actions, protected by triggers of the database."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import insert, select

from tournaments.course.model import Event
from tournaments.course.schema import journal
from tournaments.course.texts import storable
from tournaments.course.transactions import Transactions


@dataclass
class Act:
    """An action in progress; its journal entry is complete when the action ends."""

    subject: str
    detail: dict[str, Any] = field(default_factory=dict)
    """JSON data without secrets."""
    is_recorded: bool = True
    """False for an action that turned out to change nothing: it gets no entry."""


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

    def entries(self, limit: int, before: int | None = None) -> list[Event]:
        """Return at most ``limit`` entries, newest first, all with a number below ``before``."""
        query = select(journal).order_by(journal.c.number.desc()).limit(limit)
        if before is not None:
            query = query.where(journal.c.number < before)
        with self._transactions.reading() as connection:
            return [_event_of(row) for row in connection.execute(query)]


def _event_of(row: Any) -> Event:
    return Event(**{**row._mapping, "detail": json.loads(row.detail)})
