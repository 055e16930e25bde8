"""Data directory of a server: its lock, its identity, and the key that signs cookies."""

import contextlib
import secrets
from collections.abc import Iterator
from pathlib import Path

from tournaments.course.mail.outbox import MailHome
from tournaments.database.location import POSTGRESQL, SQLITE
from tournaments.files.durable import FileLock, os_errors_as, write_file

KEY_FILE = "secret"
KEY_BYTES = 32
"""Length of the key: 256 bits."""
LOCK_FILE = "lock"
IDENTITY_FILE = "identity"
"""File with the name by which mails, and a PostgreSQL database, know their data directory.  It is not in
backups, so that a restored directory has an identity of its own."""
IDENTITY_BYTES = 16
DATABASE_FILE = "database"
"""File with the kind (``Database.kind``) of the database with which the server was started last."""
PRIVATE = 0o600


class DataDirectoryError(Exception):
    """The directory cannot be used; the message gives the reason and a remedy."""


class DataDirectory:
    """The directory, which is created for its owner alone if it is missing.  Raises DataDirectoryError."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.mkdir(parents=True, exist_ok=True, mode=0o700)
        except FileExistsError as error:
            raise DataDirectoryError(f"{path} is no directory: choose another with --data") from error
        except OSError as error:
            raise DataDirectoryError(f"{path} cannot be made: {error.strerror}") from error

    @property
    def is_private(self) -> bool:
        """True if other users of the machine cannot reach the files in the directory."""
        return not self.path.stat().st_mode & 0o077

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock that excludes other servers.

        Raises DataDirectoryError.
        """
        try:
            lock = FileLock(self.path / LOCK_FILE, create=PRIVATE, wait=False)
        except BlockingIOError as error:
            raise DataDirectoryError(
                f"another server is at work in {self.path}: end it, or choose another with --data"
            ) from error
        except OSError as error:
            raise DataDirectoryError(
                f"{self.path} cannot be written to: {error.strerror}; choose another with --data"
            ) from error
        with lock:
            yield

    def identity(self) -> str:
        """Return the identity of the directory, which is created at first use.  Raises DataDirectoryError."""
        path = self.path / IDENTITY_FILE
        with os_errors_as(DataDirectoryError, f"{path} cannot be read or made"):
            with contextlib.suppress(FileNotFoundError):
                identity = path.read_text(encoding="ascii", errors="replace").strip()
                if identity:  # a full disk leaves an empty file
                    return identity
            identity = secrets.token_hex(IDENTITY_BYTES)
            write_file(path, f"{identity}\n".encode("ascii"), PRIVATE)
        return identity

    def key(self) -> bytes:
        """Return the key, which is created at first use.  If its file is lost, everybody must sign in again.

        Raises DataDirectoryError.
        """
        path = self.path / KEY_FILE
        with os_errors_as(DataDirectoryError, f"{path} cannot be read or made"):
            with contextlib.suppress(FileNotFoundError):
                key = path.read_bytes()
                if len(key) == KEY_BYTES:
                    if path.stat().st_mode & 0o077:  # a restored or copied file may be readable by others
                        path.chmod(PRIVATE)
                    return key
                # A full disk leaves an empty file.
            key = secrets.token_bytes(KEY_BYTES)
            write_file(path, key, PRIVATE)
        return key

    def record_database(self, kind: str) -> None:
        """Record the kind of the server's database.  Raises DataDirectoryError."""
        if recorded_database(self.path) != kind:
            path = self.path / DATABASE_FILE
            with os_errors_as(DataDirectoryError, f"{path} cannot be written"):
                write_file(path, f"{kind}\n".encode("ascii"), PRIVATE)

    def forget_database(self) -> None:
        """Forget the recorded kind: the next start may be with another one.  Raises DataDirectoryError."""
        path = self.path / DATABASE_FILE
        with os_errors_as(DataDirectoryError, f"{path} cannot be removed"):
            path.unlink(missing_ok=True)

    def mail_home(self) -> MailHome:
        """Return the directory as the sender of mails.  Raises DataDirectoryError."""
        return MailHome(self.identity(), self.key())


def recorded_database(path: Path) -> str | None:
    """Return the kind of the database with which the server of a directory was started last.

    It is None if no kind is recorded, as in a directory of an earlier version.  Raises DataDirectoryError.
    """
    file = path / DATABASE_FILE
    with os_errors_as(DataDirectoryError, f"{file} cannot be read"), contextlib.suppress(FileNotFoundError):
        kind = file.read_text(encoding="ascii", errors="replace").strip()
        return kind if kind in (SQLITE, POSTGRESQL) else None  # a full disk leaves an empty file
    return None
