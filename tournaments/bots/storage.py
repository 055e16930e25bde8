"""Store of submissions' files, under the digest of their contents.

Below the store's directory::

    ab/ab12.../manifest    a line for each file; its SHA-256 is the digest
    ab/ab12.../files/      the files, read-only; bots are built from copies of them
    incoming/              submissions that are being written
    damaged/               submissions that were found to be changed

A submission is never changed after it appeared: see ``tournaments.bots.digest_store``.

The digest is not the one of ``tournaments.bots.resolve``.  That one identifies the program that played: it is
taken after the build, and leaves out permissions and some folders.  Two uploads that differ only there are
different contents, and need different digests.
"""

import hashlib
import os
import secrets
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from tournaments.bots.digest_store import DIGEST, DIRECTORY_MODE, DigestStore
from tournaments.bots.upload.limits import SubmittedFile
from tournaments.bots.upload.names import check_structure
from tournaments.files.durable import make_directory, new_file, os_errors_as

MANIFEST = "manifest"
FILES = "files"
FIRST_LINE = "kalarena submission 1"
"""First line of a manifest, so that its form can change without one digest having two meanings."""

FILE_MODE, EXECUTABLE_MODE = 0o444, 0o555
"""Nobody may write, not even by mistake."""


class ContentError(Exception):
    """The store cannot keep or return a submission; the message gives the reason."""


class MissingContentError(ContentError):
    """The store has no submission with that digest."""


class DamagedContentError(ContentError):
    """A kept submission was changed: the disk failed, or somebody changed it."""


def content_manifest(files: Iterable[SubmittedFile]) -> bytes:
    """Return a submission's manifest: execute permission, size, SHA-256 and path of each file.

    Raises ValueError for paths that cannot be kept; ``upload.archive`` accepts none of them.
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
    return hashlib.sha256(content_manifest(files)).hexdigest()


class ContentStore(DigestStore):
    """Submissions below one directory.  Several processes and threads may use it at the same time."""

    ENTRIES = "[0-9a-f][0-9a-f]/*"
    INCOMING_MODE = 0o700

    def __init__(self, root: Path) -> None:
        """``root`` is created if needed.  Raises ContentError."""
        with os_errors_as(ContentError, f"{root}: submissions cannot be kept here"):
            super().__init__(root)

    def entry(self, digest: str) -> Path:
        """Return the directory of a submission.  Raises MissingContentError for a text that is no digest."""
        if not DIGEST.fullmatch(digest):
            raise MissingContentError(f"{digest[:80]!r} is no digest: 64 hexadecimal digits are")
        return self.root / digest[:2] / digest

    def put(self, files: Sequence[SubmittedFile]) -> str:
        """Keep files and return their digest.  They are on the disk when this method returns.

        Files that are kept already are verified, and replaced if they are damaged.  Raises ContentError, and
        leaves nothing behind then; ValueError as ``content_manifest``.
        """
        manifest = content_manifest(files)
        digest = hashlib.sha256(manifest).hexdigest()
        with os_errors_as(ContentError, f"{self.root}: the submission cannot be kept"):
            if self.is_sound(digest):
                self._sync_names(digest)  # a writer that was killed may have moved it in, and no more
            else:
                with self.adding(digest) as new:
                    write_files(new / FILES, files, FILE_MODE, EXECUTABLE_MODE)
                    with new_file(new / MANIFEST, FILE_MODE) as file:
                        file.write(manifest)
        return digest

    def path(self, digest: str) -> Path:
        """Return the directory that holds the files of a submission.  They are not read: see ``verify``.

        Raises MissingContentError.
        """
        files = self.entry(digest) / FILES
        if not files.is_dir():
            raise MissingContentError(f"{self.root}: there is no submission {digest}")
        return files

    def read(self, digest: str) -> tuple[SubmittedFile, ...]:
        """Return the files of a submission, by path, each of them verified.

        Raises MissingContentError, DamagedContentError.
        """
        return tuple(self._verified(digest))

    def verify(self, digest: str) -> None:
        """Read a submission, and compare all of it with its digest.

        Raises MissingContentError, DamagedContentError.
        """
        for _ in self._verified(digest):
            pass

    def sweep(self) -> int:
        """Remove the directories of killed writers; return their number.  Writers that live are left alone.

        Raises ContentError.
        """
        with os_errors_as(ContentError, f"{self._incoming}: cannot be swept"):
            return self._sweep()

    def is_sound(self, digest: str) -> bool:
        """Read a submission; return whether all of it agrees with its digest."""
        try:
            self.verify(digest)
        except (MissingContentError, DamagedContentError):
            return False
        return True

    def _discard(self, digest: str) -> None:
        """Keep a damaged submission, which may show what damaged it."""
        damaged = self.root / "damaged"
        make_directory(damaged, DIRECTORY_MODE)
        self.entry(digest).rename(damaged / f"{digest}-{secrets.token_hex(4)}")

    def _damaged(self, digest: str, what: str) -> DamagedContentError:
        return DamagedContentError(f"{self.root}: submission {digest} is damaged: {what}; put it in again")

    def _verified(self, digest: str) -> Iterator[SubmittedFile]:
        """Yield the files of a submission, each compared with its manifest."""
        top = self.path(digest)
        rows = self._manifest(digest)
        self._verify_names(digest, {path: executable for path, executable, _, _ in rows})
        for path, executable, size, sha256 in rows:
            yield SubmittedFile(path, self._content(digest, top / path, path, size, sha256), executable)

    def _manifest(self, digest: str) -> list[tuple[str, bool, int, str]]:
        """Return path, execute permission, size and SHA-256 of each file."""
        try:
            text = (self.entry(digest) / MANIFEST).read_bytes()
        except OSError as error:
            raise self._damaged(digest, f"its manifest cannot be read: {error.strerror}") from error
        if hashlib.sha256(text).hexdigest() != digest:
            raise self._damaged(digest, "its manifest was changed")
        rows = (line.split(" ", 3) for line in text.decode().split("\n")[1:-1])
        return [(path, kind == "x", int(size), sha256) for kind, size, sha256, path in rows]

    def _verify_names(self, digest: str, executables: Mapping[str, bool]) -> None:
        """Raise DamagedContentError unless exactly these files exist, with their modes."""
        expected: dict[str, int] = {}
        for path, executable in executables.items():
            expected[path] = stat.S_IFREG | (EXECUTABLE_MODE if executable else FILE_MODE)
            while (path := path.rpartition("/")[0]) not in ("", *expected):
                expected[path] = stat.S_IFDIR | DIRECTORY_MODE
        try:
            found = dict(_walk(self.entry(digest) / FILES, ""))
        except OSError as error:
            raise self._damaged(digest, f"it cannot be read: {error.strerror}") from error
        for path in sorted(expected.keys() | found.keys()):
            if path not in found:
                raise self._damaged(digest, f"{path!r} is missing")
            if path not in expected:
                raise self._damaged(digest, f"{path!r} was added")
            if expected[path] != found[path]:
                raise self._damaged(digest, f"{path!r} has the mode {found[path]:o}, not {expected[path]:o}")

    def _content(self, digest: str, file: Path, path: str, size: int, sha256: str) -> bytes:
        try:
            # Not through a link that somebody put there since the names were verified.
            descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            with os.fdopen(descriptor, "rb") as opened:
                data = opened.read(size + 1)
        except OSError as error:
            raise self._damaged(digest, f"{path!r} cannot be read: {error.strerror}") from error
        if len(data) != size or hashlib.sha256(data).hexdigest() != sha256:
            raise self._damaged(digest, f"{path!r} was changed")
        return data


def write_files(folder: Path, files: Iterable[SubmittedFile], file_mode: int, executable_mode: int) -> None:
    """Write a submission's files into a new folder, which is created even for no files.  Raises OSError."""
    folder.mkdir()
    for submitted in files:
        path = folder / submitted.path
        path.parent.mkdir(parents=True, exist_ok=True)
        with new_file(path, executable_mode if submitted.executable else file_mode) as file:
            file.write(submitted.content)


def _walk(folder: Path, prefix: str) -> Iterator[tuple[str, int]]:
    """Yield path and mode of everything below a directory; links are not followed."""
    with os.scandir(folder) as entries:
        for entry in entries:
            mode = entry.stat(follow_symlinks=False).st_mode
            yield prefix + entry.name, mode
            if stat.S_ISDIR(mode):
                yield from _walk(Path(entry.path), f"{prefix}{entry.name}/")
