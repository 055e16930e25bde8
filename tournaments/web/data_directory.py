"""The server's data directory: a lock that admits one server at a time, and the key that signs cookies."""

import contextlib
import fcntl
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

KEY_FILE = "secret"
KEY_BYTES = 32
"""Length of the key: 256 bits."""
LOCK_FILE = "lock"


class DataDirectoryError(Exception):
    """The directory cannot be used; the message gives the reason and a remedy."""


class DataDirectory:
    """The directory, which is made for its owner alone if it is missing.  Raises DataDirectoryError."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.mkdir(parents=True, exist_ok=True, mode=0o700)
        except FileExistsError as error:
            raise DataDirectoryError(f"{path} is no directory: choose another with --data") from error
        except OSError as error:
            raise DataDirectoryError(f"{path} cannot be made: {error.strerror}") from error

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock that keeps other servers out; it ends with the process, however that ends.

        Raises DataDirectoryError.
        """
        try:
            descriptor = os.open(self.path / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise DataDirectoryError(
                f"{self.path} cannot be written to: {error.strerror}; choose another with --data"
            ) from error
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise DataDirectoryError(
                    f"another server is at work in {self.path}: end it, or choose another with --data"
                ) from error
            yield
        finally:
            os.close(descriptor)

    def key(self) -> bytes:
        """Return the key, which is made on first use.  If its file is lost, everybody must sign in again.

        Raises DataDirectoryError.
        """
        path = self.path / KEY_FILE
        try:
            with contextlib.suppress(FileNotFoundError):
                key = path.read_bytes()
                if len(key) == KEY_BYTES:
                    if path.stat().st_mode & 0o077:  # a restored or copied file may be readable by others
                        path.chmod(0o600)
                    return key
                # A full disk leaves an empty file.
            key = secrets.token_bytes(KEY_BYTES)
            new = path.with_name(KEY_FILE + ".part")
            new.unlink(missing_ok=True)
            descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(key)
                file.flush()
                os.fsync(descriptor)
            new.replace(path)
        except OSError as error:
            raise DataDirectoryError(f"{path} cannot be read or made: {error.strerror}") from error
        return key
