"""Backups of a data directory, while the server runs or not.

The order matters.  Games are copied before the course: the players of a game were entered in the course
before it.  Databases are copied before files: a submission's files are on the disk before the course refers
to them, and neither they nor built bots are ever changed.  So every name and every digest in the copy leads
to something in the copy; later additions may be there too, and harm nothing.
"""

import contextlib
import hashlib
import io
import os
import stat
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from tournaments.course.backup.manifest import NAME, BackupError, Kept, Manifest
from tournaments.course.backup.restore import verify
from tournaments.course.backup.snapshots import copy_database, rows_of

COURSE_FILE = "course.db"
STORES = "competitions/*/results.db"
"""The databases of a data directory, where they are SQLite's."""
COMPANIONS = ("-wal", "-shm", "-journal")
"""Endings of the files that SQLite keeps beside a database; a copy needs none of them."""
LOCKS = ("lock", ".lock")
UNFINISHED = ("submissions/incoming", "scratch", "cluster")
"""Folders that are left out: submissions being written, which do not count before they are moved; the
engine's named pipes; a cluster's credentials and logs, which are made again."""
PRIVATE = 0o600
"""A backup holds password hashes, the server's secret and students' work."""


def back_up(data: Path, target: Path, *, databases_inside: bool, version: str, now: datetime) -> Manifest:
    """Write the content of a data directory into one new file.  Raises BackupError; then there is no file.

    The file appears under its name when all of it is on the disk and was read again and verified.
    ``databases_inside`` is true if the databases are SQLite's, below ``data``.  ``now`` is in UTC.
    """
    data, target = data.resolve(), target.resolve()
    _check(data, target)
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with tempfile.TemporaryDirectory(prefix=".kalarena-backup-", dir=target.parent) as folder:
            copies = _copies(data, Path(folder)) if databases_inside else {}
            manifest = Manifest(
                now.astimezone(UTC).isoformat(timespec="seconds"),
                version,
                databases_inside,
                rows={path: rows_of(copy) for path, copy in copies.items()},
            )
            manifest = _write(part, data, copies, manifest)
        if verify(part) != manifest:
            raise BackupError(f"{part} is not what was written: is the disk sound?")
        part.rename(target)
        _sync(target.parent)
    except OSError as error:
        raise BackupError(f"no backup was made: {error.filename or target}: {error.strerror}") from error
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
    return manifest


def _check(data: Path, target: Path) -> None:
    if not data.is_dir():
        raise BackupError(f"{data} is no directory: say where the server's data are")
    if target.is_relative_to(data):
        raise BackupError(
            f"{target} would be in the directory that is backed up, and in every later backup: "
            "choose another place"
        )
    if target.exists():
        raise BackupError(f"{target} is there already: choose another name, or remove it first")
    if not target.parent.is_dir():
        raise BackupError(f"{target.parent} is no directory: make it first")


def _copies(data: Path, folder: Path) -> dict[str, Path]:
    """Copy each database below the data directory; return its path -> the copy."""
    found = [*sorted(data.glob(STORES)), data / COURSE_FILE]
    if not found[-1].is_file():
        raise BackupError(f"{data} holds no {COURSE_FILE}: is it the data directory of a server?")
    copies = {}
    for number, path in enumerate(found):
        copy = folder / f"{number}.db"
        copy_database(path, copy)
        copies[path.relative_to(data).as_posix()] = copy
    return copies


def _write(part: Path, data: Path, copies: dict[str, Path], manifest: Manifest) -> Manifest:
    """Write the archive to the disk; return the manifest with all files that are in it."""
    files: dict[str, Kept] = {}
    directories: dict[str, int] = {}
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
    with os.fdopen(descriptor, "wb") as out:
        with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
            for path, entry in _entries(data, data):
                if path in copies:
                    files[path] = _add(archive, path, copies[path].open("rb"))
                elif entry.is_dir():
                    directories[path] = stat.S_IMODE(entry.stat().st_mode)
                else:
                    with contextlib.suppress(FileNotFoundError):  # a temporary file, gone meanwhile
                        files[path] = _add(archive, path, entry.open("rb"))
            manifest = replace(manifest, files=files, directories=directories)
            text = manifest.to_json().encode()
            member = tarfile.TarInfo(NAME)
            member.size, member.mode = len(text), PRIVATE
            archive.addfile(member, io.BytesIO(text))
        out.flush()
        os.fsync(out.fileno())
    return manifest


def _entries(folder: Path, data: Path) -> Iterator[tuple[str, Path]]:
    """Yield the entries to keep below a folder, sorted: directories, each before its content, and files."""
    for entry in sorted(folder.iterdir()):
        path = entry.relative_to(data).as_posix()
        if path in UNFINISHED or entry.name.endswith(tuple(f".db{end}" for end in COMPANIONS)):
            continue
        if entry.is_symlink() and folder != data:  # the configuration may be linked to, nothing else is
            continue
        if entry.is_dir():
            yield path, entry
            yield from _entries(entry, data)
        elif entry.is_file() and not (entry.name in LOCKS and entry.stat().st_size == 0):
            yield path, entry


def _add(archive: tarfile.TarFile, path: str, file: IO[bytes]) -> Kept:
    """Add an open file to the archive, and close the file."""
    with file:
        status = os.fstat(file.fileno())
        member = tarfile.TarInfo(path)
        member.size, member.mode, member.mtime = status.st_size, stat.S_IMODE(status.st_mode), status.st_mtime
        digest = hashlib.sha256()
        archive.addfile(member, _Counted(file, digest.update))
        return Kept(member.size, digest.hexdigest(), member.mode)


class _Counted(io.RawIOBase):
    """A file that calls a function with each block that is read."""

    def __init__(self, file: IO[bytes], told: Callable[[bytes], None]) -> None:
        self._file = file
        self._told = told

    def read(self, size: int = -1) -> bytes:
        """Read a block, as ``io.RawIOBase.read`` does."""
        block = self._file.read(size)
        self._told(block)
        return block


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
