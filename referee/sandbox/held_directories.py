"""Descriptors of the directories that a confined bot can write, and the files that it has written there.

The directories are opened before a program of the bot starts.  An open descriptor keeps a file system in
memory until it is closed, also after the end of the sandbox.  The contents are hostile: they are read after
the bot's end, without following links, and only plain files are opened.
"""

import contextlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from referee.errors import RefereeError
from referee.judge.record_rows import KeptFile
from referee.sandbox.visible_files import SCRATCH
from referee.sandbox.working_directory import WorkingDirectory

HOME, TMP = "$HOME", "/tmp"
WORKING_DIRECTORY = "its working directory"

MAX_KEPT_BYTES = 1 << 20
MAX_KEPT_FILES = 100
"""Most bytes and files kept of one bot in one game."""
MAX_SEEN_FILES = 20_000
"""Most files examined: twice as many as a bot may make."""
MAX_DEPTH = 32
"""Maximum depth of folders; each is an open descriptor."""
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(slots=True)
class HeldDirectories:
    """The writable directories of one sandbox.  The caller must ``close`` them."""

    plan: WorkingDirectory | None
    working: int | None = None
    """Descriptor of the working directory; None where that is read-only."""
    _others: dict[str, int] = field(default_factory=dict)
    _submitted: int = 0
    """Number of files, folders and links of the submission."""

    @classmethod
    def open(cls, pid: int, plan: WorkingDirectory | None) -> "HeldDirectories":
        """Open the directories of a complete sandbox, and finish the working directory.

        ``pid`` is the sandbox's first process.  Raises RefereeError if that cannot be done.
        """
        held = cls(plan)
        try:
            for name, path in ((HOME, SCRATCH), (TMP, TMP)):
                held._others[name] = _open(pid, Path(path))
            if plan is not None:
                held.working = _open(pid, plan.path)
                plan.finish(held.working)
                held._submitted = _inodes(held.working)
        except OSError as error:
            held.close()
            raise RefereeError(f"a bot's directory could not be opened: {error}") from error
        except BaseException:
            held.close()
            raise
        return held

    def new_files(self) -> int:
        """Return the number of files and folders in the working directory beyond those of the submission."""
        return 0 if self.working is None else max(0, _inodes(self.working) - self._submitted)

    def full(self) -> tuple[str, ...]:
        """Return the names of the directories that have no space left."""
        return tuple(name for name, descriptor in self._all().items() if not os.fstatvfs(descriptor).f_bavail)

    def close(self) -> None:
        """Close all descriptors; if the sandbox has ended, the contents are freed."""
        for descriptor in self._all().values():
            with contextlib.suppress(OSError):
                os.close(descriptor)
        self._others.clear()
        self.working = None

    def _all(self) -> dict[str, int]:
        return {**({} if self.working is None else {WORKING_DIRECTORY: self.working}), **self._others}


def _open(pid: int, path: Path) -> int:
    return os.open(f"/proc/{pid}/root{path}", os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def _inodes(directory: int) -> int:
    found = os.fstatvfs(directory)
    return found.f_files - found.f_ffree


def written_files(directories: HeldDirectories) -> tuple[KeptFile, ...]:
    """Return the new and changed files of the working directory, as many as the bounds allow.

    The end is kept of a file that is larger than the space left.  All processes of the bot must have ended.
    """
    if directories.working is None or directories.plan is None:
        return ()
    submitted = directories.plan.files
    left = MAX_KEPT_BYTES
    kept: list[KeptFile] = []
    for name, folder, status in _plain_files(directories.working):
        if name in directories.plan.bound and status.st_size == 0:
            continue  # the name that a read-only file was bound to
        if submitted.get(name) == (status.st_size, status.st_mtime_ns):
            continue
        content = _end_of(folder, name.rpartition("/")[2], left)
        if content is not None:
            kept.append(KeptFile(os.fsencode(name), content, status.st_size))
            left -= len(content)
        if len(kept) == MAX_KEPT_FILES:
            break
    return tuple(kept)


def _plain_files(directory: int) -> Iterator[tuple[str, int, os.stat_result]]:
    """Yield relative path, folder descriptor and status of each plain file, with the names in order."""
    left = MAX_SEEN_FILES

    def below(folder: int, prefix: str, depth: int) -> Iterator[tuple[str, int, os.stat_result]]:
        nonlocal left
        names = []
        with os.scandir(folder) as entries:
            for entry in entries:
                left -= 1
                if left < 0:
                    break
                names.append(entry.name)
        folders = []
        for name in sorted(names):
            try:
                status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            except OSError:
                continue
            if stat.S_ISREG(status.st_mode):
                yield prefix + name, folder, status
            elif stat.S_ISDIR(status.st_mode) and depth < MAX_DEPTH:
                folders.append(name)
        for name in folders:
            try:
                inner = os.open(name, FOLDER, dir_fd=folder)
            except OSError:
                continue
            try:
                yield from below(inner, f"{prefix}{name}/", depth + 1)
            finally:
                os.close(inner)

    return below(directory, "", 0)


def _end_of(folder: int, name: str, most: int) -> bytes | None:
    """Return the last bytes of a file; None if it cannot be read, or is not a plain file."""
    try:
        descriptor = os.open(name, FILE, dir_fd=folder)
    except OSError:
        return None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return None
        return os.pread(descriptor, most, max(0, status.st_size - most))
    except OSError:
        return None
    finally:
        os.close(descriptor)
