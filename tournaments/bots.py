"""From what a user writes for a bot to the command that starts it."""

import hashlib
import os
import shlex
import shutil
import sys
from pathlib import Path

from referee.games.spec import did_you_mean
from referee.results import Player
from sample_bots.catalog import SAMPLE_BOTS, BadOptionError, sample_bot_command, sample_bot_files

MAX_FILES = 10_000
"""Documented bound on the files of a bot's directory; its digest reads them all."""

SKIPPED_DIRECTORIES = {"__pycache__", ".git", ".venv", "node_modules"}
"""Not part of what a bot is, and not in its digest."""


class BotError(ValueError):
    """A text that names no bot that could be started; the message says what was looked for."""


def resolve_bot(text: str, base: Path, name: str | None = None) -> Player:
    """The player that a text names: a sample bot, a directory, a file, or a command line.

    Relative paths are taken from ``base``.  Raises BotError.
    """
    if not text.strip():
        raise BotError("an empty text names no bot")
    if "\0" in text:
        raise BotError(f"{text!r} names no bot: it holds a NUL character")
    try:
        command = sample_bot_command(text)
    except BadOptionError as error:
        raise BotError(str(error)) from error
    if command is not None:
        return Player(name or text, tuple(command), str(base.resolve()), _digest(sample_bot_files(), None))
    path = _existing_path(base, text)
    if path is not None and path.is_dir():
        file = _entry_point(path)
        return Player(name or path.name, _file_command(file), str(path), _directory_digest(path))
    if path is not None:
        return Player(name or path.stem, _file_command(path), str(path.parent), _digest([path], path.parent))
    return _command_line(text, base, name)


def _existing_path(base: Path, text: str) -> Path | None:
    """The path that a text names, if there is anything; None too if it cannot be a path."""
    try:
        path = (base / Path(text).expanduser()).resolve()
        return path if path.exists() else None
    except (OSError, RuntimeError):  # too long for a path; a home directory of nobody; a loop of links
        return None


def _entry_point(directory: Path) -> Path:
    """What to run in a bot's directory: bot.py, else its one jar, else its one executable file."""
    script = directory / "bot.py"
    if script.is_file():
        return script
    files = sorted(path for path in directory.iterdir() if _is_file(path) and not path.name.startswith("."))
    for kind, found in (
        ("jar files", [path for path in files if path.suffix == ".jar"]),
        ("executable files", [path for path in files if os.access(path, os.X_OK)]),
    ):
        if len(found) == 1:
            return found[0]
        if found:
            names = ", ".join(path.name for path in found)
            raise BotError(f"{directory} holds several {kind}, {names}: name the one to run")
    raise BotError(f"{directory} holds no bot: expected bot.py, one .jar file or one executable file in it")


def _file_command(path: Path) -> tuple[str, ...]:
    """How to run a file."""
    if not os.access(path, os.R_OK):
        raise BotError(f"{path} cannot be read")
    # bot.py runs with our own interpreter even if it is executable: `env python3` may be a slow shim.
    if path.suffix == ".py" and (path.name == "bot.py" or not os.access(path, os.X_OK)):
        return (sys.executable, str(path))
    if path.suffix == ".jar":
        java = shutil.which("java")
        if java is None:
            raise BotError(f"{path} needs java, which is not on PATH")
        return (java, "-jar", str(path))
    if not os.access(path, os.X_OK):
        raise BotError(f"{path} is not executable: chmod +x {path}")
    return (str(path),)


def _command_line(text: str, base: Path, name: str | None) -> Player:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise BotError(f"{text!r} is no command line: {error}") from error
    program = words[0]
    if os.sep in program:
        # Not resolved: a program may look at the name that it was called by.
        existing = _existing_path(base, program) and Path(program).expanduser()
        found = os.path.abspath(base / existing) if existing else None  # noqa: PTH100
        if found and (not _is_file(Path(found)) or not os.access(found, os.X_OK)):
            raise BotError(f"{found} is not executable: chmod +x {found}")
    else:
        on_path = shutil.which(program)
        found = on_path and os.path.abspath(on_path)  # noqa: PTH100 - PATH may hold relative folders
    if found is None:
        what = f"no such program: {_shorten(program)}" if len(words) > 1 else f"no such bot: {_shorten(text)}"
        hint = did_you_mean(program.partition(":")[0], SAMPLE_BOTS) if len(words) == 1 else ""
        raise BotError(
            f"{what}{hint} (looked for a sample bot [{', '.join(SAMPLE_BOTS)}], "
            f"a path from {base.resolve()}, and a program on PATH)"
        )
    files = [path for word in words[1:] if (path := _existing_path(base, word)) and _is_file(path)]
    if os.sep in program:
        files.append(Path(found))
    own_name = files[0].stem if files else Path(program).name
    return Player(name or own_name, (found, *words[1:]), str(base.resolve()), _digest(files, None))


def _shorten(text: str, limit: int = 80) -> str:
    return repr(text if len(text) <= limit else text[:limit] + "...")


def _directory_digest(directory: Path) -> str:
    files = []
    for folder, folders, names in os.walk(directory):
        folders[:] = sorted(set(folders) - SKIPPED_DIRECTORIES)
        # Pipes, sockets and links to nowhere (editors leave such) are no part of a bot.
        files += [Path(folder, name) for name in sorted(names) if _is_file(Path(folder, name))]
        if len(files) > MAX_FILES:
            raise BotError(f"{directory} holds more than {MAX_FILES} files: is it the directory of a bot?")
    return _digest(files, directory)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False


def _digest(files: list[Path], root: Path | None) -> str:
    """SHA-256 over the files' names (below ``root``, if given) and contents."""
    total = hashlib.sha256()
    for path in files:
        name = str(path.relative_to(root)) if root else path.name
        try:
            with path.open("rb") as file:
                content = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise BotError(f"{path} cannot be read: {error.strerror}") from error
        total.update(f"{name}\0{content}\n".encode())
    return total.hexdigest()
