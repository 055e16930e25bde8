"""Files of games for publication, one directory per game (for archives, see ``game_archives``).

They are made from the store and can be made again.  Private data of one bot (its standard error, its files)
is in files of its own, so that each student can receive their own.
"""

import errno
import hashlib
import json
import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from referee.judge.record_rows import KeptFile
from referee.judge.results import GameRecord
from referee.judge.verdict_text import visible

LONGEST_NAME = 60
"""Characters of a bot's name in a file name: a name may be as long as a folder's."""

SAFE_BYTES = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-. ")
LONGEST_KEPT_NAME = 150
LONGEST_KEPT_FOLDERS = 1000
"""Most characters of the folders in a kept file's path.  Linux opens no path of more than 4,096 bytes, and
the tournament's own folders count."""
FOLDERS, ARCHIVES = "folders", "archives"
FORMS = (FOLDERS, ARCHIVES)
"""Forms of the files of games, the default first; see ``game_archives``."""
GAMES = "games"
"""Folder of the games in a tournament's directory."""
LOCK_FILE = ".lock"
"""File in a tournament's directory that its runner locks.  It contains the boot id of the machine that wrote
the files of the games.  The file is empty if some files may belong to other games."""


class GameFilesError(Exception):
    """The files could not be written; the message gives the path and the reason."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Keep the cause, which pickle leaves out: a full disk passes, a forbidden directory does not."""
        return _with_cause, (str(self), self.__cause__)


def _with_cause(message: str, cause: BaseException | None) -> GameFilesError:
    error = GameFilesError(message)
    error.__cause__ = cause
    return error


def write_game_files(directory: Path, record: GameRecord) -> None:
    """Write ``game.json``, ``wire.txt`` and ``stderr-NUMBER-NAME.txt`` of a game.

    Files of the bots that were kept are in ``files-NUMBER-NAME``, which only the owner can open.  The game's
    folder appears whole or not at all.  Raises GameFilesError.
    """
    folder = directory / GAMES / record.key
    temporary = directory / GAMES / f".{record.key}.part"
    try:
        _make_empty(temporary)
        for name, text in contents(record).items():
            (temporary / name).write_text(text, encoding="utf-8", errors="backslashreplace")
        for number, (player, files) in enumerate(zip(record.players, record.kept_files, strict=True), 1):
            if files:
                write_kept_files(temporary / kept_files_folder(number, player.name), files)
        _put_in_place(temporary, folder)
    except OSError as error:
        raise GameFilesError(
            f"{folder}: the files of this game could not be written: {error.strerror}; its result is safe, "
            "and the next run writes them"
        ) from error


def has_game_files(directory: Path, record: GameRecord) -> bool:
    """Return whether all files of a game are there, as ``write_game_files`` writes them.  Raises OSError."""
    folder = directory / GAMES / record.key
    wanted = {
        folder / name: text.encode("utf-8", "backslashreplace") for name, text in contents(record).items()
    }
    wanted |= {folder / name: content for name, content in kept_contents(record).items()}
    try:
        return all(path.read_bytes() == content for path, content in wanted.items())
    except (FileNotFoundError, NotADirectoryError):
        return False


def has_folder(directory: Path, key: str) -> bool:
    """Return whether the conversation of a game can be read in the game's folder: it may be in an archive."""
    return os.access(directory / GAMES / key / "wire.txt", os.R_OK)


def are_files_trusted(directory: Path) -> bool:
    """Return whether all files are of the directory's games, and were written since the machine was started.

    Files are synchronized with the disk at the end of a run only, for speed: a crash of the machine during a
    run may leave them empty.
    """
    try:
        return (directory / LOCK_FILE).read_text(encoding="utf-8") == _boot() != ""
    except FileNotFoundError:
        return False


def set_files_trusted(directory: Path, *, trusted: bool) -> None:
    """Store the answer of ``are_files_trusted``.  Raises OSError."""
    path = directory / LOCK_FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_boot() if trusted else "", encoding="utf-8")


def _boot() -> str:
    """Return the identity of this start of the machine; empty where there is none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
    except OSError:
        return ""


def kept_files_folder(number: int, bot: str) -> str:
    """Return the name of the folder for a bot's kept files; ``number`` is 1 for the bot that moved first."""
    return f"files-{number}-{_file_name(bot)}"


def write_kept_files(folder: Path, files: Sequence[KeptFile]) -> None:
    """Write kept files into a new folder that only its owner can open.  Raises OSError.

    Names are made harmless: characters other than letters, digits and a few more are written as ``%`` and
    their code.  The name of a file of which only the end was kept ends in ``.end``.  The folders of a path
    that is too long are written as one.
    """
    folder.mkdir(mode=0o700)
    for file, parts in zip(files, _kept_paths(files), strict=True):
        inner = folder
        for part in parts[:-1]:
            inner /= part
            inner.mkdir(mode=0o700, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(inner / parts[-1], flags, 0o600), "wb") as target:
            target.write(file.content)


def _kept_paths(files: Sequence[KeptFile]) -> list[list[str]]:
    """Return for each of a bot's kept files the harmless names of its folders and of itself."""
    paths = [_safe_path(file.path) for file in files]
    taken = {tuple(path[:depth]) for path in paths for depth in range(1, len(path) + 1)}
    for file, path in zip(files, paths, strict=True):
        if len(file.content) < file.size:
            name = f"{path[-1]}.end"
            # A name with "%." is no other file's: see _safe_name.
            path[-1] = f"{path[-1]}%.end" if (*path[:-1], name) in taken else name
    return paths


def _safe_path(path: bytes) -> list[str]:
    """Return the harmless names of a file's folders and of the file; different for each path."""
    folders, _, name = path.rpartition(b"/")
    parts = [_safe_name(part) for part in folders.split(b"/")] if folders else []
    if len("/".join(parts)) > LONGEST_KEPT_FOLDERS:
        parts = [f"%.{hashlib.sha256(folders).hexdigest()}"]
    return [*parts, _safe_name(name)]


def _safe_name(name: bytes) -> str:
    """Return a name that no program takes for an option, a hidden file or several names.

    The result is different for each name, and has no ``%`` before a dot.
    """
    safe = "".join(
        chr(byte) if byte in SAFE_BYTES and not (at == 0 and byte in b"-. ") else f"%{byte:02X}"
        for at, byte in enumerate(name)
    )
    if len(safe) <= LONGEST_KEPT_NAME:
        return safe
    return f"{safe[:LONGEST_KEPT_NAME]}%{hashlib.sha256(name).hexdigest()[:16]}"


def _make_empty(folder: Path) -> None:
    try:
        folder.mkdir(parents=True)
    except FileExistsError:  # left by a run that was killed
        shutil.rmtree(folder)
        folder.mkdir()


def _put_in_place(temporary: Path, folder: Path) -> None:
    try:
        temporary.rename(folder)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        shutil.rmtree(folder)
        temporary.rename(folder)


def contents(record: GameRecord) -> dict[str, str]:
    """Return the text of each file by its name."""
    files = {"game.json": json.dumps(public_view(record)) + "\n", "wire.txt": wire_text(record)}
    for number, (player, text) in enumerate(zip(record.players, record.stderr, strict=True), 1):
        files[f"stderr-{number}-{_file_name(player.name)}.txt"] = text
    return files


def kept_contents(record: GameRecord) -> dict[str, bytes]:
    """Return the content of each kept file of the bots by its path in the game's folder."""
    return {
        "/".join([kept_files_folder(number, player.name), *path]): file.content
        for number, (player, files) in enumerate(zip(record.players, record.kept_files, strict=True), 1)
        for file, path in zip(files, _kept_paths(files), strict=True)
    }


def public_view(record: GameRecord) -> dict[str, object]:
    """Return the record without the data that is private to one bot or to this machine."""
    view = record.to_json()
    for private in ("stderr", "note", "host", "host_speed", "facts"):
        del view[private]
    view["players"] = [{"name": player.name, "digest": player.digest} for player in record.players]
    return view


def wire_text(record: GameRecord) -> str:
    """Return the conversation for people: milliseconds, bot, direction, line; then the verdict."""
    width = max(len(player.name) for player in record.players)
    columns = [f"{player.name:{width}}  " for player in record.players]
    lines = [
        f"{at_us / 1000:12.3f} ms  {columns[player]}{'<-' if direction == 'to' else '->'}  {visible(line)}"
        for player, direction, line, at_us in record.wire
    ]
    names = " and ".join(player.name for player in record.players)
    head = f"{record.game}: {names} ({record.key}, {record.started_at}); <- to the bot, -> from it"
    return "\n".join([head, "", *lines, "", f"{record.result.reason}: {record.result.detail}", ""])


def _file_name(name: str) -> str:
    return slug(name)[:LONGEST_NAME]


def slug(name: str) -> str:
    """Return a name as part of a file name: letters, digits, dots and underscores only."""
    return re.sub(r"[^\w.]", "_", name)
