"""Parser of bot.toml, the manifest of a bot's directory.

It is validated by hand: `kalarena play` reads one or two manifests, and importing pydantic takes longer than
a game.
"""

import os
import re
import shlex
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from referee.adapters.command import PROTOCOLS
from referee.games.catalog import all_games
from referee.games.spec import did_you_mean
from referee.judge.results import CAPABILITIES
from tournaments.bots.errors import ManifestError
from tournaments.files.toml_file import TomlError, read_toml
from tournaments.files.validation_errors import no_list, shown, unknown_key

MANIFEST_FILE = "bot.toml"

NAME = re.compile(r"\w[\w .:+=(),'-]{0,59}")
"""Valid names of bots."""
NAME_RULE = (
    "a name is 1 to 60 letters, digits, spaces and . : + = ( ) , ' - _ and begins with a letter, digit or _"
)


def check_name(name: str | None) -> str | None:
    """Return the name if it is valid.  Raises ValueError."""
    if name is not None and not NAME.fullmatch(name):
        raise ValueError(NAME_RULE)
    return name


@dataclass(frozen=True)
class Manifest:
    """Declarations of a bot."""

    command: list[str]
    """Command that starts it, from its directory; a first word with a / in it is a path from there."""
    name: str | None = None
    """Name of the bot.  Default: the directory's name."""
    authors: list[str] = field(default_factory=list)
    games: list[str] | None = None
    """Names of the games that it plays, as `kalarena games` lists them; None declares nothing."""
    capabilities: list[str] = field(default_factory=list)
    """Optional parts of the protocol that it supports."""
    protocol: str | None = None
    """The protocol that it speaks, one of PROTOCOLS; None declares nothing."""
    build: list[str] | None = None
    """Build command, run in the bot's directory when a file of ``made`` is missing."""
    made: list[str] | None = None
    """Files that the build makes.  Default: the command's program, if it is a relative path, or its jar."""

    @property
    def products(self) -> list[str]:
        """Files that the build makes."""
        if self.made is not None:
            return self.made
        found = [word for word in self.command[:1] if "/" in word and not word.startswith("/")]
        if "-jar" in self.command[:-1]:
            found.append(self.command[self.command.index("-jar") + 1])
        return found


def _words(value: Any) -> list[str]:
    """Return the words of a command, which may be a list or a text as for a shell.  Raises ValueError."""
    words = shlex.split(value) if isinstance(value, str) else value
    if not isinstance(words, list) or not words or not all(isinstance(word, str) for word in words):
        raise ValueError("must be a text as for a shell, or a list of words")
    if any("\0" in word for word in words):
        raise ValueError("holds a NUL character")
    return words


def _name(value: Any) -> str | None:
    """Return a valid name.  Raises ValueError."""
    if not isinstance(value, str):
        raise ValueError(f"must be a text, not {shown(value)}")
    return check_name(value)


def _protocol(value: Any) -> str:
    """Return the name of a protocol.  Raises ValueError."""
    if value not in PROTOCOLS:
        hint = did_you_mean(value, PROTOCOLS) if isinstance(value, str) else ""
        raise ValueError(f"no protocol {shown(value)}{hint}; there are {', '.join(PROTOCOLS)}")
    return str(value)


def _texts(value: Any) -> list[str]:
    """Return a list of texts.

    Raises ValueError, or an ExceptionGroup with an _ItemError for each item that is no text.
    """
    if not isinstance(value, list):
        raise ValueError(no_list(value))
    wrong = [_ItemError(number, item) for number, item in enumerate(value, 1) if not isinstance(item, str)]
    if wrong:
        raise ExceptionGroup("items", wrong)
    return value


class _ItemError(ValueError):
    """An item of a list is no text."""

    def __init__(self, number: int, item: Any) -> None:
        super().__init__(f"[{number}]: must be a text, not {shown(item)}")


def _texts_of(known_words: Callable[[], Collection[str]], what: str) -> Callable[[Any], list[str]]:
    """Return a check for lists of known words."""

    def check(value: Any) -> list[str]:
        known = known_words()
        for word in _texts(value):
            if word not in known:
                raise ValueError(
                    f"no {what} {word!r}{did_you_mean(word, known)}; there are {', '.join(known)}"
                )
        return _texts(value)

    return check


CHECKS: dict[str, Callable[[Any], Any]] = {
    "command": _words,
    "name": _name,
    "authors": _texts,
    "games": _texts_of(all_games, "game"),
    "capabilities": _texts_of(lambda: CAPABILITIES, "capability"),
    "protocol": _protocol,
    "build": _words,
    "made": _texts,
}
"""Key -> its check, which returns the value or raises ValueError."""


def manifest_of(data: dict[str, Any]) -> Manifest:
    """Return the manifest of a TOML table.  Raises ManifestError with a line for each problem."""
    values: dict[str, Any] = {}
    problems = [] if "command" in data else ["command: is missing"]
    for key, check in CHECKS.items():
        if key not in data:
            continue
        try:
            values[key] = check(data[key])
        except ValueError as error:
            problems.append(f"{key}: {error}")
        except ExceptionGroup as group:
            problems += [f"{key}{error}" for error in group.exceptions]
    problems += [unknown_key(key, key, list(CHECKS)) for key in data if key not in CHECKS]
    if not problems:
        manifest = Manifest(**values)
        if manifest.build is None or manifest.products:
            return manifest
        problems.append('build needs made = ["..."] as well: the files that it makes')
    raise ManifestError("\n".join(problems))


def load_manifest(directory: Path) -> Manifest | None:
    """Return the manifest of a directory; None if it has none.  Raises ManifestError."""
    path = directory / MANIFEST_FILE
    if not os.path.isfile(path):  # noqa: PTH113 - False below an unreadable directory
        return None
    try:
        return manifest_of(read_toml(path))
    except (TomlError, ManifestError) as error:
        lines = str(error).split("\n")
        raise ManifestError("; ".join(f"{path}: {line}" for line in lines)) from error
