"""Triggers that make a table append-only: the database refuses to change or remove its rows.

Migrations call these functions, also old ones: the statements must stay as they are.
"""

from sqlalchemy import Connection

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
