"""Transactions of the course's database that may contain one another."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, local

from sqlalchemy import Connection

from tournaments.database.connections import Connections


class Transactions:
    """What the tables of a course share; threads may share it, too.  Raises StoreError.

    Tables belong to groups, and the writes to each are counted: who remembers what was read sees whether it
    may have changed.

    Within ``writing`` of a thread, all that the thread reads or writes belongs to the same transaction: it is
    kept together or not at all.  Within ``reading``, all that it reads is of the same moment.
    """

    def __init__(self, connections: Connections, group: str = "", of: "Transactions | None" = None) -> None:
        """``group`` is that of the tables which use this one; ``of`` is the course's own."""
        self._connections = connections
        self._group = group
        self._outer: local = local() if of is None else of._outer
        self._counting: Lock = Lock() if of is None else of._counting
        self.writes: Counter[str] = Counter() if of is None else of.writes
        """Group -> transactions that may have changed something of it since this process began."""

    def group(self, name: str) -> "Transactions":
        """The same transactions, as tables of a group use them."""
        return Transactions(self._connections, name, self)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that sees one moment and does not wait for a writer."""
        outer = self._begun() or getattr(self._outer, "reader", None)
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
        """A transaction that keeps all or nothing, and the only one that writes until its end."""
        outer = self._begun()
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
        finally:  # others see what was written only now
            with self._counting:
                self.writes.update(groups)

    def _begun(self) -> Connection | None:
        return getattr(self._outer, "connection", None)
