"""Manifest of a backup: the last member of its archive, by which all others are verified."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import PurePosixPath
from typing import Any

FORM = "kalarena backup 2"
"""Name of the form of backups."""
OLD_FORM = "kalarena backup 1"
"""Name of the earlier form, which has no digest of the manifest itself."""
NAME = "kalarena-backup.json"
"""Name of the archive's member; nothing in a data directory has this name."""
SHA256 = "sha256"
"""Name of the field with the digest of all other fields: nothing else verifies a date or a permission."""


class BackupError(Exception):
    """A backup could not be made, read or restored; the message gives the reason and a remedy."""


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
    """Version of Kalarena that made the backup."""
    databases_inside: bool
    """False if the databases are on a PostgreSQL server, and have to be backed up there."""
    files: Mapping[str, Kept] = field(default_factory=dict)
    """Path below the data directory -> file."""
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
        fields = {"form": FORM, **asdict(self)}
        return json.dumps({**fields, SHA256: _digest(fields)}, indent=1, sort_keys=True) + "\n"

    @classmethod
    def from_json(cls, text: bytes) -> "Manifest":
        """Return the manifest of a text that ``to_json`` made.  Raises BackupError."""
        try:
            fields = json.loads(text)
            form = fields.pop("form")
            if form not in (FORM, OLD_FORM):
                raise BackupError(
                    "it was made by a newer version of kalarena: upgrade kalarena to restore it"
                )
            if form == FORM and fields.pop(SHA256) != _digest({"form": FORM, **fields}):
                raise BackupError("what it says of its files was changed: it is damaged")
            files = {path: Kept(**file) for path, file in fields.pop("files").items()}
            manifest = cls(**fields, files=files)
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


def _digest(fields: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()


def check_path(path: str) -> None:
    """Raise BackupError for a path that leads out of the directory that the backup is restored into."""
    parts = PurePosixPath(path).parts
    if not parts or path != "/".join(parts) or parts[0] == "/" or ".." in parts or "\0" in path:
        raise BackupError(f"it has a file called {path!r}, which no backup has: it was not made by kalarena")
