"""Files of games in archives of a hundred games each, and the reader of both forms of files.

Game number 1 is the one that was stored first.  The number of a game never changes, so that only the last
archive is ever written again.  An archive is on the disk as a whole or not at all.  The names in it are those
of the folders of games: ``KEY/game.json``.
"""

import contextlib
import io
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from referee.judge.results import GameRecord
from tournaments.database.base import Location
from tournaments.files.durable import replacing
from tournaments.results.game_files import GAMES, GameFilesError, contents, kept_contents
from tournaments.results.store import Store

GAMES_IN_ARCHIVE = 100
"""Games in an archive: it is about 150 KB, which is written in half a second, and a folder of the archives of
100,000 games has a thousand names."""
MOST_HELD = 16
"""Archives that are held in memory.  Games are read by key, which is nearly the order of storing."""
PRIVATE = 0o600
"""Mode of an archive with files that bots wrote: only its owner can open it, as with such a folder."""
_SUFFIX = ".zip"
_TIME = (1980, 1, 1, 0, 0, 0)
"""Time of all files in an archive, the first one that the format has: the same games give the same bytes."""


def archive_name(number: int) -> str:
    """Return the name of an archive, whose number counts from 1."""
    return f"games-{number:04d}{_SUFFIX}"


def is_archive(name: str) -> bool:
    """Return True for the name of an archive in the folder of games."""
    return name.startswith("games-") and name.endswith(_SUFFIX)


def write_archive(location: Location, directory: Path, number: int, keys: Sequence[str]) -> None:
    """Write an archive of stored games, in any process.  Raises GameFilesError, StoreError."""
    with Store(location, read_only=True) as store:
        write_games(directory, number, list(store.records(keys).values()))


def write_games(directory: Path, number: int, records: Sequence[GameRecord]) -> None:
    """Write an archive, unless it is there with the same content.  Raises GameFilesError."""
    path = directory / GAMES / archive_name(number)
    content = _archive(records)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.is_file() or path.read_bytes() != content:
            mode = PRIVATE if any(any(one.kept_files) for one in records) else None
            with replacing(path, mode, part=path.with_name(f".{path.name}.part")) as file:
                file.write(content)
    except OSError as error:
        raise GameFilesError(
            f"{path}: the files of games could not be written: {error.strerror}; their results are safe, and "
            "the next run writes them"
        ) from error


def _archive(records: Sequence[GameRecord]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for record in records:
            texts = {
                name: text.encode("utf-8", "backslashreplace") for name, text in contents(record).items()
            }
            for name, content in (texts | kept_contents(record)).items():
                entry = zipfile.ZipInfo(f"{record.key}/{name}", _TIME)
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = 0o644 << 16
                archive.writestr(entry, content)
    return file.getvalue()


@dataclass
class ArchivePlan:
    """The archives of a tournament that is being played."""

    keys: list[str]
    """Keys of all stored games, in the order of storing."""
    written: int = 0
    """Number of archives that are complete."""

    def add(self, keys: Sequence[str]) -> None:
        """Add games that were stored, in the order of storing."""
        self.keys += keys

    def due(self, *, at_end: bool = False) -> Iterator[tuple[int, list[str]]]:
        """Yield number and keys of each complete archive, once; ``at_end`` the incomplete one as well."""
        while (begin := self.written * GAMES_IN_ARCHIVE) < len(self.keys):
            part = self.keys[begin : begin + GAMES_IN_ARCHIVE]
            if len(part) < GAMES_IN_ARCHIVE:
                if at_end:
                    yield self.written + 1, part
                return
            self.written += 1
            yield self.written, part


@dataclass
class GameFilesReader:
    """The files of a tournament's games, in folders and in archives.  Folders go first."""

    directory: Path
    damaged: dict[str, str] = field(default_factory=dict)
    """Name of an archive that cannot be read -> the reason."""
    _held: dict[Path, zipfile.ZipFile] = field(default_factory=dict)
    """Archives in memory, the one that was used last at the end."""

    @cached_property
    def archived(self) -> Mapping[str, Path]:
        """Key of a game -> archive."""
        return {key: path for path, keys in self.archives.items() for key in keys}

    @cached_property
    def archives(self) -> Mapping[Path, Sequence[str]]:
        """Archive -> keys of its games, in its order.  An archive that cannot be read has none."""
        folder = self.directory / GAMES
        if not folder.is_dir():
            return {}
        found: dict[Path, Sequence[str]] = {}
        for path in sorted(folder.iterdir()):
            if not is_archive(path.name):
                continue
            try:
                with zipfile.ZipFile(path) as archive:
                    names = archive.namelist()
            # For damaged names and version numbers, zipfile raises the last two.
            except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError) as error:
                self.damaged[path.name] = str(error)
                names = []
            found[path] = list(dict.fromkeys(name.partition("/")[0] for name in names))
        return found

    def keys(self) -> set[str]:
        """Return the keys of all games that have files, without the incomplete folders of killed runs."""
        folder = self.directory / GAMES
        if not folder.is_dir():
            return set()
        folders = {path.name for path in folder.iterdir() if not path.name.startswith(".")}
        return {name for name in folders if not is_archive(name)} | set(self.archived)

    def place(self, key: str) -> str | None:
        """Return the place of a game's files, for people; None if there are none."""
        folder = self.directory / GAMES / key
        if folder.is_dir():
            return str(folder)
        path = self.archived.get(key)
        return None if path is None else f"{path}, folder {key}"

    def _opened(self, path: Path) -> zipfile.ZipFile:
        """Return an archive, which is held in memory for a while.  Raises OSError, BadZipFile."""
        archive = self._held.pop(path, None) or zipfile.ZipFile(io.BytesIO(path.read_bytes()))
        self._held[path] = archive
        if len(self._held) > MOST_HELD:
            del self._held[next(iter(self._held))]
        return archive

    def copies(self, key: str, name: str) -> Iterator[bytes]:
        """Yield a game's file from its folder and from its archive, where it is there.

        Raises OSError; ValueError if its archive is damaged there.
        """
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            yield (self.directory / GAMES / key / name).read_bytes()
        path = self.archived.get(key)
        if path is None:
            return
        try:
            yield self._opened(path).read(f"{key}/{name}")
        except KeyError:
            return
        # zipfile raises NotImplementedError for a damaged number of a compression method, among others.
        except (OSError, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
            raise ValueError(f"{path.name} is damaged: {error}") from error
