"""One server for each PostgreSQL database: its lock, and the data directory that the database belongs to.

The lock is an advisory lock of a session, held by a connection of its own for as long as the server lives.
The identity of the data directory is compared with one in the database, so that a restored directory, which
still names the database of the original, is not used with it.
"""

import os
import socket
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from sqlalchemy import URL, Connection

from tournaments.database.base import Connections, StoreError
from tournaments.database.postgresql import NETWORK_TIMEOUT_S, PostgreSQLSchema

SCHEMA = "kalarena"
"""Schema of the table with the identity."""
LOCK = 0x6B616C6172656E61
"""Number of the advisory lock: "kalarena" in ASCII.  Writers' locks have the hashes of schemas."""
WAIT_MS = 5_000
"""Milliseconds to wait for the lock: the database may notice a moment later that a server was killed."""
LONGEST_NAME = 63
"""Characters of an application's name that PostgreSQL keeps."""


class TakenError(StoreError):
    """Another server has the lock."""


class ServerLock:
    """Lock of a database; use as a context manager.  Its methods block, and raise StoreError.

    ``take`` raises TakenError if another server has the lock.
    """

    def __init__(self, url: URL) -> None:
        # PostgreSQL notices within this time that a machine has gone, and releases the lock.
        alive = f"-c tcp_keepalives_idle={NETWORK_TIMEOUT_S // 2} -c tcp_keepalives_interval=5"
        name = f"kalarena server {socket.gethostname()[:30]} process {os.getpid()}"[:LONGEST_NAME]
        query = {**url.query, "application_name": name}
        query["options"] = f"{url.query.get('options', '')} {alive} -c tcp_keepalives_count=3".strip()
        self._location = PostgreSQLSchema(url.set(query=query), SCHEMA)
        self._connections = Connections(self._location)
        self._held = ExitStack()
        self._connection: Connection | None = None

    def __enter__(self) -> Self:
        try:
            self.take()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def name(self) -> str:
        """Name of the database for messages, without its password."""
        return str(self._location).partition(" of ")[2]

    @property
    def descriptor(self) -> int:
        """File descriptor of the connection, which becomes readable when the connection is lost."""
        assert self._connection is not None
        driver = self._connection.connection.driver_connection
        assert driver is not None
        number: int = driver.fileno()
        return number

    def take(self) -> None:
        """Take the lock, over a new connection."""
        self._drop()
        with self._connections.explained():
            connection = self._held.enter_context(self._connections.session())
            connection.exec_driver_sql(f"SET lock_timeout = {WAIT_MS}")
            try:
                connection.exec_driver_sql("SELECT pg_advisory_lock(%s)", (LOCK,))
            except Exception as error:
                if getattr(getattr(error, "orig", None), "sqlstate", None) != "55P03":
                    self._drop()
                    raise
                holder = _holder(connection)
                self._drop()
                raise TakenError(
                    f"another server is at work in {self.name}{holder}: end it, or name another database in "
                    "server.toml"
                ) from error
        self._connection = connection

    def is_held(self) -> bool:
        """Return whether the connection with the lock is still there."""
        if self._connection is None:
            return False
        try:
            with self._connections.explained():
                self._connection.exec_driver_sql("SELECT 1")
        except StoreError:
            return False
        return True

    def close(self) -> None:
        """Release the lock."""
        self._drop()
        self._connections.close()

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.invalidate()
            self._connection = None
        self._held.close()

    def claim(self, identity: str, *, adopt: bool = False) -> None:
        """Compare a data directory's identity with the one in the database.

        A database that belongs to no directory yet, or is a copy of another database, is claimed for the
        directory; with ``adopt`` any database is.  The lock must be held.  Raises StoreError if the database
        belongs to another data directory.
        """
        connection = self._connection
        assert connection is not None
        with self._connections.explained("its identity could not be stored: "):
            connection.exec_driver_sql(f'CREATE SCHEMA IF NOT EXISTS "{SCHEMA}"')
            connection.exec_driver_sql(
                "CREATE TABLE IF NOT EXISTS installation "
                "(id integer PRIMARY KEY CHECK (id = 1), identity text NOT NULL, database text NOT NULL)"
            )
            row = connection.exec_driver_sql("SELECT identity, database FROM installation").first()
            here = _database_id(connection)
            if row is not None and row.identity != identity and row.database == here and not adopt:
                raise StoreError(
                    f"{self.name} belongs to another data directory, and this one was restored or copied: "
                    "name another database in server.toml. If this directory takes the place of the other "
                    "one, run: kalarena admin adopt"
                )
            connection.exec_driver_sql(
                "INSERT INTO installation VALUES (1, %s, %s) "
                "ON CONFLICT (id) DO UPDATE SET identity = excluded.identity, database = excluded.database",
                (identity, here),
            )


def _database_id(connection: Connection) -> str:
    """Return a name of the database that no copy of it has: its cluster, and its number there."""
    query = (
        "SELECT (SELECT system_identifier FROM pg_control_system())::text || ':' || oid::text "
        "FROM pg_database WHERE datname = current_database()"
    )
    return str(connection.exec_driver_sql(query).scalar_one())


def _holder(connection: Connection) -> str:
    """Return the server with the lock for a message; empty if it is not known (any more)."""
    query = (
        "SELECT application_name, backend_start FROM pg_locks JOIN pg_stat_activity USING (pid) "
        "WHERE locktype = 'advisory' AND granted AND objsubid = 1 AND classid = %s AND objid = %s "
        "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    )
    row = connection.exec_driver_sql(query, (LOCK >> 32, LOCK & 0xFFFFFFFF)).first()
    if row is None or row.backend_start is None:
        return ""
    return f" ({row.application_name}, since {row.backend_start:%Y-%m-%d %H:%M})"
