"""Transactions of the course's database that may be nested."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, local

from sqlalchemy import Connection

from tournaments.database.base import Connections


class Transactions:
    """Transactions of a course's tables, for any thread.  Raises StoreError.

    Tables belong to groups, and the writes to each are counted, so that caches can detect possible changes.

    Within ``writing``, all reads and writes of the thread belong to the same transaction, which is committed
    as a whole or not at all.  Within ``reading``, all reads are of the same moment.
    """

    def __init__(
        self, connections: Connections, group: str = "", parent: "Transactions | None" = None
    ) -> None:
        """Create the transactions of a group of tables; ``parent`` is the course's own object."""
        self._connections = connections
        self._group = group
        self._outer: local = local() if parent is None else parent._outer
        self._counting: Lock = Lock() if parent is None else parent._counting
        self.writes: Counter[str] = Counter() if parent is None else parent.writes
        """Group -> number of transactions that may have changed its tables since this process began."""

    def group(self, name: str) -> "Transactions":
        """Return the same transactions for the tables of a group."""
        return Transactions(self._connections, name, self)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Begin a transaction that sees one moment and does not wait for a writer."""
        outer = self._current() or getattr(self._outer, "reader", None)
        if outer is not None:
            yield outer
            return
        with self._connections.reading() as connection:
            self._outer.reader = connection
            try:
                yield connection
            finally:
                self._outer.reader = None

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Begin a transaction that is committed as a whole or not at all, and excludes other writers."""
        outer = self._current()
        if outer is not None:
            self._outer.groups.add(self._group)
            yield outer
            return
        groups = self._outer.groups = {self._group}
        try:
            with self._connections.writing() as connection:
                self._outer.connection = connection
                try:
                    yield connection
                finally:
                    self._outer.connection = None
        finally:  # the changes are visible to others only now
            with self._counting:
                self.writes.update(groups)

    def writes_without(self, *groups: str) -> int:
        """Return the number of counted changes of tables, without those of these groups."""
        with self._counting:
            return self.writes.total() - sum(self.writes[group] for group in groups)

    def _current(self) -> Connection | None:
        return getattr(self._outer, "connection", None)
