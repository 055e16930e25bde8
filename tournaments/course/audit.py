"""The journal of a course: an append-only log of actions, protected by triggers of the database."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import insert, select

from tournaments.course.model import Event
from tournaments.course.schema import journal
from tournaments.course.texts import storable
from tournaments.course.transactions import Transactions


class AuditLog:
    """Table of journal entries."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def note(
        self,
        now: datetime,
        account_id: int | None,
        action: str,
        subject: str,
        detail: Mapping[str, Any] | None = None,
    ) -> Event:
        """Add an entry.  ``detail`` is JSON data without secrets."""
        values = {"at": now, "account_id": account_id, "action": action, "subject": storable(subject)}
        statement = insert(journal).values(**values, detail=json.dumps(detail or {}))
        with self._transactions.writing() as connection:
            return _event_of(connection.execute(statement.returning(journal)).one())

    def entries(self, limit: int, before: int | None = None) -> list[Event]:
        """Return at most ``limit`` entries, newest first, all with a number below ``before``."""
        query = select(journal).order_by(journal.c.number.desc()).limit(limit)
        if before is not None:
            query = query.where(journal.c.number < before)
        with self._transactions.reading() as connection:
            return [_event_of(row) for row in connection.execute(query)]


def _event_of(row: Any) -> Event:
    return Event(**{**row._mapping, "detail": json.loads(row.detail)})
