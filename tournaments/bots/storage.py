"""The files of submissions, kept under the digest of what they hold.

Below the store's directory::

    ab/ab12.../manifest    a line for each file; its SHA-256 is the digest
    ab/ab12.../files/      the files, read-only; this is what a bot is run from
    incoming/              submissions that are being written
    damaged/               submissions that were found to be changed, moved out of the way
    lock                   held while something damaged is replaced

A submission appears by one rename, when all of it is on the disk, and is never changed after that.  A writer
holds a lock on its directory in ``incoming`` for as long as it lives, which distinguishes the files of a
killed writer from those that are still being written.

The digest is not the one of ``tournaments.bots.resolve``.  That one identifies the program that played: it is
taken after the build, and leaves out permissions and some folders.  Two uploads that differ there only are
different content, which one address must not stand for.
"""

import contextlib
import fcntl
import hashlib
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tournaments.bots.upload.names import check_structure
from tournaments.bots.upload.upload import SubmittedFile

DIGEST = re.compile("[0-9a-f]{64}")
MANIFEST = "manifest"
FILES = "files"
FIRST_LINE = "kalarena submission 1"
"""Of a manifest, so that its form can change without one digest having two meanings."""

DIRECTORY_MODE = 0o755
"""Others may look: a confined bot has a user of its own."""
FILE_MODE, EXECUTABLE_MODE = 0o444, 0o555
"""Nobody may write, not even by mistake."""
INCOMING_MODE = 0o700


class ContentError(Exception):
    """The store cannot keep or give a submission; the message says why."""


class MissingContentError(ContentError):
    """The store has no submission of that digest."""


class DamagedContentError(ContentError):
    """A kept submission differs from what was put in: the disk failed, or somebody changed it."""


def manifest_of(files: Iterable[SubmittedFile]) -> bytes:
    """Return a submission's manifest: execute permission, size, SHA-256 and path of each file.

    Raises ValueError for paths that cannot be kept; ``archive`` lets none of them through.
    """
    lines = {}
    for file in files:
        check_structure(file.path)
        if file.path in lines or "\n" in file.path or "\0" in file.path:
            raise ValueError(f"{file.path!r} cannot be kept: it is there twice, or has a line end or NUL")
        content = hashlib.sha256(file.content).hexdigest()
        lines[file.path] = f"{'x' if file.executable else '-'} {len(file.content)} {content} {file.path}\n"
    return "".join([FIRST_LINE + "\n", *(lines[path] for path in sorted(lines))]).encode()


def content_digest(files: Iterable[SubmittedFile]) -> str:
    """Return the SHA-256, in hexadecimal, of the manifest of files; their order does not matter."""
    return hashlib.sha256(manifest_of(files)).hexdigest()


class ContentStore:
    """Submissions below one directory.  Several processes and threads may use it at the same time."""

    def __init__(self, root: Path) -> None:
        """``root`` is made if it is not there.  Raises ContentError."""
        self.root = root
        try:
            _make_directory(root)
            _make_directory(self._incoming)
            self._incoming.chmod(INCOMING_MODE)
        except OSError as error:
            raise ContentError(f"{root}: submissions cannot be kept here: {error.strerror}") from error

    @property
    def _incoming(self) -> Path:
        return self.root / "incoming"

    def put(self, files: Sequence[SubmittedFile]) -> str:
        """Keep files and return their digest.  They are on the disk when this method returns.

        Files that are kept already are verified, and replaced if they are damaged.  Raises ContentError, and
        leaves nothing behind then; ValueError as ``manifest_of``.
        """
        manifest = manifest_of(files)
        digest = hashlib.sha256(manifest).hexdigest()
        place = self._place(digest)
        try:
            if not self._is_sound(digest):
                _make_directory(place.parent)
                with self._incoming_directory() as new:
                    _write_new(new, manifest, files)
                    self._move_in(new, digest)
            # A writer that was killed may have moved it in, and not got to this.
            _sync(place.parent)
            _sync(self.root)
        except OSError as error:
            raise ContentError(f"{self.root}: the submission cannot be kept: {error.strerror}") from error
        return digest

    def path(self, digest: str) -> Path:
        """Return the directory that holds the files of a submission.  They are not read: see ``verify``.

        Raises MissingContentError.
        """
        files = self._place(digest) / FILES
        if not files.is_dir():
            raise MissingContentError(f"{self.root}: there is no submission {digest}")
        return files

    def read(self, digest: str) -> tuple[SubmittedFile, ...]:
        """Return the files of a submission, by path, each of them verified.

        Raises MissingContentError, DamagedContentError.
        """
        top = self.path(digest)
        self._verify_names(digest)
        return tuple(
            SubmittedFile(path, self._content(digest, top / path, path, size, content), executable)
            for path, executable, size, content in self._manifest(digest)
        )

    def verify(self, digest: str) -> None:
        """Read a submission, and compare all of it with its digest.

        Raises MissingContentError, DamagedContentError.
        """
        top = self.path(digest)
        self._verify_names(digest)
        for path, _, size, content in self._manifest(digest):
            self._content(digest, top / path, path, size, content)

    def digests(self) -> Iterator[str]:
        """Yield the digests of all kept submissions in ascending order."""
        for folder in sorted(self.root.glob("[0-9a-f][0-9a-f]")):
            yield from (path.name for path in sorted(folder.iterdir()) if DIGEST.fullmatch(path.name))

    def sweep(self) -> int:
        """Remove the directories of killed writers; return their number.  Writers that live are left alone.

        Raises ContentError.
        """
        swept = 0
        try:
            for path in sorted(self._incoming.iterdir()):
                with contextlib.suppress(BlockingIOError, FileNotFoundError), _locked(path, wait=False):
                    _remove(path)
                    swept += 1
        except OSError as error:
            raise ContentError(f"{self._incoming}: cannot be swept: {error.strerror}") from error
        return swept

    def _place(self, digest: str) -> Path:
        if not DIGEST.fullmatch(digest):
            raise MissingContentError(f"{digest[:80]!r} is no digest: 64 hexadecimal digits are")
        return self.root / digest[:2] / digest

    @contextlib.contextmanager
    def _incoming_directory(self) -> Iterator[Path]:
        """Provide a new, locked directory, which is removed at the end if it is still there."""
        while True:
            path = self._incoming / secrets.token_hex(16)
            path.mkdir(DIRECTORY_MODE)
            with contextlib.suppress(FileNotFoundError):
                lock = contextlib.ExitStack()
                lock.enter_context(_locked(path))
                if path.exists():
                    break
                lock.close()  # swept between the two calls, before it was ours
        with lock:
            try:
                yield path
            finally:
                shutil.rmtree(path, ignore_errors=True)

    def _move_in(self, new: Path, digest: str) -> None:
        """Make a complete directory the submission, unless another writer was faster."""
        place = self._place(digest)
        try:
            new.rename(place)  # fails if there is a directory that is not empty
            return
        except OSError:
            if not place.is_dir():
                raise
        with _locked(self.root / "lock", make=True):
            if self._is_sound(digest):
                return
            damaged = self.root / "damaged"
            _make_directory(damaged)
            with contextlib.suppress(FileNotFoundError):
                place.rename(damaged / f"{digest}-{secrets.token_hex(4)}")
            new.rename(place)

    def _is_sound(self, digest: str) -> bool:
        try:
            self.verify(digest)
        except (MissingContentError, DamagedContentError):
            return False
        return True

    def _damaged(self, digest: str, what: str) -> DamagedContentError:
        return DamagedContentError(f"{self.root}: submission {digest} is damaged: {what}; put it in again")

    def _manifest(self, digest: str) -> list[tuple[str, bool, int, str]]:
        """Return path, execute permission, size and SHA-256 of each file."""
        try:
            text = (self._place(digest) / MANIFEST).read_bytes()
        except OSError as error:
            raise self._damaged(digest, f"its manifest cannot be read: {error.strerror}") from error
        if hashlib.sha256(text).hexdigest() != digest:
            raise self._damaged(digest, "its manifest was changed")
        rows = (line.split(" ", 3) for line in text.decode().split("\n")[1:-1])
        return [(path, kind == "x", int(size), content) for kind, size, content, path in rows]

    def _verify_names(self, digest: str) -> None:
        """Raise DamagedContentError unless exactly the files of the manifest exist, with their modes."""
        expected: dict[str, int] = {}
        for path, executable, _, _ in self._manifest(digest):
            expected[path] = stat.S_IFREG | (EXECUTABLE_MODE if executable else FILE_MODE)
            while (path := path.rpartition("/")[0]) not in ("", *expected):
                expected[path] = stat.S_IFDIR | DIRECTORY_MODE
        try:
            found = dict(_walk(self._place(digest) / FILES, ""))
        except OSError as error:
            raise self._damaged(digest, f"it cannot be read: {error.strerror}") from error
        for path in sorted(expected.keys() | found.keys()):
            if path not in found:
                raise self._damaged(digest, f"{path!r} is missing")
            if path not in expected:
                raise self._damaged(digest, f"{path!r} was added")
            if expected[path] != found[path]:
                raise self._damaged(digest, f"{path!r} has the mode {found[path]:o}, not {expected[path]:o}")

    def _content(self, digest: str, file: Path, path: str, size: int, content: str) -> bytes:
        try:
            # Not through a link that somebody put there since the names were verified.
            descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            with os.fdopen(descriptor, "rb") as opened:
                data = opened.read(size + 1)
        except OSError as error:
            raise self._damaged(digest, f"{path!r} cannot be read: {error.strerror}") from error
        if len(data) != size or hashlib.sha256(data).hexdigest() != content:
            raise self._damaged(digest, f"{path!r} was changed")
        return data


@contextlib.contextmanager
def _locked(path: Path, *, wait: bool = True, make: bool = False) -> Iterator[None]:
    """Hold the lock of a directory or file; ``make`` makes the file.  It ends with the process, too.

    Raises BlockingIOError if another one holds it and we do not ``wait``; OSError.
    """
    # Never O_CREAT for a directory: one that was swept just now would become a file.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | (os.O_CREAT if make else 0), 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield
    finally:
        os.close(descriptor)


def _make_directory(path: Path) -> None:
    """Make a directory that others may look into, unless it is there; its name is on the disk then."""
    if path.is_dir():
        return
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(DIRECTORY_MODE)  # whatever the umask is
    _sync(path.parent)


def _write_new(top: Path, manifest: bytes, files: Iterable[SubmittedFile]) -> None:
    """Write a submission into an empty directory, and everything to the disk."""
    folders = [top, top / FILES]
    paths = [top / MANIFEST]
    (top / FILES).mkdir()
    for file in files:
        path = top / FILES / file.path
        missing = []
        while not path.parent.is_dir():
            path = path.parent
            missing.append(path)
        for folder in reversed(missing):
            folder.mkdir()
        folders += missing
        paths.append(top / FILES / file.path)
        _write_file(paths[-1], file.content, EXECUTABLE_MODE if file.executable else FILE_MODE)
    _write_file(top / MANIFEST, manifest, FILE_MODE)
    # All is written before the first wait for the disk, which then has much of it to do at once.
    for path in paths:
        _sync(path)
    for folder in folders:
        folder.chmod(DIRECTORY_MODE)
        _sync(folder)


def _write_file(path: Path, content: bytes, mode: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        os.fchmod(descriptor, mode)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:  # not ours, but it is in the way
        path.unlink()


def _sync(path: Path) -> None:
    """Write a file's content, or a directory's entries, to the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _walk(folder: Path, prefix: str) -> Iterator[tuple[str, int]]:
    """Yield path and mode of everything below a directory; links are not followed."""
    with os.scandir(folder) as entries:
        for entry in entries:
            mode = entry.stat(follow_symlinks=False).st_mode
            yield prefix + entry.name, mode
            if stat.S_ISDIR(mode):
                yield from _walk(Path(entry.path), f"{prefix}{entry.name}/")
