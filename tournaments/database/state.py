"""State of a server's database, for its operator."""

from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection

from tournaments.database.base import Connections
from tournaments.database.location import Database


@dataclass(frozen=True)
class DatabaseState:
    """A database that works."""

    kind: str
    """Name and version of the database system."""
    size_bytes: int
    connections: int | None = None
    """Connections to the database, also of others; None for SQLite."""
    most_connections: int | None = None
    """Connections that the database server allows; None for SQLite."""

    def __str__(self) -> str:
        text = f"{self.kind}, {self.size_bytes / 1e6:.1f} MB"
        if self.connections is None:
            return text
        return f"{text}, {self.connections} of {self.most_connections} connections"


def database_state(database: Database, connections: Connections) -> DatabaseState:
    """Return the state of a database, over connections to its course.  Blocks.  Raises StoreError."""
    with connections.reading() as connection:
        if not isinstance(database.address, Path):
            return _of_server(connection)
        (version,) = connection.exec_driver_sql("SELECT sqlite_version()").one()
        connection.exec_driver_sql("SELECT count(*) FROM journal").scalar()  # it can be read
    files = [*database.address.glob("course.db*"), *database.address.glob("competitions/*/results.db*")]
    size = 0
    for file in files:
        try:
            size += file.stat().st_size
        except FileNotFoundError:  # of the write-ahead log
            continue
    return DatabaseState(f"SQLite {version}", size)


def _of_server(connection: Connection) -> DatabaseState:
    version, size, used, most = connection.exec_driver_sql(
        "SELECT current_setting('server_version'), pg_database_size(current_database()), "
        "(SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()), "
        "current_setting('max_connections')::int"
    ).one()
    return DatabaseState(f"PostgreSQL {version.split()[0]}", size, used, most)
