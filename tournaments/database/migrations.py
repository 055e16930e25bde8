"""Migrations of tables by Alembic, all steps and their record in one transaction.

All migrations, also old ones, call the functions that make a table append-only: the statements of these
functions must not change.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, MetaData, inspect

from tournaments.database.base import Connections, Kind, StoreError

if TYPE_CHECKING:
    from alembic.config import Config

_VERSION_TABLE = "alembic_version"
"""Alembic's own name for the table with the revision."""


@dataclass(frozen=True)
class Migrations:
    """The steps that lead to one set of tables."""

    scripts: Path
    """Alembic's folder, with ``env.py`` and ``versions``."""
    newest: str
    """The revision that the tables of this version of kalarena have."""
    noun: str
    """Noun for these tables in messages, such as "results store"."""
    remedy: str
    """Remedy for messages if there are no tables and none may be made."""
    readable: tuple[str, ...] = ()
    """Older revisions that are readable without a migration: newer ones only add tables."""

    def apply(self, connections: Connections) -> str:
        """Make the tables, or migrate them if they are old; return their revision.

        Raises StoreError, also for tables of a newer version or of another program, and for read-only tables
        of a revision that is neither the newest nor readable.
        """
        tables, found = _present(connections)
        if found is not None and connections.read_only and found in self.readable:
            return found
        if found != self.newest:
            self._migrate(connections, found, tables)
        return self.newest

    def refuse_newer(self, connections: Connections) -> None:
        """Raise StoreError for tables of a newer version; change nothing."""
        _, found = _present(connections)
        if found is not None and found != self.newest:
            self._configuration(connections, found)

    def _configuration(self, connections: Connections, found: str | None) -> "Config":
        """Return Alembic's configuration.  Raises StoreError for tables of a newer version."""
        # Imported here since that takes 0.2 s, and migrations are rare.
        from alembic.config import Config
        from alembic.script import ScriptDirectory

        config = Config()
        config.set_main_option("script_location", str(self.scripts).replace("%", "%%"))
        known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
        if found is not None and found not in known:
            raise StoreError(
                f"{connections.location} was written by a newer version of kalarena (its schema is {found}, "
                f"the newest known here is {self.newest}): upgrade kalarena to use it"
            )
        return config

    def _migrate(self, connections: Connections, found: str | None, tables: Sequence[str]) -> None:
        from alembic import command

        config = self._configuration(connections, found)
        location = connections.location
        if found is None and tables:
            raise StoreError(f"{location}: this {location.noun} is no {self.noun}, but another program's")
        if connections.read_only:
            raise StoreError(f"{location} holds nothing yet, or is of an older version: {self.remedy}")
        with connections.writing("it could not be brought up to date: ", Kind.MIGRATE) as connection:
            config.attributes["connection"] = connection
            command.upgrade(config, "head")


def _present(connections: Connections) -> tuple[list[str], str | None]:
    """Return the names of the tables, and their revision; None if they have none."""
    with connections.reading() as connection:
        tables = inspect(connection).get_table_names()
        if _VERSION_TABLE not in tables:
            return tables, None
        return tables, connection.exec_driver_sql(f"SELECT version_num FROM {_VERSION_TABLE}").scalar()


def run_steps(tables: MetaData) -> None:
    """Run the steps on the connection of ``Migrations.apply``; Alembic runs ``env.py``, which calls this."""
    from alembic import context

    context.configure(
        connection=context.config.attributes["connection"],
        target_metadata=tables,
        render_as_batch=True,  # SQLite cannot alter a table in place
    )
    with context.begin_transaction():
        context.run_migrations()


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
