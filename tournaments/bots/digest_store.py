"""Store of directories under digests: added whole, replaced when damaged, removed when nobody needs them.

Below the store's root::

    ab12.../       an entry, which its subclass fills and verifies; some stores have a folder ``ab`` above it
    incoming/      entries that are being written, and those that are being removed

An entry appears by one rename, when all of it is on the disk.  A writer holds a lock on its directory in
``incoming`` for as long as it lives, so that the files of a killed writer can be recognized and removed.
"""

import contextlib
import re
import secrets
import shutil
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator
from pathlib import Path

from tournaments.files.durable import FileLock, make_directory, remove, sync, sync_tree

DIGEST = re.compile("[0-9a-f]{64}")
INCOMING = "incoming"
DIRECTORY_MODE = 0o755
"""Others may look into an entry: a confined bot has a user of its own."""
READABLE = 0o444


class DigestStore(ABC):
    """Entries below one directory.  Several processes and threads may use it at the same time."""

    ENTRIES = "*"
    """Pattern of the entries' paths below the root."""
    INCOMING_MODE = DIRECTORY_MODE

    def __init__(self, root: Path) -> None:
        """``root`` is created if needed.  Raises OSError."""
        self.root = root
        self._incoming = root / INCOMING
        for folder in (root, self._incoming):
            make_directory(folder, DIRECTORY_MODE)
        self._incoming.chmod(self.INCOMING_MODE)

    def entry(self, digest: str) -> Path:
        """Return the directory of an entry, whether it exists or not."""
        return self.root / digest

    @abstractmethod
    def is_sound(self, digest: str) -> bool:
        """Read an entry; return whether it exists and is unchanged since it was added."""

    def digests(self) -> Iterator[str]:
        """Yield the digests of all entries in ascending order."""
        for path in sorted(self.root.glob(self.ENTRIES)):
            if DIGEST.fullmatch(path.name):
                yield path.name

    @contextlib.contextmanager
    def adding(self, digest: str) -> Iterator[Path]:
        """Provide a new directory, which becomes the entry if the block succeeds, and is removed otherwise.

        It replaces an entry that is not sound.  If another writer has added a sound one meanwhile, that one
        stays.  Raises OSError.
        """
        place = self.entry(digest)
        with self._new_directory() as new:
            yield new
            _make_readable(new)
            sync_tree(new)
            make_directory(place.parent, DIRECTORY_MODE)
            with FileLock(self.root):
                if not self.is_sound(digest):
                    if place.exists():
                        self._discard(digest)
                    new.rename(place)
        self._sync_names(digest)

    def _sweep(self, keep: Collection[str] | None = None) -> int:
        """Remove what killed writers left, and entries that are not in ``keep``; return their number.

        Without ``keep`` all entries stay.  Writers that live are left alone.  Raises OSError.
        """
        if keep is not None:
            with FileLock(self.root):
                for digest in set(self.digests()).difference(keep):
                    self._set_aside(digest)
        swept = 0
        for path in sorted(self._incoming.iterdir()):
            with contextlib.suppress(BlockingIOError, FileNotFoundError), FileLock(path, wait=False) as lock:
                if lock.is_in_place():  # and not moved in, just before it was locked
                    remove(path)
                    swept += 1
        return swept

    @contextlib.contextmanager
    def _new_directory(self) -> Iterator[Path]:
        """Provide a new, locked directory, which is removed at the end if it is still there."""
        while True:
            path = self._incoming / secrets.token_hex(16)
            path.mkdir(DIRECTORY_MODE)
            with contextlib.suppress(FileNotFoundError):
                lock = FileLock(path)
                if lock.is_in_place():
                    break
                lock.close()  # it was swept before it was locked
        with lock:
            try:
                yield path
            finally:
                shutil.rmtree(path, ignore_errors=True)

    def _discard(self, digest: str) -> None:
        """Remove an entry that is not sound from its place; the root is locked."""
        shutil.rmtree(self._set_aside(digest), ignore_errors=True)  # what is left of it is swept later

    def _set_aside(self, digest: str) -> Path:
        """Move an entry away: a partly removed one must not be found under its digest."""
        return self.entry(digest).rename(self._incoming / secrets.token_hex(16))

    def _sync_names(self, digest: str) -> None:
        """Write the directories that name an entry to the disk."""
        for folder in {self.entry(digest).parent, self.root}:
            sync(folder)


def _make_readable(top: Path) -> None:
    """Let all users read the files and directories below a directory, whatever the umask."""
    for path in (top, *top.rglob("*")):
        if path.is_symlink():
            continue
        if path.is_dir():
            path.chmod(DIRECTORY_MODE)
        elif path.is_file():
            path.chmod(path.stat().st_mode | READABLE)
