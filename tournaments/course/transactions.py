"""Transactions of the course's database that may contain one another."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, local

from sqlalchemy import Connection

from tournaments.database.connections import Connections


class Transactions:
    """What the tables of a course share; threads may share it, too.  Raises StoreError.

    Within ``writing`` of a thread, all that the thread reads or writes belongs to the same transaction: it is
    kept together or not at all.
    """

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._outer = local()
        self._counting = Lock()
        self.writes = 0
        """Transactions that may have changed something since this process began."""

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that sees one moment and does not wait for a writer."""
        outer = self._begun()
        if outer is not None:
            yield outer
            return
        with self._connections.reading() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that keeps all or nothing, and the only one that writes until its end."""
        outer = self._begun()
        if outer is not None:
            yield outer
            return
        try:
            with self._connections.writing() as connection:
                self._outer.connection = connection
                try:
                    yield connection
                finally:
                    self._outer.connection = None
        finally:
            with self._counting:
                self.writes += 1

    def _begun(self) -> Connection | None:
        return getattr(self._outer, "connection", None)
