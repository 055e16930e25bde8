"""Read access to an SQLite file that others may be writing, also in a folder that cannot be written.

SQLite keeps the latest commits in a file beside the database, ``-wal``, until they are taken over; an index
of that file is in ``-shm``.  A process that is killed leaves both behind.
"""

import os
import shutil
import sqlite3
import tempfile
from pathlib import Path
from urllib.parse import quote

WAL = "-wal"
"""SQLite's own ending of the file that holds the latest commits."""

COPIES_TRIED = 5
"""A run keeps a game now and then, and a copy takes less time than that: two are nearly always enough."""

_NOT_HERE = {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY}
"""SQLite's errors if it would have to write something before it could read."""
_PRIMARY = 0xFF
"""The part of an SQLite error code that is its kind; the rest is its place.  https://sqlite.org/rescode.html"""


class ReadOnlyFile:
    """Opens connections that change nothing; ``close`` it when they are gone."""

    def __init__(self, path: Path, busy_timeout_s: float) -> None:
        self._path = path.resolve()
        self._timeout_s = busy_timeout_s
        self._copies: tempfile.TemporaryDirectory[str] | None = None

    def connect(self) -> sqlite3.Connection:
        """Return a connection that sees everything that is committed.  Raises sqlite3.Error, OSError.

        A folder that cannot be written has no ``-wal`` if no process is writing and none was killed; then the
        file does not change.  Otherwise the ``-shm`` of that ``-wal`` is used, or without it a copy.
        """
        if self._copies is not None:
            return self._open(Path(self._copies.name, self._path.name), "mode=ro")
        if os.access(self._path.parent, os.W_OK):
            return self._open(self._path, "mode=ro")
        if not _size(self._wal):
            return self._open(self._path, "mode=ro&immutable=1")
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
        return sqlite3.connect(f"file:{quote(str(path))}?{options}", uri=True, timeout=self._timeout_s)

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
    """Return values that change when a file is written; None if there is no file."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _size(path: Path) -> int:
    """Return the size of a file in bytes; 0 if there is none."""
    return (_state(path) or (0, 0, 0))[1]
