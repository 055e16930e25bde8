"""The locations of a server's data, in SQLite files or in one PostgreSQL database."""

import re
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import URL

from tournaments.database.base import Location, StoreError
from tournaments.database.postgresql import PostgreSQLSchema, parse_url
from tournaments.database.sqlite import SQLiteFile

SLUG = re.compile("[a-z0-9-]{1,40}")
"""Names of competitions."""
SQLITE, POSTGRESQL = "sqlite", "postgresql"
"""Kinds of databases."""


@dataclass(frozen=True)
class Database:
    """A folder of SQLite files, or a PostgreSQL database with a schema instead of each file."""

    address: Path | URL

    @classmethod
    def at(cls, location: str | Path) -> "Database":
        """Return the database in a folder or at ``postgresql://USER@HOST/DATABASE``.  Raises StoreError."""
        if isinstance(location, str) and (
            ":/" in location or location.startswith(("postgresql:", "postgres:"))
        ):
            return cls(parse_url(location))
        return cls(Path(location))

    @property
    def kind(self) -> str:
        """``SQLITE`` or ``POSTGRESQL``."""
        return POSTGRESQL if isinstance(self.address, URL) else SQLITE

    def course(self) -> Location:
        """Return the location of the course: ``course.db``, private to its owner, or the schema ``course``.

        The folder is made if it is missing.  Raises StoreError.
        """
        return self._location("course", "course.db", is_private=True)

    def competition(self, slug: str) -> Location:
        """Return the location of a competition: ``competitions/SLUG/results.db``, or ``competition-SLUG``.

        The folder is made if it is missing; schemas share their connections.  Raises StoreError, and
        ValueError if ``slug`` is no slug.
        """
        if not SLUG.fullmatch(slug):
            raise ValueError(f"no competition's name: {slug!r}")
        file = f"competitions/{slug}/results.db"
        return self._location(f"competition-{slug}", file, pool="competitions")

    def _location(self, schema: str, file: str, *, is_private: bool = False, pool: str = "") -> Location:
        if isinstance(self.address, URL):
            return PostgreSQLSchema(self.address, schema, pool)
        path = self.address / file
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"{path.parent} cannot be made: {error.strerror}", is_ours=True) from error
        return SQLiteFile(path, is_private)
