"""Migrations of tables by Alembic, all steps and their record in one transaction.

Migrations call the functions that make a table append-only, also old ones: their statements must stay as
they are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, inspect

from tournaments.database.base import Kind, StoreError
from tournaments.database.connections import Connections

_VERSION_TABLE = "alembic_version"
"""Alembic's own name for the table with the revision."""


@dataclass(frozen=True)
class Migrations:
    """The steps that lead to one set of tables."""

    scripts: Path
    """Alembic's folder, with ``env.py`` and ``versions``."""
    newest: str
    """The revision that the tables of this version of kalarena have."""
    what: str
    """Noun for these tables in messages, such as "results store"."""
    missing: str
    """Remedy for messages if there are no tables and none may be made."""
    readable: tuple[str, ...] = ()
    """Older revisions that can be read as they are: newer ones only add tables to them."""

    def apply(self, connections: Connections) -> str:
        """Make the tables, or bring them up to date if they are old; return the revision that they have.

        Raises StoreError, also if they are newer than this program, or not ours; if opened read-only, for
        any but the newest and the readable ones.
        """
        with connections.reading() as connection:
            tables = inspect(connection).get_table_names()
            found: str | None = None
            if _VERSION_TABLE in tables:
                found = connection.exec_driver_sql(f"SELECT version_num FROM {_VERSION_TABLE}").scalar()
        if found is not None and connections.read_only and found in self.readable:
            return found
        if found != self.newest:
            self._migrate(connections, found, tables)
        return self.newest

    def _migrate(self, connections: Connections, found: str | None, tables: Sequence[str]) -> None:
        # Imported here because that takes 0.2 s, and tables are rarely new or old.
        from alembic import command
        from alembic.config import Config
        from alembic.script import ScriptDirectory

        config = Config()
        config.set_main_option("script_location", str(self.scripts).replace("%", "%%"))
        known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
        place = connections.place
        if found is not None and found not in known:
            raise StoreError(
                f"{place} was written by a newer version of kalarena (its schema is {found}, the newest "
                f"known here is {self.newest}): upgrade kalarena to use it"
            )
        if found is None and tables:
            raise StoreError(f"{place}: this {place.noun} is no {self.what}, but another program's")
        if connections.read_only:
            raise StoreError(f"{place} holds nothing yet, or is of an older version: {self.missing}")
        with connections.writing("it could not be brought up to date: ", Kind.MIGRATE) as connection:
            config.attributes["connection"] = connection
            command.upgrade(config, "head")


_NAMES = ("update", "delete", "replace")
"""Triggers of SQLite, which has one for each kind of statement."""


def forbid_changes(connection: Connection, table: str, key: str, message: str) -> None:
    """Create the triggers of a table; a statement that they refuse fails with ``message``.

    ``key`` is the primary key's column.  SQLite drops triggers with their table: a later migration that makes
    the table anew (``batch_alter_table``) calls this function again.
    """
    if connection.dialect.name == "postgresql":
        # A REPLACE, for which SQLite needs a third trigger, is an UPDATE here.
        connection.exec_driver_sql(
            f"CREATE FUNCTION {table}_is_kept() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN RAISE integrity_constraint_violation USING MESSAGE = '{message}'; END $$"
        )
        connection.exec_driver_sql(
            f"CREATE TRIGGER {table}_is_kept BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} "
            f"FOR EACH STATEMENT EXECUTE FUNCTION {table}_is_kept()"
        )
        return
    replaces = f'INSERT ON {table} WHEN EXISTS (SELECT 1 FROM {table} WHERE "{key}" = NEW."{key}")'
    statements = (f"UPDATE ON {table}", f"DELETE ON {table}", replaces)
    for name, statement in zip(_NAMES, statements, strict=True):
        connection.exec_driver_sql(
            f"CREATE TRIGGER {table}_no_{name} BEFORE {statement} BEGIN SELECT RAISE(ABORT, '{message}'); END"
        )


def allow_changes(connection: Connection, table: str) -> None:
    """Drop the triggers of a table."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"DROP TRIGGER IF EXISTS {table}_is_kept ON {table}")
        connection.exec_driver_sql(f"DROP FUNCTION IF EXISTS {table}_is_kept()")
        return
    for name in _NAMES:
        connection.exec_driver_sql(f"DROP TRIGGER IF EXISTS {table}_no_{name}")
