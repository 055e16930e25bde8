"""Verification of backups, and restoration of data directories from them."""

import contextlib
import hashlib
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

from tournaments.course.backup.manifest import NAME, BackupError, Kept, Manifest, check_path
from tournaments.course.backup.snapshots import rows_of
from tournaments.files.durable import new_file, sync, sync_tree, working_directory

UNFINISHED = ".kalarena-backup-"
"""Prefix of the directories, beside the result, in which a backup is written or restored."""
BLOCK = 1 << 20
MOST_OF_MANIFEST = 1 << 28
"""Maximum bytes of a manifest; that of a course with 100,000 files has a tenth of them."""


def verify(archive: Path) -> Manifest:
    """Read and verify all of a backup; return its manifest.  Raises BackupError."""
    return _read(archive, lambda _path, _mode: contextlib.nullcontext(lambda _block: None))


def restore(archive: Path, target: Path) -> Manifest:
    """Restore a data directory from a backup.  Raises BackupError; then ``target`` is unchanged.

    ``target`` must be empty or missing.  The directory is written beside it, verified, and then renamed.
    """
    target = target.resolve()
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise BackupError(f"{target} is there already and not empty: restore into another directory")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with working_directory(target.parent, UNFINISHED) as folder:
            part = folder / "data"
            part.mkdir(mode=0o700)  # as a server makes its data directory
            manifest = _read(archive, lambda path, mode: _new_file(part, path, mode))
            for path, mode in manifest.directories.items():
                (part / path).mkdir(parents=True, exist_ok=True)
                (part / path).chmod(mode)
            for path, rows in manifest.rows.items():
                if rows_of(part / path) != rows:
                    raise BackupError(f"{archive}: the tables of {path} are not those that were backed up")
            sync_tree(part)
            part.rename(target)  # over an empty directory, too
            sync(target.parent)
    except OSError as error:
        raise BackupError(f"nothing was restored: {error.filename or target}: {error.strerror}") from error
    return manifest


_Sink = Callable[[bytes], object]


@contextlib.contextmanager
def _new_file(folder: Path, path: str, mode: int) -> Iterator[_Sink]:
    place = folder / path
    place.parent.mkdir(parents=True, exist_ok=True)
    with new_file(place, mode) as file:
        yield file.write


def _read(path: Path, sink_of: Callable[[str, int], contextlib.AbstractContextManager[_Sink]]) -> Manifest:
    """Read an archive from beginning to end; return its manifest, which is the last member."""
    found: dict[str, Kept] = {}
    try:
        with tarfile.open(path, "r|*") as archive:
            for member in archive:
                file = archive.extractfile(member) if member.isreg() else None
                if file is None:
                    raise BackupError(f"{path}: {member.name!r} is no file: this is no backup of kalarena's")
                if member.name == NAME:
                    return _checked(path, Manifest.from_json(file.read(MOST_OF_MANIFEST)), found)
                check_path(member.name)
                digest = hashlib.sha256()
                with sink_of(member.name, member.mode) as sink:
                    while block := file.read(BLOCK):
                        digest.update(block)
                        sink(block)
                found[member.name] = Kept(member.size, digest.hexdigest(), member.mode)
    except BackupError as error:
        text = str(error)
        raise BackupError(text if text.startswith(str(path)) else f"{path}: {text}") from error
    except (tarfile.TarError, EOFError) as error:
        raise BackupError(f"{path} is no backup, or only a part of one: {error}") from error
    raise BackupError(f"{path} is no backup, or only a part of one: it does not say what is in it")


def _checked(path: Path, manifest: Manifest, found: dict[str, Kept]) -> Manifest:
    """Return the manifest if it lists exactly the files that were found.  Raises BackupError."""
    wrong = sorted(name for name in {*found, *manifest.files} if found.get(name) != manifest.files.get(name))
    if wrong:
        raise BackupError(f"{path}: {len(wrong)} files are not what was backed up, the first is {wrong[0]}")
    return manifest
