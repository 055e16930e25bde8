"""The server's data directory: one server at a time, and the key that its cookies are signed with."""

import contextlib
import fcntl
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

KEY_FILE = "secret"
KEY_BYTES = 32
"""As long as the digest that signs with it."""
LOCK_FILE = "lock"


class DataDirectoryError(Exception):
    """The directory cannot be used; the message says why and what to do."""


class DataDirectory:
    """Makes the directory, for its owner alone, if it is not there.  Raises DataDirectoryError."""

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
        """Keep other servers out; the lock goes with the process, however it ends.

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
        """The key, made when it is first asked for.  Without the file everybody signs in anew, no more.

        Raises DataDirectoryError.
        """
        path = self.path / KEY_FILE
        try:
            with contextlib.suppress(FileNotFoundError):
                key = path.read_bytes()
                if len(key) == KEY_BYTES:
                    if path.stat().st_mode & 0o077:  # a restored or copied one may let others read it
                        path.chmod(0o600)
                    return key
                # An empty one is what a full disk leaves.
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
