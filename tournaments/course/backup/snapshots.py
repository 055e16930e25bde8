"""Copies of SQLite databases in use, each in its state at one moment."""

import sqlite3
from contextlib import closing
from pathlib import Path

from tournaments.course.backup.manifest import BackupError

WAIT_S = 10.0
"""Seconds to wait for a writer that locks the whole database, which is rare and short in WAL mode."""


def copy_database(source: Path, copy: Path) -> None:
    """Copy a database into a new file, while other connections read and write it.

    ``VACUUM INTO`` reads in one transaction: later writes are not in the copy.  The backup interface of
    SQLite starts again after each write, and might never finish.  Raises BackupError.
    """
    try:
        with closing(_open(source)) as connection:
            connection.execute("VACUUM INTO ?", (str(copy),))
    except sqlite3.Error as error:
        raise BackupError(f"{source} cannot be copied: {error}") from error


def rows_of(path: Path) -> dict[str, int]:
    """Return the number of rows of each table of a sound database.  Raises BackupError if it is damaged."""
    try:
        with closing(_open(path)) as connection:
            (found,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
            if found != "ok":
                raise BackupError(f"{path} is damaged: {found}")
            names = connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY 1"
            ).fetchall()
            return {
                name: int(connection.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0])
                for (name,) in names
            }
    except sqlite3.Error as error:
        raise BackupError(f"{path} cannot be read: {error}") from error


def _open(path: Path) -> sqlite3.Connection:
    """Open a database for reading.  A missing file is an error, not a new database."""
    return sqlite3.connect(
        f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=WAIT_S, isolation_level=None
    )
