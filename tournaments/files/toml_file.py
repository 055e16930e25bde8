"""Reader of TOML files: each error is a sentence for the author of the file."""

import tomllib
from pathlib import Path
from typing import Any


class TomlError(ValueError):
    """A TOML file that cannot be read or parsed; the message has the reason, without the file's path."""


def read_toml(path: Path) -> dict[str, Any]:
    """Return the data of a file.  Raises TomlError if it cannot be read, or is not TOML."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise TomlError(f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise TomlError("cannot be read: it is not UTF-8 text") from error
    return parse_toml(text)


def parse_toml(text: str) -> dict[str, Any]:
    """Return the data of a text.  Raises TomlError."""
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))  # editors on Windows put a byte order mark first
    except RecursionError as error:
        raise TomlError("its brackets are too deep") from error
    except tomllib.TOMLDecodeError as error:
        raise TomlError(f"this is not TOML: {error}") from error
    except ValueError as error:  # of int(), see sys.set_int_max_str_digits
        raise TomlError("a number has too many digits") from error
