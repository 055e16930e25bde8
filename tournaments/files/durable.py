"""Locks between processes, and files that are complete on the disk or absent, even after a kill."""

import contextlib
import ctypes
import fcntl
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO


class FileLock:
    """Lock (``flock``) of a file or directory, held from its creation until ``close``.

    It excludes other processes and other threads.  It ends with the process, however the process ends.
    """

    def __init__(
        self, path: Path, *, create: int | None = None, shared: bool = False, wait: bool = True
    ) -> None:
        """Open the file, which must exist unless ``create`` is the mode of a new one, and lock it.

        Raises BlockingIOError if another holder has the lock and ``wait`` is false; OSError.
        """
        self.path = path
        # Never O_CREAT for a directory: one that was removed just now would become a file.  NFS gives an
        # exclusive lock of a file only to a writer.
        flags = os.O_RDONLY if create is None else os.O_RDWR | os.O_CREAT
        self.descriptor = os.open(path, flags | os.O_CLOEXEC, create or 0)
        try:
            kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
            fcntl.flock(self.descriptor, kind if wait else kind | fcntl.LOCK_NB)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Release the lock."""
        os.close(self.descriptor)

    def __enter__(self) -> "FileLock":
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def is_in_place(self) -> bool:
        """Return whether the path still leads to the locked file, and not to another one or to none."""
        with contextlib.suppress(FileNotFoundError):
            return os.path.samestat(os.fstat(self.descriptor), self.path.stat())
        return False


@contextlib.contextmanager
def os_errors_as(error_type: Callable[[str], Exception], failure: str) -> Iterator[None]:
    """Raise an OSError of the block as another exception: the text ``failure``, and the system's reason."""
    try:
        yield
    except OSError as error:
        raise error_type(f"{failure}: {error.strerror}") from error


@contextlib.contextmanager
def new_file(path: Path, mode: int | None = None) -> Iterator[IO[bytes]]:
    """Provide a new file; with ``mode`` it has that mode whatever the umask.  Raises FileExistsError.

    Other users cannot read a file with a mode before it is complete.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o666 if mode is None else 0o600), "wb") as file:
        yield file
        if mode is not None:
            os.fchmod(file.fileno(), mode)


@contextlib.contextmanager
def replacing(path: Path, mode: int | None = None, *, part: Path | None = None) -> Iterator[IO[bytes]]:
    """Provide a new file that replaces the one at ``path`` when the block ends, and is on the disk then.

    If the block fails, ``path`` is unchanged.  The file is written as ``part``, by default ``path`` with the
    suffix ``.part``; such a file of a killed process is removed first.
    """
    if part is None:
        part = path.with_name(f"{path.name}.part")
    part.unlink(missing_ok=True)
    try:
        with new_file(part, mode) as file:
            yield file
        sync(part)
        part.replace(path)
        sync(path.parent)
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        raise


WORKING_LOCK = "lock"
"""Name of the file in a working directory that its process holds a lock of, for as long as it lives."""


@contextlib.contextmanager
def working_directory(parent: Path, prefix: str) -> Iterator[Path]:
    """Provide a new directory in ``parent`` for this user alone, which is removed when the block ends.

    The working directories with the same prefix whose processes were killed are removed first.  Raises
    OSError.
    """
    _remove_abandoned(parent, prefix)
    with contextlib.ExitStack() as stack:
        while True:
            directory = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
            stack.callback(shutil.rmtree, directory, ignore_errors=True)
            try:
                lock = stack.enter_context(FileLock(directory / WORKING_LOCK, create=0o600))
            except OSError:  # the file system has no locks: without this file, nobody removes the directory
                (directory / WORKING_LOCK).unlink(missing_ok=True)
                break
            if lock.is_in_place():  # and not removed by another process just before it was locked
                break
        yield directory


def _remove_abandoned(parent: Path, prefix: str) -> None:
    """Remove the working directories that nobody holds a lock of; what cannot be removed is left."""
    for directory in parent.glob(f"{prefix}*"):
        path = directory / WORKING_LOCK
        with contextlib.suppress(OSError):  # BlockingIOError, too
            if directory.is_symlink() or not path.is_file():
                continue
            with FileLock(path, create=0o600, wait=False) as lock:  # a writer, see FileLock
                if lock.is_in_place():
                    shutil.rmtree(directory)


def write_file(path: Path, content: bytes, mode: int | None = None) -> None:
    """Write a file, which replaces the previous one as a whole.  Raises OSError."""
    with replacing(path, mode) as file:
        file.write(content)


def sync(path: Path) -> None:
    """Write a file's content, or a directory's entries, to the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(top: Path) -> None:
    """Write a directory with all its files and directories to the disk.  Links are not followed."""
    for folder, _, names in os.walk(top):
        for path in (Path(folder, name) for name in names):
            if path.is_file() and not path.is_symlink():
                sync(path)
        sync(Path(folder))


def sync_filesystem(path: Path) -> None:
    """Write all files of the file system of a directory to the disk (syncfs(2)).  Raises OSError.

    Many small files are on the disk sooner than by ``sync_tree``, which waits for the disk for each of them.
    """
    if sys.platform != "linux":
        os.sync()
        return
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if ctypes.CDLL(None, use_errno=True).syncfs(descriptor) != 0:
            error = ctypes.get_errno()
            raise OSError(error, os.strerror(error), str(path))
    finally:
        os.close(descriptor)


def remove(path: Path) -> None:
    """Remove a file or link, or a directory with everything in it.  A missing file is no error."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def make_directory(path: Path, mode: int) -> None:
    """Create a directory with a mode, whatever the umask, unless it exists; its name is on the disk then."""
    if path.is_dir():
        return
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(mode)
    sync(path.parent)
