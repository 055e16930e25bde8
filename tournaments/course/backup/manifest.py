"""The manifest of a backup: the last member of its archive, by which all others are verified."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import PurePosixPath
from typing import Any

FORM = "kalarena backup 2"
"""Name of the form of backups, which distinguishes it from later ones."""
OLD_FORM = "kalarena backup 1"
"""Name of the earlier form, without a digest of the manifest itself."""
NAME = "kalarena-backup.json"
"""Name of the archive's member; nothing in a data directory has this name."""
SHA256 = "sha256"
"""The field with the digest of all others: a date or a permission would not be missed otherwise."""


class BackupError(Exception):
    """A backup could not be made, read or restored; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Kept:
    """One file of the data directory."""

    size: int
    """Bytes."""
    sha256: str
    mode: int
    """Permissions."""


@dataclass(frozen=True)
class Manifest:
    """The content of a backup."""

    made_at: str
    """UTC, ISO 8601."""
    version: str
    """Version of the kalarena that made it."""
    databases_inside: bool
    """False if they are on a PostgreSQL server, whose own backup belongs to this one."""
    files: Mapping[str, Kept] = field(default_factory=dict)
    """Path below the data directory -> the file there."""
    directories: Mapping[str, int] = field(default_factory=dict)
    """Path -> permissions."""
    rows: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Path of a database -> its tables -> the number of rows of each."""

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files.values())

    def to_json(self) -> str:
        """Return the text of the archive's member."""
        told = {"form": FORM, **asdict(self)}
        return json.dumps({**told, SHA256: _digest(told)}, indent=1, sort_keys=True) + "\n"

    @classmethod
    def from_json(cls, text: bytes) -> "Manifest":
        """Return the manifest of a text that ``to_json`` made.  Raises BackupError."""
        try:
            told = json.loads(text)
            form = told.pop("form")
            if form not in (FORM, OLD_FORM):
                raise BackupError(
                    "it was made by a newer version of kalarena: upgrade kalarena to restore it"
                )
            if form == FORM and told.pop(SHA256) != _digest({"form": FORM, **told}):
                raise BackupError("what it says of its files was changed: it is damaged")
            files = {path: Kept(**file) for path, file in told.pop("files").items()}
            manifest = cls(**told, files=files)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise BackupError(f"what it says of its files cannot be read ({error}): it is damaged") from error
        for path in (*manifest.files, *manifest.directories):
            check_path(path)
        return manifest

    def summary(self) -> dict[str, Any]:
        """Return the summary of the backup in numbers."""
        return {
            "made_at": self.made_at,
            "version": self.version,
            "files": len(self.files),
            "bytes": self.size,
            "databases": {path: dict(tables) for path, tables in self.rows.items()},
            "databases_inside": self.databases_inside,
        }


def _digest(told: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def check_path(path: str) -> None:
    """Raise BackupError unless a path stays below the directory that it is restored into."""
    parts = PurePosixPath(path).parts
    if not parts or path != "/".join(parts) or parts[0] == "/" or ".." in parts or "\0" in path:
        raise BackupError(f"it has a file called {path!r}, which no backup has: it was not made by kalarena")
