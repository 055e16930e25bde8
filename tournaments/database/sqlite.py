"""Tables in an SQLite file, and read access to a file that others may be writing.

SQLite keeps the latest commits in a file beside the database, ``-wal``, until they are taken over; an index
of that file is in ``-shm``.  A process that is killed leaves both behind.  Read access also works in a folder
that cannot be written.
"""

import os
import shutil
import sqlite3
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from tournaments.database.base import BUSY_TIMEOUT_MS, KIND, Explanation, Kind, Location

WAL = "-wal"
"""SQLite's suffix of the file with the latest commits."""
SHM = "-shm"
"""SQLite's suffix of the index of that file."""

COPIES_TRIED = 5
"""Maximum number of copies: a run stores games less often than a copy takes, so that two usually suffice."""

_NOT_HERE = {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY}
"""SQLite's errors if it would have to write something before it could read."""
_PRIMARY = 0xFF
"""Bits of an SQLite error code with its kind; the others are details.  https://sqlite.org/rescode.html"""


class ReadOnlyFile:
    """Read-only connections to a file; ``close`` must be called after their end."""

    def __init__(self, path: Path, busy_timeout_s: float) -> None:
        self._path = path.resolve()
        self._timeout_s = busy_timeout_s
        self._copies: tempfile.TemporaryDirectory[str] | None = None

    def connect(self) -> sqlite3.Connection:
        """Return a connection that sees all committed data.  Raises sqlite3.Error, OSError.

        A file is read as usual if this user can write to it and to its folder.  Otherwise an empty or missing
        ``-wal`` means that no process is writing and none was killed: the file does not change, and is opened
        as immutable.  With commits in the ``-wal``, its ``-shm`` is used, or a copy is read if that fails.
        If this user can write to the folder, but not to the file, a copy is read if the ``-shm`` is missing:
        SQLite would leave one of this user there, which the owner of the file could not write to.
        """
        if self._copies is not None:
            return self._open(Path(self._copies.name, self._path.name), "mode=ro")
        is_folder_writable = os.access(self._path.parent, os.W_OK)
        if is_folder_writable and os.access(self._path, os.W_OK):
            return self._open(self._path, "mode=ro")
        wal = _state(self._wal)
        if wal is None or not wal[1]:
            return self._open(self._path, "mode=ro&immutable=1")
        if is_folder_writable and _state(self._path.with_name(self._path.name + SHM)) is None:
            return self._open(self._copied(), "mode=ro")
        connection = self._open(self._path, "mode=ro")
        try:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.Error as error:
            connection.close()
            if error.sqlite_errorcode & _PRIMARY not in _NOT_HERE:
                raise
            return self._open(self._copied(), "mode=ro")
        return connection

    def close(self) -> None:
        """Remove the copies."""
        if self._copies is not None:
            self._copies.cleanup()
            self._copies = None

    @property
    def _wal(self) -> Path:
        return self._path.with_name(self._path.name + WAL)

    def _open(self, path: Path, options: str) -> sqlite3.Connection:
        address = f"file:{quote(os.fsencode(path))}?{options}"  # a name may be any bytes
        return sqlite3.connect(address, uri=True, timeout=self._timeout_s)

    def _copied(self) -> Path:
        """Return a copy of both files as they were at one moment.  Raises OSError."""
        self._copies = tempfile.TemporaryDirectory(prefix="kalarena-")
        target = Path(self._copies.name, self._path.name)
        for _ in range(COPIES_TRIED):
            before = (_state(self._path), _state(self._wal))
            shutil.copyfile(self._path, target)
            target_wal = target.with_name(target.name + WAL)
            target_wal.unlink(missing_ok=True)
            if before[1] is not None:
                shutil.copyfile(self._wal, target_wal)
            if before == (_state(self._path), _state(self._wal)):
                return target
        self.close()
        raise sqlite3.OperationalError(
            "it is being written to all the time: try again when the run has ended"
        )


def _state(path: Path) -> tuple[int, int, int] | None:
    """Return inode, size and time of a file, which change when it is written; None if there is no file."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


PRIVATE = 0o600
KEPT_OPEN = 10
"""Connections that are kept open: opening one costs more than most queries."""
BESIDE = 40
"""Further connections, as many as Trio has threads, so that no thread waits for a connection."""
PAGE_BYTES = 8192
"""Size of the pages of new files.  A page of SQLite's default of 4096 has room for eight games and a half."""
SYNCHRONOUS = "FULL"
"""SQLite's setting with which committed data survive a crash of the process and of the machine."""
BUSY_POLL_S = 0.005
"""Seconds between two tries of a change for which SQLite itself does not wait; it takes some milliseconds."""


@dataclass(frozen=True)
class SQLiteFile(Location):
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
        with ExitStack() as stack:
            if read_only:
                file = ReadOnlyFile(self.path, BUSY_TIMEOUT_MS / 1000)
                stack.callback(file.close)
                engine = create_engine("sqlite://", creator=file.connect, poolclass=NullPool)
            else:
                engine = self._writing_engine()
            stack.callback(engine.dispose)
            yield engine

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
            # The driver's own transactions lose updates: the listener below begins them instead.
            connection.isolation_level = None
            connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")  # no effect on a file that has tables
            _write_ahead(connection)
            connection.execute(f"PRAGMA synchronous = {SYNCHRONOUS}")

        @event.listens_for(engine, "begin")
        def _begin(connection: Connection) -> None:
            kind = connection.get_execution_options()[KIND]
            if kind is Kind.READ:
                connection.exec_driver_sql("BEGIN")
                return
            # A migration drops a table before it makes it anew, and others may refer to the table.
            connection.exec_driver_sql(f"PRAGMA foreign_keys = {'OFF' if kind is Kind.MIGRATE else 'ON'}")
            connection.exec_driver_sql("BEGIN IMMEDIATE")

        return engine

    def options(self, kind: Kind) -> dict[str, Any]:
        """Return the kind, which the listener for ``begin`` reads."""
        return {KIND: kind}

    def explain(self, error: DBAPIError, *, writes: bool) -> Explanation:
        """Explain an error by its SQLite error code."""
        code = int(getattr(error.orig, "sqlite_errorcode", 0)) & _PRIMARY
        sentence = _sentence(code, str(error.orig), writes)
        return Explanation(sentence, code in (_OURS if writes else _HOSTS), code == sqlite3.SQLITE_CORRUPT)


def _keep_private(path: Path) -> None:
    """Make the file with its mode, or remove the permissions of others.

    Errors are ignored: SQLite reports them when it opens the file, or its owner has to decide.
    """
    with suppress(OSError):
        # The file must not be opened and closed here: that drops all locks of this process on it.
        # https://sqlite.org/howtocorrupt.html, 2.2
        os.mknod(path, stat.S_IFREG | PRIVATE)
    for suffix in ("", WAL, SHM):  # SQLite makes the two files beside the file with its mode
        one = path.with_name(path.name + suffix)
        with suppress(OSError):
            if stat.S_IMODE(one.stat().st_mode) & ~PRIVATE:
                one.chmod(PRIVATE)


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Turn on the write-ahead log.

    The first connection changes a new database.  If another connection is about to do the same, SQLite does
    not wait, whatever the timeout: it reports at once that the database is locked.
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


_NOT_ALLOWED = {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM}
"""SQLite's errors of a file without permission; a reader's user can correct them."""
_HOSTS = {
    *(sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_CORRUPT),
    *(sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED),
}
"""SQLite's errors of a failing or busy host.  https://sqlite.org/rescode.html"""
_OURS = _HOSTS | _NOT_ALLOWED


def _sentence(code: int, text: str, writes: bool) -> str:
    match code:
        case sqlite3.SQLITE_FULL:
            return "the disk is full: make room"
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
