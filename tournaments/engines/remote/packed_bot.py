"""Transfer of bots to other hosts: an archive of a bot's files, its digest, and the command on that host.

The archive holds the bot's own files: those that its player ``reads``, and its program.  Files of an
interpreter, of Kalarena and of the system are left out, since each host has them.  Products of a build are
left out, too, and are built again on the other host.  The digest covers permissions, not times and owners.
"""

import hashlib
import io
import os
import re
import sys
import tarfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import protocol
import referee
import sample_bots
from referee.judge.results import Player
from referee.sandbox.runtime_paths import (
    SHOWN_ALWAYS,
    first_words,
    interpreter_of,
    is_installed,
    needed_paths,
)
from sample_bots.strong import kernels
from tournaments.bots.build import SOURCES_NS
from tournaments.bots.build_products import CLASS
from tournaments.bots.errors import ManifestError
from tournaments.bots.manifest import Manifest, load_manifest
from tournaments.bots.toolchains import find_program
from tournaments.engines.remote.extra import ClusterError

LEFT_OUT = frozenset({".git", "__pycache__"})
"""Folders that no bot needs in order to run."""
MOST_FILES = 10_000
"""Maximum number of files and directories of a bot."""
MOST_BYTES = 256 << 20
"""Maximum size in bytes of all files of a bot together; four times the maximum of an upload."""
HOME = Path("home")
"""Directory of the bot's working directory in the archive."""
BESIDE = Path("beside")
"""Directory of all other files in the archive."""

PYTHON, KERNELS = "python", "kernels"
PACKAGES = {
    package.__name__: str(Path(package.__path__[0]).resolve()) for package in (protocol, referee, sample_bots)
}
"""Kalarena's packages, and their paths on this host."""


@dataclass(frozen=True, slots=True)
class Need:
    """A file on the head that a bot starts with, and that is not sent."""

    path: str
    is_program: bool
    """True if a program with the same name on PATH will do: an installed program, never a bot's own."""


@dataclass(frozen=True, slots=True)
class PackedBot:
    """A player as it is sent to another host."""

    player: Player
    """The player on the host of origin."""
    digest: str
    """SHA-256 of the archive; empty if there is none."""
    folders: tuple[tuple[str, str], ...]
    """Path on the host of origin -> path in the archive."""
    installed: tuple[tuple[str, str], ...]
    """Path on the host of origin -> part that each host has itself: PYTHON, KERNELS, one of PACKAGES."""
    needs: tuple[Need, ...]
    programs: tuple[str, ...]
    """Programs that a host must have, see ``needed_programs``."""


def pack(player: Player) -> tuple[PackedBot, bytes]:
    """Return a player for the transfer, and the archive of its files.  Raises ClusterError."""
    folders, installed = dict(_folders(player)), _installed()
    archive = _archive(player, folders) if folders else b""
    needs = tuple(_needs_beside(player, folders))
    digest = hashlib.sha256(archive).hexdigest() if archive else ""
    programs = needed_programs(player)
    packed = PackedBot(player, digest, tuple(folders.items()), tuple(installed.items()), needs, programs)
    return packed, archive


def needed_programs(player: Player) -> tuple[str, ...]:
    """Return the programs that a host must have for this player.

    Programs that start a bot are given by their paths on this host, programs that build it by their names.
    Programs that a build starts itself are missing.  Raises ClusterError.
    """
    folders = dict(_folders(player))
    needs = _needs_beside(player, folders)
    found = [need.path for need in needs if need.is_program or os.access(need.path, os.X_OK)]
    manifests = filter(None, (_manifest_in(Path(folder)) for folder in folders))
    builds = [manifest.build for manifest in manifests if manifest.build is not None]
    found += [program for program, *_ in builds if os.sep not in program]
    return tuple(dict.fromkeys(found))


def unpack(archive: bytes, digest: str, folder: Path) -> None:
    """Write the files of an archive below a folder.  Raises ClusterError if they are damaged."""
    if hashlib.sha256(archive).hexdigest() != digest:
        raise ClusterError(f"the files of a bot were damaged on the way: they do not match {digest}")
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        # ``data_filter`` exists from Python 3.11.4 on.  It only repeats the head's check of the links.
        files.extraction_filter = getattr(tarfile, "data_filter", None)
        files.extractall(folder)


def player_here(packed: PackedBot, folder: Path, prepare_kernels: Callable[[], Path]) -> Player:
    """Return the player for this host, for an archive that was unpacked into a folder.

    Raises ClusterError if a file of the host of origin is missing here: the bot could not be started, and
    would lose for it.
    """
    player = packed.player
    here: dict[str, str] = {}
    for path, what in packed.installed:
        if what != KERNELS:
            here[path] = sys.executable if what == PYTHON else PACKAGES[what]
        elif path in player.command:
            here[path] = str(prepare_kernels())
    here |= {path: str(folder / name) for path, name in packed.folders}
    for need in packed.needs:
        found: str | None = need.path
        if not os.path.exists(need.path):  # noqa: PTH110 - False for unreadable paths, as below
            found = find_program(Path(need.path).name) if need.is_program else None
        if found is None:
            raise ClusterError(f"{player.name} needs {need.path}, which is not on this host: install it here")
        here[need.path] = found
    cwd = here.get(player.cwd, player.cwd)
    if not os.path.isdir(cwd):  # noqa: PTH112 - it may hold no file of the bot
        cwd = str(folder / HOME)
        Path(cwd).mkdir(parents=True, exist_ok=True)
    return replace(
        player,
        command=tuple(_translated(word, here) for word in player.command),
        cwd=cwd,
        reads=tuple(sorted(_translated(path, here) for path in player.reads)),
    )


def _manifest_in(folder: Path) -> Manifest | None:
    """Return the manifest of a bot in a folder, if any.  Raises ClusterError."""
    try:
        return load_manifest(folder)
    except ManifestError as error:
        raise ClusterError(str(error)) from error


def _kernels() -> list[Path]:
    return [kernels.directory()] if kernels.can_compile() else []


def _installed() -> dict[str, str]:
    """Return path here -> part that each host has itself."""
    ours = {sys.executable: PYTHON, **{path: name for name, path in PACKAGES.items()}}
    return ours | {str(path): KERNELS for path in _kernels()}


def _needs_beside(player: Player, folders: Mapping[str, str]) -> Iterator[Need]:
    """Yield a player's needs beside the archive and the parts that each host has itself.

    Not all files in its working directory are sent: an interpreter that was installed there is not.
    """
    travels = dict.fromkeys([*_installed(), *(path for path in folders if path in player.reads)], "")
    for need in _needs(player):
        is_home = need.path == player.cwd and player.cwd in folders
        if not is_home and _translated(need.path, travels) == need.path:
            yield need


def _folders(player: Player) -> Iterator[tuple[str, str]]:
    """Yield the paths to send, and their paths in the archive, which keep their relative positions."""
    home = Path(player.cwd)
    stays = [
        *SHOWN_ALWAYS,
        *map(Path, PACKAGES.values()),
        *_kernels(),
        Path(sys.prefix),
        Path(sys.base_prefix),
    ]
    program = Path(player.command[0])
    starter = program if is_installed(program, home) else interpreter_of(program)
    if starter is not None:
        stays += needed_paths(starter, [home] if player.cwd in player.reads else [], trusted=True)
    travels = [
        path
        for path in map(Path, player.reads)
        if not any(path.is_relative_to(place) or place.is_relative_to(path) for place in stays)
    ]
    beside = [path for path in travels if not path.is_relative_to(home)]
    top = os.path.commonpath([path.parent for path in beside]) if beside else ""
    for path in travels:
        inside = HOME / path.relative_to(home) if path not in beside else BESIDE / path.relative_to(top)
        yield str(path), str(inside)
    if len(beside) < len(travels):
        yield player.cwd, str(HOME)


def _needs(player: Player) -> Iterator[Need]:
    """Yield the files on a command line, and the interpreter of its program."""
    program, *words = player.command
    # A link of the bot's own may have any name.
    yield Need(program, is_program=is_installed(Path(program), Path(player.cwd), follow=False))
    interpreter = interpreter_of(Path(program))
    if interpreter is not None:
        yield Need(str(interpreter), is_program=Path(first_words(Path(program))[0]).name == "env")
    for word in words:
        if word.startswith("/") and os.path.exists(word):  # noqa: PTH110 - False for unreadable paths
            yield Need(word, is_program=False)


def _archive(player: Player, folders: Mapping[str, str]) -> bytes:
    """Return a tar archive of the files and directories, in a fixed order.  Raises ClusterError."""
    entries: dict[str, tuple[tarfile.TarInfo, bytes]] = {}
    total = 0
    for read in player.reads:
        for path, inner in _walk(Path(read)) if read in folders else ():
            name = os.path.normpath(Path(folders[read], inner))
            try:
                entries[name] = _entry(name, path, Path(read))
            except OSError as error:
                raise ClusterError(f"{player.name}: {path} cannot be read: {error.strerror}") from error
            total += entries[name][0].size
            if len(entries) > MOST_FILES or total > MOST_BYTES:
                raise ClusterError(
                    f"{player.name} cannot be sent to other hosts: {read} holds more than {MOST_FILES} files "
                    f"or {MOST_BYTES >> 20} MB; keep there only what the bot needs"
                )
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for _, (entry, content) in sorted(entries.items()):
            archive.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


def _entry(name: str, path: Path, top: Path) -> tuple[tarfile.TarInfo, bytes]:
    """Return an entry of the archive, and its content.  Raises ClusterError, OSError."""
    entry, content = tarfile.TarInfo(name), b""
    entry.mtime = SOURCES_NS // 10**9  # a directory must not be older than its files
    if path != top and path.is_symlink():  # a path that a player names is always part of the bot
        target = path.resolve()
        # A link out of the bot might lead to a private file that the bot's author may not read.
        if not target.is_relative_to(top.resolve()):
            raise ClusterError(f"{path} is a link that leads out of {top}: put the file itself there")
        entry.type, entry.linkname = tarfile.SYMTYPE, os.path.relpath(target, path.parent.resolve())
    elif path.is_dir():
        entry.type, entry.mode = tarfile.DIRTYPE, 0o755
    else:
        content = path.read_bytes()
        entry.size, entry.mode = len(content), 0o755 if os.access(path, os.X_OK) else 0o644
    return entry, content


def _walk(top: Path) -> Iterator[tuple[Path, str]]:
    """Yield a bot's files and directories at this path with their paths below it, without its products."""
    if _is_there(top):
        yield top, "."
    manifest = _manifest_in(top)
    made = manifest.products if manifest is not None and manifest.build is not None else []
    for folder, folders, names in os.walk(top):
        links = [name for name in folders if Path(folder, name).is_symlink()]
        folders[:] = set(folders) - LEFT_OUT - set(links)
        for name in [*names, *folders, *links]:
            path = Path(folder, name)
            inner = path.relative_to(top)
            if _is_there(path) and not _is_made(inner, made):
                yield path, str(inner)


def _is_there(path: Path) -> bool:
    """Return whether a path is a file or directory: no broken link or pipe, which editors leave behind."""
    return os.path.isfile(path) or os.path.isdir(path)  # noqa: PTH112, PTH113 - see player_here


def _is_made(inner: Path, made: list[str]) -> bool:
    """Return whether a file is a product; class files may be compiled together with a product that is one."""
    if inner.suffix == CLASS and any(name.endswith(CLASS) for name in made):
        return True
    return any(inner.is_relative_to(os.path.normpath(name)) for name in made)


def _translated(word: str, here: Mapping[str, str]) -> str:
    """Return a word of a command line with this host's paths, as in ``-cp=FOLDER:FOLDER/lib.jar``."""
    if not here:
        return word
    longest_first = sorted(here, key=len, reverse=True)
    paths = "|".join(map(re.escape, longest_first))
    return re.sub(rf"(?<![^=:,])({paths})(?=$|[/:,])", lambda found: here[found[1]], word)
