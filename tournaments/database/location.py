"""Which places a server has, in files or in one PostgreSQL database."""

import re
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import URL

from tournaments.database.errors import StoreError
from tournaments.database.place import Place
from tournaments.database.postgresql import PostgreSQLSchema, parse_url
from tournaments.database.sqlite import SQLiteFile

SLUG = re.compile("[a-z0-9-]{1,40}")
"""Names of competitions."""


@dataclass(frozen=True)
class Database:
    """A folder of SQLite files, or a PostgreSQL database with a schema for each of those."""

    where: Path | URL

    @classmethod
    def at(cls, location: str | Path) -> "Database":
        """In a folder, or at ``postgresql://USER@HOST/DATABASE``; StoreError if that is no address."""
        if isinstance(location, str) and (
            ":/" in location or location.startswith(("postgresql:", "postgres:"))
        ):
            return cls(parse_url(location))
        return cls(Path(location))

    def course(self) -> Place:
        """Accounts, teams, versions: ``course.db``, for its owner's eyes alone, or the schema ``course``.

        The folder is made.  Raises StoreError.
        """
        return self._place("course", "course.db", is_private=True)

    def competition(self, slug: str) -> Place:
        """The games of one: ``competitions/SLUG/results.db``, or the schema ``competition-SLUG``.

        The folder is made.  Raises StoreError, and ValueError if that is no slug.
        """
        if not SLUG.fullmatch(slug):
            raise ValueError(f"no competition's name: {slug!r}")
        return self._place(f"competition-{slug}", f"competitions/{slug}/results.db")

    def _place(self, schema: str, file: str, *, is_private: bool = False) -> Place:
        if isinstance(self.where, URL):
            return PostgreSQLSchema(self.where, schema)
        path = self.where / file
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"{path.parent} cannot be made: {error.strerror}", is_ours=True) from error
        return SQLiteFile(path, is_private)
