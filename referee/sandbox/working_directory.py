"""Placement of a bot's own files in its sandbox.

The working directory is a file system in memory of bounded size.  Small files, and files that look like
output, are copied there, so that the bot can overwrite, rename and delete them.  Large files, and folders
with many files, are bound read-only.  As root, files that the bot's user cannot read are copied, whatever
their size.

bubblewrap mounts the empty file system and the binds.  The referee then writes the copies, before a program
of the bot starts (``WorkingDirectory.finish``), since bubblewrap takes longer for that.  Each folder and
file is opened from its parent's descriptor without following links.  A file that is replaced meanwhile is
therefore the old one or the new one, and never a file elsewhere.  A path that is bound could become a link
before bubblewrap mounts it: the mounts are compared with the plan first.

Pipes, sockets and devices are left out: they would be ways out of the sandbox.
"""

import errno
import fcntl
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from referee.errors import RefereeError
from referee.judge.limits import MIB

MAX_COPIED_FILES = 400
"""Most files of a bot that are copied into its sandbox.  Each takes about 0.03 ms."""
MAX_FOLDER_FILES = 100
"""A folder with more files and folders than this below it is bound read-only."""
MAX_UNREADABLE_BYTES = 256 * MIB
"""Most bytes of files that are copied because the bot's user cannot read them."""
BOUND_FOLDERS = {".git", ".hg", ".svn", ".venv", "venv", "node_modules"}
"""Folders that are filled by programs, bound read-only whatever their size."""
CODE_SUFFIXES = (".class", ".pyc", ".pyo", ".o", ".so", ".dll", ".jar")
CODE_FILES = 10
"""A folder is bound read-only if it has at least this many files, all of them compiled code."""
MAX_DEPTH = 100
"""Maximum depth of folders.  Each takes two descriptors while it is filled."""
COPIED_FILE_BYTES = 256 * 1024
"""Size up to which files are copied.  A copy of 1 MB takes 0.5 ms, a bind 0.15 ms, and more with many
binds."""
TEXT_BYTES = 4 * MIB
OUTPUT_BYTES = 16 * MIB
"""Size up to which files are copied whose names are those of texts, or of output."""
TEXT_SUFFIXES = {
    *(".txt", ".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".xml", ".html", ".md", ".yaml", ".yml"),
    *(".ini", ".cfg", ".conf", ".properties", ".pgn", ".sgf", ".stats"),
}
OUTPUT_WORDS = {
    *("log", "logs", "out", "output", "err", "error", "errors", "debug", "trace", "stdout", "stderr"),
}
LONGEST_PATH = 2000
"""Bytes of a folder's path; deeper folders are bound with it (Linux allows 4096 in a path)."""
PAGE = 4096
WITHOUT_FOLLOWING = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Copied(NamedTuple):
    """A file of the submission that was copied."""

    size: int
    mtime_ns: int


_GONE = {errno.ENOENT, errno.ENXIO, errno.ENOTDIR, errno.ELOOP}
"""Errors of opening a path that vanished, or that has become something else than a file."""


@dataclass(slots=True)
class Folder:
    """The contents of a folder that are copied."""

    files: list[str] = field(default_factory=list)
    links: list[tuple[str, str]] = field(default_factory=list)
    """Names and targets."""
    folders: dict[str, "Folder"] = field(default_factory=dict)


class Root(NamedTuple):
    """A path that is copied: a file, or a folder with its contents."""

    path: Path
    identity: tuple[int, int]
    """Device and inode."""
    folder: Folder | None

    def open(self) -> int:
        """Open the path.  Raises RefereeError if another file has its name now."""
        try:
            descriptor = os.open(self.path, WITHOUT_FOLLOWING & ~os.O_NOFOLLOW)  # it may be a link itself
        except OSError as error:
            raise RefereeError(f"{self.path}: could not be opened for the sandbox: {error}") from error
        if _identity(os.fstat(descriptor)) != self.identity:
            os.close(descriptor)
            raise RefereeError(f"{self.path} was replaced while the sandbox was made")
        return descriptor


@dataclass(frozen=True, slots=True)
class WorkingDirectory:
    """The writable directory of one sandbox."""

    path: Path
    roots: tuple[Root, ...]
    """The copies, each in or at ``path``."""
    bound: dict[str, tuple[int, int]]
    """Relative path -> device and inode of the file or folder bound there."""
    user: int | None
    """Owner of the copies; None for the current user."""
    files: dict[str, Copied] = field(default_factory=dict)
    """Relative path -> the submitted file, once ``finish`` has copied it."""

    def finish(self, directory: int) -> None:
        """Compare the mounts with the plan, and write the copies.

        ``directory`` is a descriptor of the directory in the sandbox; no program of the bot has started yet.
        Raises RefereeError if a bound path was replaced meanwhile or a file could not be read, OSError if
        the directory could not be written.
        """
        for name, identity in self.bound.items():
            with suppress(FileNotFoundError):  # it vanished
                found = os.stat(name, dir_fd=directory, follow_symlinks=False)
                if _identity(found) != identity and (found.st_size or stat.S_ISDIR(found.st_mode)):
                    raise RefereeError(f"{self.path / name} was replaced while the sandbox was made")
        for root in self.roots:
            with _closing(root.open()) as source:
                inside = root.path.relative_to(self.path)
                if root.folder is None:
                    with self._opened_inside(directory, inside.parts[:-1]) as target:
                        self._copy(source, target, inside.name, str(inside))
                else:
                    with self._opened_inside(directory, inside.parts) as target:
                        prefix = "" if root.path == self.path else f"{inside}/"
                        self._fill(source, target, root.folder, prefix)

    @contextmanager
    def _opened_inside(self, directory: int, parts: tuple[str, ...]) -> Iterator[int]:
        """Open a folder in the working directory; make the folder and its parents if they are missing."""
        if not parts:
            yield directory
            return
        with (
            _closing(self._made_folder(directory, parts[0])) as outer,
            self._opened_inside(outer, parts[1:]) as inner,
        ):
            yield inner

    def _made_folder(self, parent: int, name: str) -> int:
        with suppress(FileExistsError):  # bubblewrap has made it, for a bind
            os.mkdir(name, dir_fd=parent)
        descriptor = os.open(name, WITHOUT_FOLLOWING | os.O_DIRECTORY, dir_fd=parent)
        try:
            os.fchmod(descriptor, 0o777)
            self._give(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def _give(self, descriptor: int) -> None:
        if self.user is not None:
            os.fchown(descriptor, self.user, self.user)

    def _fill(self, source: int, target: int, folder: Folder, prefix: str) -> None:
        """Copy the contents of a folder, and set the owner and the time of the copy."""
        for name in folder.files:
            try:
                descriptor = os.open(name, WITHOUT_FOLLOWING, dir_fd=source)
            except OSError as error:
                if error.errno in _GONE:
                    continue
                raise RefereeError(
                    f"{self.path}/{prefix}{name}: could not be opened for the sandbox: {error.strerror}"
                ) from error
            try:
                self._copy(descriptor, target, name, prefix + name)
            finally:
                os.close(descriptor)
        for name, link in folder.links:
            os.symlink(link, name, dir_fd=target)
            if self.user is not None:
                os.chown(name, self.user, self.user, dir_fd=target, follow_symlinks=False)
        for name, inner in folder.folders.items():
            try:
                descriptor = os.open(name, WITHOUT_FOLLOWING | os.O_DIRECTORY, dir_fd=source)
            except OSError:  # it vanished, or is no folder any more
                continue
            with _closing(descriptor), _closing(self._made_folder(target, name)) as made:
                self._fill(descriptor, made, inner, f"{prefix}{name}/")
        self._give(target)
        mtime_ns = os.fstat(source).st_mtime_ns
        os.utime(target, ns=(mtime_ns, mtime_ns))

    def _copy(self, source: int, folder: int, name: str, path: str) -> None:
        """Copy an open file, unless something else has taken its name."""
        status = os.fstat(source)
        if not stat.S_ISREG(status.st_mode):
            return
        target = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, dir_fd=folder)
        try:
            _copy_bytes(source, target, status.st_size)
            os.fchmod(target, 0o777 if status.st_mode & 0o111 else 0o666)
            self._give(target)
            os.utime(target, ns=(status.st_mtime_ns, status.st_mtime_ns))
            self.files[path] = Copied(status.st_size, status.st_mtime_ns)
        finally:
            os.close(target)


def _copy_bytes(source: int, target: int, left: int) -> None:
    """Copy ``left`` bytes, or fewer if the file has become shorter."""
    try:
        while left > 0 and (sent := os.sendfile(target, source, None, left)):
            left -= sent
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOSYS):
            raise
        while left > 0 and (data := os.read(source, min(left, COPIED_FILE_BYTES))):
            left -= os.write(target, data)


@dataclass(slots=True)
class Placement:
    """A plan of the files that are copied and those that are bound, each under its own name."""

    as_root: bool
    """True if the bot runs as another user, who may be unable to read its files."""
    roots: list[Root] = field(default_factory=list)
    whole: list[Path] = field(default_factory=list)
    """Paths that were added and are bound as a whole."""
    bound: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Paths inside the roots that are bound -> device and inode."""
    _files: int = 0
    _entries: int = 0
    """Files, folders and links."""
    _pages: int = 0
    _bytes: int = 0

    def add(self, path: Path) -> None:
        """Plan a file, or a folder with its contents.

        Raises RefereeError if there are too many files that only root can read.
        """
        try:
            descriptor = os.open(path, WITHOUT_FOLLOWING & ~os.O_NOFOLLOW)  # the path itself may be a link
        except OSError:
            self.whole.append(path)
            return
        with _closing(descriptor):
            try:
                self._add_opened(path, descriptor)
            except OSError as error:
                raise RefereeError(f"{path}: could not be read for the sandbox: {error}") from error

    def _add_opened(self, path: Path, descriptor: int) -> None:
        status = os.fstat(descriptor)
        if stat.S_ISREG(status.st_mode):
            if self._is_copied(path.name, status):
                self._count_file(str(path), status.st_size)
                self.roots.append(Root(path, _identity(status), None))
            else:
                self.bound[str(path)] = _identity(status)
        elif stat.S_ISDIR(status.st_mode):
            if self._has_too_many_files(descriptor) and not (self.as_root and not is_readable_for_all(path)):
                self.whole.append(path)
            else:
                folder = self._planned(str(path), descriptor, 0)
                self.roots.append(Root(path, _identity(status), folder))

    def make_writable(self, path: Path, user: int | None) -> WorkingDirectory:
        """Return the writable directory with the files that were planned.

        ``user`` becomes the owner of the copies; None for the current user.
        """
        bound = {_relative(Path(name), path): identity for name, identity in self.bound.items()}
        return WorkingDirectory(path, tuple(self.roots), bound, user)

    def writable_words(self, path: Path, spare_bytes: int) -> list[str]:
        """Return the words that mount the writable directory and its binds.

        ``spare_bytes`` is the space for the bot beside the copies.
        """
        size = str((self._pages + self._entries) * PAGE + spare_bytes)
        return ["--size", size, "--perms", "0777", "--tmpfs", str(path), *self._bound_words()]

    def read_only_words(self, descriptors: list[int]) -> list[str]:
        """Return the words that show all planned files in a read-only directory.

        bubblewrap makes the copies; ``descriptors`` are opened for it, and the caller closes them.
        """
        words: list[str] = []
        for root in self.roots:
            with _closing(root.open()) as source:
                if root.folder is None:
                    words += _file_words(source, str(root.path), descriptors)
                else:
                    words += _folder_words(source, str(root.path), root.folder, descriptors)
        return words + self._bound_words()

    def _bound_words(self) -> list[str]:
        words = [word for path in self.whole for word in ("--ro-bind", str(path), str(path))]
        for name in self.bound:
            words += ("--ro-bind-try", name, name)
        return words

    def _has_too_many_files(self, folder: int) -> bool:
        """Return True if a folder has more files than can be copied, sub-folders left out."""
        left = MAX_COPIED_FILES - self._files
        with os.scandir(folder) as entries:
            files = (entry for entry in entries if not entry.is_dir(follow_symlinks=False))
            return next(islice(files, left, None), None) is not None

    def _planned(self, path: str, descriptor: int, depth: int) -> Folder:
        """Plan the contents of a folder, first its files, then its folders."""
        if depth > MAX_DEPTH:
            raise RefereeError(f"{path[:200]}...: more than {MAX_DEPTH} folders are in one another")
        folder = Folder()
        inner = []
        self._entries += 1
        with os.scandir(descriptor) as entries:
            for entry in islice(entries, MAX_COPIED_FILES * 10):
                with suppress(FileNotFoundError):  # it vanished
                    if entry.is_symlink():
                        self._plan_link(folder, entry.name, descriptor)
                    elif entry.is_dir(follow_symlinks=False):
                        inner.append(entry.name)
                    elif entry.is_file(follow_symlinks=False):
                        self._plan_file(folder, path, entry, descriptor)
        for name in sorted(inner):
            self._plan_folder(folder, f"{path}/{name}", descriptor, depth + 1)
        return folder

    def _plan_link(self, folder: Folder, name: str, parent: int) -> None:
        try:
            folder.links.append((name, os.readlink(name, dir_fd=parent)))
        except OSError as error:
            if error.errno not in {*_GONE, errno.EINVAL}:
                raise
        self._entries += 1

    def _plan_file(self, folder: Folder, path: str, entry: "os.DirEntry[str]", parent: int) -> None:
        status = entry.stat(follow_symlinks=False)
        if self._is_copied(entry.name, status) and self._can_open(entry.name, status, parent):
            self._count_file(f"{path}/{entry.name}", status.st_size)
            folder.files.append(entry.name)
        else:
            self.bound[f"{path}/{entry.name}"] = _identity(status)

    def _can_open(self, name: str, status: os.stat_result, parent: int) -> bool:
        """Return True if the current user, and so the bot, can read a file."""
        return self.as_root or status.st_mode & 0o444 == 0o444 or os.access(name, os.R_OK, dir_fd=parent)

    def _count_file(self, path: str, size: int) -> None:
        self._files += 1
        self._entries += 1
        self._pages += -(-size // PAGE)
        self._bytes += size
        if self._files > MAX_COPIED_FILES or self._bytes > MAX_UNREADABLE_BYTES:
            raise RefereeError(
                f"{path}: as root, bots run as another user, who cannot read these files, and they are more "
                f"than the {MAX_COPIED_FILES} files or {MAX_UNREADABLE_BYTES // MIB} MB that are copied for "
                f"that user: chmod -R o+rX {Path(path).parent}"
            )

    def _is_copied(self, name: str, status: os.stat_result) -> bool:
        if self.as_root and not status.st_mode & 0o004:
            return True  # the bot's user could not read it where it is
        if self._files >= MAX_COPIED_FILES or self._bytes + status.st_size > MAX_UNREADABLE_BYTES:
            return False
        return status.st_size <= COPIED_FILE_BYTES or _looks_like_output(name, status.st_size)

    def _plan_folder(self, outer: Folder, path: str, parent: int, depth: int) -> None:
        name = path.rpartition("/")[2]
        try:
            descriptor = os.open(name, WITHOUT_FOLLOWING | os.O_DIRECTORY, dir_fd=parent)
        except PermissionError:
            with suppress(FileNotFoundError):
                self.bound[path] = _identity(os.stat(name, dir_fd=parent, follow_symlinks=False))
            return
        except OSError:  # it vanished, or is no folder any more
            return
        with _closing(descriptor):
            is_bound = self._is_bound(name, path, descriptor)
            if is_bound and not (self.as_root and not is_readable_for_all(Path(path))):
                self.bound[path] = _identity(os.fstat(descriptor))
            else:
                outer.folders[name] = self._planned(path, descriptor, depth)

    def _is_bound(self, name: str, path: str, folder: int) -> bool:
        if name in BOUND_FOLDERS or len(os.fsencode(path)) > LONGEST_PATH:
            return True
        counted = _count(folder, min(MAX_FOLDER_FILES, MAX_COPIED_FILES - self._files))
        return counted is None or (counted.code >= CODE_FILES and counted.code == counted.files)


def _file_words(source: int, path: str, descriptors: list[int]) -> tuple[str, ...]:
    # Not below 10: a shell can name these alone, and needs them (referee/sandbox/bubblewrap.py).
    descriptors.append(fcntl.fcntl(source, fcntl.F_DUPFD_CLOEXEC, 10))
    mode = "0777" if os.fstat(source).st_mode & 0o111 else "0666"
    return ("--perms", mode, "--file", str(descriptors[-1]), path)


def _folder_words(source: int, path: str, folder: Folder, descriptors: list[int]) -> list[str]:
    words = ["--perms", "0777", "--dir", path]
    for name in folder.files:
        with suppress(FileNotFoundError), _closing(os.open(name, WITHOUT_FOLLOWING, dir_fd=source)) as file:
            if stat.S_ISREG(os.fstat(file).st_mode):
                words += _file_words(file, f"{path}/{name}", descriptors)
    for name, link in folder.links:
        words += ("--symlink", link, f"{path}/{name}")
    for name, inner in folder.folders.items():
        opened = os.open(name, WITHOUT_FOLLOWING | os.O_DIRECTORY, dir_fd=source)
        with _closing(opened):
            words += _folder_words(opened, f"{path}/{name}", inner, descriptors)
    return words


def _looks_like_output(name: str, size: int) -> bool:
    """Return True if a bot is likely to write a file of this size."""
    if size <= TEXT_BYTES and Path(name).suffix.lower() in TEXT_SUFFIXES:
        return True
    return size <= OUTPUT_BYTES and not OUTPUT_WORDS.isdisjoint(re.split(r"[^a-z]+", name.lower()))


class Counted(NamedTuple):
    """Numbers of the files and folders below a folder."""

    entries: int = 0
    files: int = 0
    code: int = 0
    """Files of compiled code."""


def _count(folder: int, most: int) -> Counted | None:
    """Count the files and folders below a folder; None if there are more than ``most``."""
    count = files = code = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            count += 1
            if count > most:
                return None
            if not entry.is_dir(follow_symlinks=False):
                files += 1
                code += entry.name.endswith(CODE_SUFFIXES)
                continue
            try:
                inner = os.open(entry.name, WITHOUT_FOLLOWING | os.O_DIRECTORY, dir_fd=folder)
            except OSError:
                continue
            with _closing(inner):
                below = _count(inner, most - count)
            if below is None:
                return None
            count, files, code = count + below.entries, files + below.files, code + below.code
    return Counted(count, files, code)


def is_readable_for_all(path: Path) -> bool:
    """Return True if the modes of a file, or of a directory and all that is in it, let any user read them."""
    try:
        if not path.is_dir():
            return bool(path.stat().st_mode & 0o004)
        for folder, _, names in os.walk(path):
            if Path(folder).stat().st_mode & 0o005 != 0o005:
                return False
            for name in names:  # a link counts as itself: its target is in here, too, or is not shown
                if not os.lstat(os.path.join(folder, name)).st_mode & 0o004:  # noqa: PTH118
                    return False
    except OSError:
        return False
    return True


def _relative(path: Path, directory: Path) -> str:
    return "" if path == directory else str(path.relative_to(directory))


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


@contextmanager
def _closing(descriptor: int) -> Iterator[int]:
    try:
        yield descriptor
    finally:
        os.close(descriptor)
