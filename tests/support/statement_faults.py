"""Faults between any two statements that change a database, for tests of atomic actions."""

import os
import signal
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from sqlalchemy import Connection, Engine, event, select

from tournaments.course.schema import journal, metadata
from tournaments.database.base import Connections, Location

CHANGES = ("INSERT", "UPDATE", "DELETE")


class InjectedError(Exception):
    """The fault."""


@dataclass
class Fault:
    """A fault before the statement with a number; commits of changes count as statements."""

    number: int
    fail: Callable[[], None]
    happened: bool = False
    _count: int = 0
    _lock: Lock = field(default_factory=Lock)

    def on_statement(self, connection: Connection, _cursor: Any, statement: str, *_: Any) -> None:
        if statement.lstrip().upper().startswith(CHANGES):
            connection.info["changed"] = True
            self._step()

    def on_commit(self, connection: Connection) -> None:
        if connection.info.pop("changed", False):
            self._step()

    def _step(self) -> None:
        with self._lock:
            self._count += 1
            if self._count != self.number:
                return
            self.happened = True
        self.fail()


def _raise() -> None:
    raise InjectedError


@contextmanager
def fault_before(number: int, fail: Callable[[], None] = _raise) -> Iterator[Fault]:
    """Let the statement with this number, from 1, fail in any thread; by default with an exception."""
    fault = Fault(number, fail)
    listeners = (("before_cursor_execute", fault.on_statement), ("commit", fault.on_commit))
    for name, listener in listeners:
        event.listen(Engine, name, listener)
    try:
        yield fault
    finally:
        for name, listener in listeners:
            event.remove(Engine, name, listener)


def kill_process() -> None:
    """Kill this process, as the kernel does when memory runs out."""
    os.kill(os.getpid(), signal.SIGKILL)


def in_copy(work: Callable[..., object], *arguments: object) -> int:
    """Return the wait status of a copy of this process that calls a function.

    The copy is made by ``fork``, as importing everything takes longer than an action: no other thread may
    run.
    """
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work(*arguments)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1]


@dataclass(frozen=True)
class CourseContents:
    """All rows of a course's tables."""

    entries: tuple[Any, ...]
    """Rows of the journal."""
    rest: tuple[Any, ...]

    @classmethod
    def read(cls, location: Location) -> "CourseContents":
        """Read the tables at a location."""
        with Connections(location, read_only=True) as connections, connections.reading() as connection:
            rows = {
                table.name: tuple(sorted(map(repr, connection.execute(select(table)))))
                for table in metadata.sorted_tables
            }
        entries = rows.pop(journal.name)
        return cls(entries, tuple(rows.items()))

    def assert_both_or_neither(self, location: Location) -> bool:
        """Check that the tables and the journal have changed, or neither; return True if they have."""
        now = type(self).read(location)
        changed = (now.rest != self.rest, now.entries != self.entries)
        assert changed in {(False, False), (True, True)}, changed
        return changed[0]
