"""Files and directories that a confined bot sees: the options of bubblewrap that show them.

Everything is read-only but the directories in memory, and the bot's working directory where it may write
there (referee/sandbox/working_directory.py).
"""

import os
import sys
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

from referee.adapters.command import adapter_reads
from referee.errors import RefereeError
from referee.judge.limits import MIB, Limits
from referee.judge.results import Player
from referee.sandbox.runtime_paths import SHOWN_ALWAYS, needed_paths
from referee.sandbox.working_directory import Placement, WorkingDirectory, is_readable_for_all

SCRATCH = "/scratch"
"""A confined bot's own directory for files, its HOME and TMPDIR."""
TMP_BYTES = 16 * MIB
SHM_BYTES = 1 * MIB
"""Sizes of /tmp and /dev/shm: enough for an interpreter's own files."""
ETC = ("/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime")
RUNTIME_SETTINGS = (
    *("etc/R", "etc/fpc*.cfg", "etc/java*", "etc/julia", "etc/ldc2.conf", "etc/nim"),
    "var/lib/ghc",
)
"""Patterns, from the root, of the places in which Debian keeps what compilers and interpreters need beside
/usr: settings, and the list of packages of ghc."""
SYSTEM_DIRECTORIES = tuple(map(Path, ("/dev", "/proc", "/sys", "/etc", SCRATCH)))
REPLACED_DIRECTORIES = {*SYSTEM_DIRECTORIES, *SHOWN_ALWAYS, Path("/"), Path("/tmp")}
ROOT_LINKS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")


def system_options() -> Iterable[str]:
    """Yield the words that show the system's programs and libraries, read-only."""
    yield from ("--ro-bind", "/usr", "/usr")
    for name in ROOT_LINKS:
        path = Path("/", name)
        if path.is_symlink():
            yield from ("--symlink", os.readlink(path), str(path))  # noqa: PTH115 - the unchanged text
        elif path.is_dir():  # a system whose /usr is not merged
            yield from ("--ro-bind", str(path), str(path))
    yield from settings_options()


@lru_cache(maxsize=1)
def settings_options() -> tuple[str, ...]:
    """Return the words that show ETC and RUNTIME_SETTINGS, in directories that every user can enter."""
    settings = [path for pattern in RUNTIME_SETTINGS for path in sorted(Path("/").glob(pattern))]
    names = (*ETC, *map(str, settings))
    folders = dict.fromkeys(str(one) for name in names for one in reversed(Path(name).parents[:-1]))
    words = [word for folder in folders for word in ("--perms", "0755", "--dir", folder)]
    return (*words, *(word for name in names for word in ("--ro-bind-try", name, name)))


def file_system_options(limits: Limits) -> Iterable[str]:
    """Yield the words that show /proc, /dev, and the directories in memory with their sizes."""
    yield from ("--proc", "/proc", "--dev", "/dev")
    # A shared mapping of /dev/zero would be memory that no process shows after releasing it.
    yield from ("--ro-bind", "/dev/null", "/dev/zero")
    for path, size in (("/dev/shm", SHM_BYTES), ("/tmp", TMP_BYTES), (SCRATCH, limits.scratch_mb * MIB)):
        yield from ("--size", str(size), "--perms", "1777", "--tmpfs", path)


def own_file_options(
    player: Player,
    game_files: list[Path],
    installations: Sequence[Path],
    limits: Limits,
    descriptors: list[int],
    user: int | None,
) -> tuple[list[str], WorkingDirectory | None]:
    """Return the words that show the bot's files and its interpreter, and its writable working directory.

    Each file is shown under its own name; so are ``installations``, which must be readable for all users.
    ``user`` is the user that the bot runs as where that is not the current one.  A working directory that is
    not part of the bot is empty but for the bot's files.  The directory is None if it is read-only.
    """
    own = [*map(Path, player.reads), *adapter_reads(player.protocol), *game_files]
    needed = [*installations, *needed_paths(Path(player.command[0]), own)]
    if player.protocol:
        needed += needed_paths(Path(sys.executable), own, trusted=True)
    shown = _outermost([*own, *needed])
    writable = _writable_directory(player, own, needed) if limits.directory_mb else None
    first = [] if writable is None else [writable]
    outside = [path for path in shown if writable is None or not path.is_relative_to(writable)]
    words: list[str] = []
    made = {Path("/"), Path("/tmp"), Path("/etc"), Path(SCRATCH)}
    for path in dict.fromkeys([*outside, *first, Path(player.cwd)]):
        for folder in [*reversed(path.parents), *([path] if path not in (*shown, *first) else [])]:
            if folder not in made and not _is_inside(folder, (*shown, *first)):
                made.add(folder)
                words += ("--perms", "0755", "--dir", str(folder))
        if path in outside:
            if user is not None and path in own and not is_readable_for_all(path):
                copies = Placement(user is not None)
                copies.add(path)
                words += copies.read_only_words(descriptors)
            else:
                words += ("--ro-bind", str(path), str(path))
    if writable is None:
        return words, None
    copies = Placement(user is not None)
    # The directory in memory hides what was shown there as a part of /usr or of an installation.
    inside = _outermost((path for path in (*own, *needed) if path.is_relative_to(writable)), ())
    for path in inside:
        if path in own:
            copies.add(path)
    if writable in copies.whole:
        return words + copies.read_only_words(descriptors), None
    words += copies.writable_words(writable, limits.directory_mb * MIB)
    if Path(player.cwd) != writable:
        words += ("--perms", "0777", "--dir", player.cwd)  # bubblewrap starts the bot there
    for path in inside:
        if path not in own:
            words += ("--ro-bind", str(path), str(path))
    return words, copies.make_writable(writable, user)


def _writable_directory(player: Player, own: list[Path], needed: list[Path]) -> Path | None:
    """Return the bot's own directory that holds its start directory, else the start directory itself.

    None if that is a directory of the system, which the sandbox shows or replaces.
    """
    cwd = Path(player.cwd)
    holders = [path for path in own if cwd.is_relative_to(path) and path.is_dir()]
    found = min(holders, key=lambda path: len(path.parts), default=cwd)
    is_system = any(found.is_relative_to(path) for path in SYSTEM_DIRECTORIES) or _is_inside(found, needed)
    if ".." in found.parts or found in REPLACED_DIRECTORIES or (is_system and not holders):
        return None
    return found


def identity_options(user: int, descriptors: list[int]) -> Iterable[str]:
    """Yield the words for /etc/passwd and /etc/hosts: some runtimes look up their user and host."""
    for path, text in (
        ("/etc/passwd", f"bot:x:{user}:{user}:bot:{SCRATCH}:/bin/sh\n"),
        ("/etc/hosts", "127.0.0.1 localhost bot\n::1 localhost\n"),
    ):
        descriptors.append(memory_file(text.encode()))
        yield from ("--perms", "0444", "--ro-bind-data", str(descriptors[-1]), path)


def _is_inside(path: Path, others: Iterable[Path], always: Iterable[Path] = SHOWN_ALWAYS) -> bool:
    return any(path.is_relative_to(other) for other in (*always, *others))


def _outermost(paths: Iterable[Path], always: Iterable[Path] = SHOWN_ALWAYS) -> list[Path]:
    """Return the outermost of the paths, without those inside the directories that are shown always."""
    found: list[Path] = []
    for path in sorted(set(paths), key=lambda path: (len(path.parts), path)):
        if not _is_inside(path, found, always):
            found.append(path)
    return found


def memory_file(content: bytes) -> int:
    """Return a descriptor of a memory file with this content."""
    assert sys.platform == "linux"
    try:
        descriptor = os.memfd_create("kalarena", os.MFD_CLOEXEC)
    except OSError as error:
        raise RefereeError(f"no memory file could be made: {error}") from error
    os.write(descriptor, content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
