"""Tables in an SQLite file."""

import os
import sqlite3
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from tournaments.database.errors import Explanation
from tournaments.database.place import BUSY_TIMEOUT_MS, KIND, Kind, Place
from tournaments.database.read_only import ReadOnlyFile

PRIVATE = 0o600
SIDE_FILES = ("-wal", "-shm")
"""Endings of the files that SQLite keeps beside a file, with the file's own mode."""
KEPT_OPEN = 10
"""Connections that are kept open: to open one costs more than most queries."""
BESIDE = 40
"""Further connections, as many as Trio has threads, so that no thread waits for a connection."""
BUSY_POLL_S = 0.005
"""Seconds between two tries of a change that SQLite itself does not wait for; it takes some milliseconds."""


@dataclass(frozen=True)
class SQLiteFile(Place):
    """A file, which is made when it is first opened; its folder is not."""

    path: Path
    is_private: bool = field(default=False, compare=False)
    """True if only its owner may read the file, whatever the folder and the umask allow."""
    noun: ClassVar[str] = "file"

    def __str__(self) -> str:
        return str(self.path)

    @contextmanager
    def engine(self, *, read_only: bool) -> Iterator[Engine]:
        """Provide an engine; ``read_only`` changes nothing and works on a medium that cannot be written."""
        if self.is_private and not read_only:
            _keep_private(self.path)
        file = ReadOnlyFile(self.path, BUSY_TIMEOUT_MS / 1000) if read_only else None
        engine = self._writing_engine() if file is None else _reading_engine(file)
        try:
            yield engine
        finally:
            engine.dispose()
            if file is not None:
                file.close()

    def _writing_engine(self) -> Engine:
        url = URL.create("sqlite", database=str(self.path.resolve()))  # whatever characters the path holds
        engine = create_engine(
            url,
            connect_args={"timeout": BUSY_TIMEOUT_MS / 1000},
            hide_parameters=True,
            pool_size=KEPT_OPEN,
            max_overflow=BESIDE,
            pool_use_lifo=True,
        )

        @event.listens_for(engine, "connect")
        def _connect(connection: sqlite3.Connection, _record: Any) -> None:
            # The driver's own idea of transactions loses updates: we begin them ourselves.
            connection.isolation_level = None
            # What is committed survives a crash of the process and of the machine.
            _write_ahead(connection)
            connection.execute("PRAGMA synchronous = FULL")

        @event.listens_for(engine, "begin")
        def _begin(connection: Connection) -> None:
            kind = connection.get_execution_options()[KIND]
            if kind is Kind.READ:
                connection.exec_driver_sql("BEGIN")
                return
            # A table that is made anew by a migration is dropped first, and others may refer to it.
            connection.exec_driver_sql(f"PRAGMA foreign_keys = {'OFF' if kind is Kind.MIGRATE else 'ON'}")
            connection.exec_driver_sql("BEGIN IMMEDIATE")

        return engine

    def options(self, kind: Kind) -> dict[str, Any]:
        """Return the kind alone, which the listener for ``begin`` reads."""
        return {KIND: kind}

    def explain(self, error: DBAPIError, *, writes: bool) -> Explanation:
        """Explain an error by SQLite's number of it."""
        code = _primary_code(error)
        return Explanation(_sentence(code, str(error.orig), writes), code in (_OURS if writes else _HOSTS))


def _keep_private(path: Path) -> None:
    """Make the file with its mode, or remove the permissions of others.

    Errors are ignored: SQLite reports them when it opens the file, or its owner has to decide.
    """
    with suppress(OSError):
        # Never open and close it here: that drops the locks of all this process's connections to it.
        # https://sqlite.org/howtocorrupt.html, 2.2
        os.mknod(path, stat.S_IFREG | PRIVATE)
    for name in (path.name, *(path.name + side for side in SIDE_FILES)):
        one = path.with_name(name)
        with suppress(OSError):
            if stat.S_IMODE(one.stat().st_mode) & ~PRIVATE:
                one.chmod(PRIVATE)


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Let the database write ahead to a log.

    A fresh database is changed to that by its first connection.  SQLite does not wait when another connection
    is about to do the same, whatever the timeout: it reports at once that the database is locked.
    """
    give_up = time.monotonic() + BUSY_TIMEOUT_MS / 1000
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > give_up:
                raise
            time.sleep(BUSY_POLL_S)


def _reading_engine(file: ReadOnlyFile) -> Engine:
    """Return an engine that cannot write."""
    return create_engine("sqlite://", creator=file.connect, poolclass=NullPool)


_NOT_ALLOWED = {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM}
"""SQLite's errors of a file that may not be used.  For readers they are the user's to correct."""
_HOSTS = {
    *(sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_CORRUPT),
    *(sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED),
}
"""SQLite's errors of a failing or busy host.  https://sqlite.org/rescode.html"""
_OURS = _HOSTS | _NOT_ALLOWED


def _primary_code(error: DBAPIError) -> int:
    """Return SQLite's number of an error, without its extended part; 0 if it has none."""
    return int(getattr(error.orig, "sqlite_errorcode", 0)) & 0xFF


def _sentence(code: int, text: str, writes: bool) -> str:
    match code:
        case sqlite3.SQLITE_FULL:
            return "the disk is full: make room and run the same command again"
        case sqlite3.SQLITE_NOTADB:
            return f"this file is no SQLite database ({text})"
        case sqlite3.SQLITE_CORRUPT:
            return f"this file is damaged ({text})"
        case sqlite3.SQLITE_IOERR if writes:
            return f"the file cannot be written: is the disk full, or damaged? ({text})"
        case sqlite3.SQLITE_IOERR:
            return f"the file cannot be read: is the disk damaged? ({text})"
        case sqlite3.SQLITE_BUSY:
            return f"another process has been writing for {BUSY_TIMEOUT_MS // 1000} s: wait for it ({text})"
        case code if code in _NOT_ALLOWED:
            return f"the file cannot be {'written' if writes else 'read'} here ({text})"
    return text
