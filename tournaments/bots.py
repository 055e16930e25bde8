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
    try:
        command = sample_bot_command(text)
    except BadOptionError as error:
        raise BotError(str(error)) from error
    if command is not None:
        return Player(name or text, tuple(command), str(base.resolve()), _digest(sample_bot_files(), None))
    path = (base / Path(text).expanduser()).resolve()
    if path.is_dir():
        file = _entry_point(path)
        return Player(name or path.name, _file_command(file), str(path), _directory_digest(path))
    if path.exists():
        return Player(name or path.stem, _file_command(path), str(path.parent), _digest([path], path.parent))
    return _command_line(text, base, name)


def _entry_point(directory: Path) -> Path:
    """What to run in a bot's directory: bot.py, else its one jar, else its one executable file."""
    script = directory / "bot.py"
    if script.is_file():
        return script
    files = sorted(path for path in directory.iterdir() if path.is_file() and not path.name.startswith("."))
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
        path = Path(os.path.abspath(base / Path(program).expanduser()))  # noqa: PTH100 - keeps links as they are
        found = str(path) if path.is_file() else None
        if found and not os.access(path, os.X_OK):
            raise BotError(f"{path} is not executable: chmod +x {path}")
    else:
        found = shutil.which(program)
    if found is None:
        what = f"no such program: {program!r}" if len(words) > 1 else f"no such bot: {text!r}"
        hint = did_you_mean(program.partition(":")[0], SAMPLE_BOTS) if len(words) == 1 else ""
        raise BotError(
            f"{what}{hint} (looked for a sample bot [{', '.join(SAMPLE_BOTS)}], "
            f"a path from {base.resolve()}, and a program on PATH)"
        )
    files = [path for word in words[1:] if (path := base / word).is_file()]
    if os.sep in program:
        files.append(Path(found))
    own_name = files[0].stem if files else Path(program).name
    return Player(name or own_name, (found, *words[1:]), str(base.resolve()), _digest(files, None))


def _directory_digest(directory: Path) -> str:
    files = []
    for folder, folders, names in os.walk(directory):
        folders[:] = sorted(set(folders) - SKIPPED_DIRECTORIES)
        files += [Path(folder, name) for name in sorted(names)]
    return _digest(files, directory)


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
