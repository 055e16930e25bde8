"""Reader of the files that a bot has written in its working directory, for its author.

The contents are hostile.  They are read after the bot's end, through a descriptor of the directory, without
following links, and only plain files are opened.
"""

import os
import stat
from collections.abc import Iterator

from referee.judge.results import KeptFile
from referee.sandbox.held_directories import HeldDirectories

MAX_KEPT_BYTES = 1 << 20
MAX_KEPT_FILES = 100
"""Most bytes and files kept of one bot in one game."""
MAX_SEEN_FILES = 20_000
"""Most files examined: twice as many as a bot may make."""
MAX_DEPTH = 32
"""Maximum depth of folders; each is an open descriptor."""
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


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
