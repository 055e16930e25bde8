"""Files that are not TOML: every reader reports them by its own error, with the path and the reason."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tournaments.bots.errors import ManifestError
from tournaments.bots.manifest import MANIFEST_FILE, load_manifest
from tournaments.config.load import ConfigError, load_tournament
from tournaments.reporting.marks.marks_file import MarksError, load_marks
from tournaments.web.server_config import ServerFileError, load_server_file

READERS: dict[str, tuple[str, Callable[[Path], object], type[Exception]]] = {
    "tournament": ("cup.toml", load_tournament, ConfigError),
    "manifest": (MANIFEST_FILE, lambda path: load_manifest(path.parent), ManifestError),
    "marks": ("marks.toml", load_marks, MarksError),
    "server": ("server.toml", load_server_file, ServerFileError),
}
CONTENTS = {
    "Latin-1": ('name = "Größe"'.encode("latin-1"), "cannot be read: it is not UTF-8 text"),
    "no value": (b"name = ", "this is not TOML: Invalid value (at end of document)"),
    "deep": (b"name = " + b"[" * 100_000, "its brackets are too deep"),
    "long number": (b"name = " + b"9" * 5000, "a number has too many digits"),
}
VALUES = {
    "deep": b"{" + b".".join([b"a"] * 2000) + b" = 1}",
    "long": b"0x" + b"f" * 4000,
    "long in a list": b"[[0x" + b"f" * 4000 + b"]]",
}
"""Values that ``repr`` cannot show."""


@pytest.mark.parametrize("content", CONTENTS)
@pytest.mark.parametrize("reader", READERS)
def test_the_error_has_the_path_and_the_reason(tmp_path: Path, reader: str, content: str) -> None:
    name, read, error = READERS[reader]
    data, reason = CONTENTS[content]
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(error) as raised:
        read(path)
    assert str(raised.value).startswith(f"{path}: {reason}")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("key", ["name", "authors", "bots", "command", "points", "port", "data"])
@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("reader", READERS)
def test_a_value_that_cannot_be_shown_is_named_by_its_key(
    tmp_path: Path, reader: str, value: str, key: str
) -> None:
    name, read, error = READERS[reader]
    path = tmp_path / name
    path.write_bytes(key.encode() + b" = " + VALUES[value] + b"\n")
    with pytest.raises(error) as raised:
        read(path)
    assert key in str(raised.value)
    assert "Exceeds the limit" not in str(raised.value)


@pytest.mark.parametrize("reader", READERS)
def test_a_byte_order_mark_is_no_error_in_toml(tmp_path: Path, reader: str) -> None:
    name, read, error = READERS[reader]
    (tmp_path / name).write_bytes(b'\xef\xbb\xbfsome_key = "x"\n')
    with pytest.raises(error) as raised:
        read(tmp_path / name)
    assert "some_key" in str(raised.value)
