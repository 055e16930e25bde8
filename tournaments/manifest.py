"""bot.toml, the manifest of a bot's directory."""

import re
import shlex
import tomllib
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError, field_validator, model_validator

from referee.games.catalog import GAMES
from referee.games.spec import did_you_mean
from referee.results import CAPABILITIES
from tournaments.complaints import render

MANIFEST_FILE = "bot.toml"


class ManifestError(ValueError):
    """A manifest that cannot be used; the message has one line for each thing that is wrong."""


NAME = re.compile(r"\w[\w .:+=(),'-]{0,59}")
"""What a bot may be called."""


def check_name(name: str | None) -> str | None:
    """The name, if it can be one.  Raises ValueError."""
    if name is not None and not NAME.fullmatch(name):
        raise ValueError(
            "a name is 1 to 60 letters, digits, spaces and . : + = ( ) , ' - "
            "and begins with a letter or digit"
        )
    return name


def _words(value: Any) -> Any:
    """A command may be a list of words or a text as for a shell."""
    words = shlex.split(value) if isinstance(value, str) else value
    if not isinstance(words, list) or not words or not all(isinstance(word, str) for word in words):
        raise ValueError("must be a text as for a shell, or a list of words")
    if any("\0" in word for word in words):
        raise ValueError("holds a NUL character")
    return words


Command = Annotated[list[str], BeforeValidator(_words)]


class Manifest(BaseModel):
    """What a bot says of itself."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    command: Command
    """How to start it, from its directory; a first word with a / in it is a path from there."""
    name: str | None = None
    """Default: the directory's name."""
    authors: list[str] = []
    games: list[str] | None = None
    """Names of the games that it plays, as `kalarena games` lists them; None says nothing."""
    capabilities: list[str] = []
    """What of the protocol's optional parts it can take."""
    build: Command | None = None
    """How to make it, run in its directory when something of ``made`` is not there."""
    made: list[str] | None = None
    """What the build makes.  Default: the command's program, if it is a path, or its jar."""

    @property
    def products(self) -> list[str]:
        """What the build makes."""
        if self.made is not None:
            return self.made
        found = [word for word in self.command[:1] if "/" in word]
        if "-jar" in self.command[:-1]:
            found.append(self.command[self.command.index("-jar") + 1])
        return found

    @field_validator("name")
    @classmethod
    def _printable(cls, name: str | None) -> str | None:
        return check_name(name)

    @model_validator(mode="after")
    def _makes_something(self) -> "Manifest":
        if self.build is not None and not self.products:
            raise ValueError('build needs made = ["..."] as well: the files that it makes')
        return self

    @field_validator("games")
    @classmethod
    def _known_games(cls, games: list[str] | None) -> list[str] | None:
        return games and _known(games, list(GAMES), "game")

    @field_validator("capabilities")
    @classmethod
    def _known_capabilities(cls, capabilities: list[str]) -> list[str]:
        return _known(capabilities, CAPABILITIES, "capability")


def _known(given: list[str], known: Any, what: str) -> list[str]:
    for word in given:
        if word not in known:
            raise ValueError(f"no {what} {word!r}{did_you_mean(word, known)}; there are {', '.join(known)}")
    return given


def load_manifest(directory: Path) -> Manifest | None:
    """The manifest of a directory; None if it has none.  Raises ManifestError."""
    path = directory / MANIFEST_FILE
    if not path.is_file():
        return None
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8-sig"))
        return Manifest.model_validate(data)
    except OSError as error:
        raise ManifestError(f"{path}: cannot be read: {error.strerror}") from error
    except ValidationError as error:
        lines = [render(item, lambda _: list(Manifest.model_fields)) for item in error.errors()]
        raise ManifestError("; ".join(f"{path}: {line}" for line in lines)) from error
    except RecursionError as error:
        raise ManifestError(f"{path}: its brackets are too deep") from error
    except ValueError as error:  # not UTF-8, or not TOML
        raise ManifestError(f"{path}: this is not TOML: {error}") from error
