"""Backups of a data directory, whether its server runs or not.

The order of the copies matters.  Games are copied before the course, since the players of a game are entered
in the course before it.  Databases are copied before files: a submission's files are on the disk before the
course refers to them, and neither they nor built bots are ever changed.  So every name and every digest in
the copy leads to something in the copy.  Later additions may be in the copy too, and do no harm.
"""

import contextlib
import hashlib
import io
import os
import stat
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import IO

from tournaments.course.backup.manifest import NAME, BackupError, Kept, Manifest
from tournaments.course.backup.restore import UNFINISHED, verify
from tournaments.course.backup.snapshots import copy_database, rows_of
from tournaments.files.durable import replacing, working_directory

COURSE_FILE = "course.db"
STORES = "competitions/*/results.db"
"""Pattern of the competitions' databases, if they are SQLite's."""
COMPANIONS = ("-wal", "-shm", "-journal")
"""Endings of the files that SQLite keeps beside a database; a copy needs none of them."""
LOCKS = ("lock", ".lock")
"""Files that are left out.  Without the lock of a tournament's directory, which has the machine's boot id, a
restored server compares all files of games with the store, and writes anew what differs."""
LEFT_OUT = ("submissions/incoming", "bots/incoming", "scratch", "cluster", "identity", "lost+found")
"""Entries that are left out: submissions and builds that are not complete; the engine's named pipes; a
cluster's credentials and logs, which are created again; the identity, since a restored directory is another
one; the directory of a file system's root, which only root can read."""
PART = ".part"
"""Ending of files and folders that are not complete: see ``files.durable`` and ``results.game_files``."""
STUDENTS_FILES = ("submissions/", "bots/")
"""Folders with files of students, whose names mean nothing here: a bot may have a file ``lock`` or
``weights.part``, without which its submission would be damaged."""
PART_NAME = "backup.tar"
"""Name of the backup as long as it is not complete."""
PRIVATE = 0o600
"""A backup holds password hashes, the server's secret and students' work."""


def back_up(data: Path, target: Path, *, databases_inside: bool, version: str, now: datetime) -> Manifest:
    """Write the content of a data directory into one new file.

    The file appears under its name when all of it was read again and verified, and is on the disk.
    ``databases_inside`` is true if the databases are SQLite's, below ``data``.  ``now`` is in UTC.  Raises
    BackupError; then there is no file.
    """
    data, target = data.resolve(), target.resolve()
    _check(data, target)
    try:
        with (
            working_directory(target.parent, UNFINISHED) as folder,
            replacing(target, PRIVATE, part=folder / PART_NAME) as out,
        ):
            copies = _copies(data, folder) if databases_inside else {}
            manifest = Manifest(
                now.astimezone(UTC).isoformat(timespec="seconds"),
                version,
                databases_inside,
                rows={path: rows_of(copy) for path, copy in copies.items()},
            )
            manifest = _write(out, data, copies, manifest)
            out.flush()
            if verify(folder / PART_NAME) != manifest:
                raise BackupError(f"{target} is not what was written: is the disk sound?")
    except OSError as error:
        raise BackupError(f"no backup was made: {error.filename or target}: {error.strerror}") from error
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


def _write(out: IO[bytes], data: Path, copies: dict[str, Path], manifest: Manifest) -> Manifest:
    """Write the archive; return the manifest with all files that are in it."""
    files: dict[str, Kept] = {}
    directories: dict[str, int] = {}
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, entry in _entries(data, data):
            if path in copies:
                files[path] = _add(archive, path, copies[path].open("rb"))
                continue
            # A competition that was made meanwhile; the restored server makes a missing store.
            if manifest.databases_inside and PurePosixPath("/", path).match(f"/{STORES}"):
                continue
            with contextlib.suppress(FileNotFoundError):  # removed meanwhile
                if entry.is_dir():
                    directories[path] = stat.S_IMODE(entry.stat().st_mode)
                else:
                    files[path] = _add(archive, path, entry.open("rb"))
        manifest = replace(manifest, files=files, directories=directories)
        text = manifest.to_json().encode()
        member = tarfile.TarInfo(NAME)
        member.size, member.mode = len(text), PRIVATE
        archive.addfile(member, io.BytesIO(text))
    return manifest


def _entries(folder: Path, data: Path) -> Iterator[tuple[str, Path]]:
    """Yield the entries to keep below a folder, sorted: directories, each before its content, and files."""
    try:
        entries = sorted(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):  # removed meanwhile
        return
    for entry in entries:
        path = entry.relative_to(data).as_posix()
        if path in LEFT_OUT or (not path.startswith(STUDENTS_FILES) and _is_temporary(entry)):
            continue
        if entry.is_symlink() and folder != data:  # only the configuration may be a link
            continue
        if entry.is_dir():
            yield path, entry
            yield from _entries(entry, data)
        elif entry.is_file():
            yield path, entry


def _is_temporary(entry: Path) -> bool:
    """Return True for a file of Kalarena's own that no restored server needs."""
    is_lock = entry.name in LOCKS and entry.is_file()
    return is_lock or entry.name.endswith((PART, *(f".db{end}" for end in COMPANIONS)))


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

    def __init__(self, file: IO[bytes], on_block: Callable[[bytes], None]) -> None:
        self._file = file
        self._on_block = on_block

    def read(self, size: int = -1) -> bytes:
        """Read a block, as ``io.RawIOBase.read`` does."""
        block = self._file.read(size)
        self._on_block(block)
        return block
