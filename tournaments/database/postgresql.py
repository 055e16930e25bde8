"""Tables in a schema of a PostgreSQL database."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from threading import Lock
from typing import Any, ClassVar

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError

from tournaments.database.base import BUSY_TIMEOUT_MS, KIND, Explanation, Kind, Location, StoreError

SCHEMA = re.compile(r"[a-z][a-z0-9_-]{0,62}")
"""Names of schemas.  PostgreSQL truncates longer ones, and reserves ``pg_``."""

CONNECT_TIMEOUT_S = 5
"""Seconds that a server may take to answer a new connection."""

STATEMENT_TIMEOUT_MS = 30_000
"""Time limit of a statement, which takes milliseconds as a rule: a page does not wait longer."""

IDLE_TIMEOUT_MS = 60_000
"""Time after which an idle transaction is ended, since others wait for it."""

NETWORK_TIMEOUT_S = 30
"""Seconds without a network answer after which a server is considered gone."""

POOL = 2
"""Connections kept open for one location: a server allows 100 by default, and there are many locations."""

POOL_OVERFLOW = 8
"""Further connections that are opened when needed."""

SHARED_POOL = 4
"""Connections kept open for all locations that share a pool, as the competitions of a server do."""

SHARED_OVERFLOW = 12
"""Further connections of a shared pool.  A transaction takes milliseconds: the threads of a server, which are
more, wait for each other."""

POOL_TIMEOUT_S = 10
"""Seconds to wait for a connection when all are in use."""

OF_SCHEMA = "kalarena_schema"
"""Execution option of a connection: the schema of its transactions."""

READ_ONLY = "kalarena_read_only"
"""Execution option of a connection of a shared pool: its transactions change nothing."""

_shared: dict[tuple[URL, str], tuple[Engine, int]] = {}
"""Address and pool -> engine, and the number of its users."""
_sharing = Lock()

_URL_FORM = (
    "write postgresql://USER:PASSWORD@HOST:PORT/DATABASE, "
    "and in the password %40 for @, %2F for /, %3A for : and %25 for %"
)


def parse_url(text: str) -> URL:
    """Return the address of a database for psycopg.  Raises StoreError, which does not repeat the address."""
    try:
        url = make_url(text)
        is_one = url.drivername in ("postgresql", "postgres") and 0 < (url.port or 1) < 1 << 16
    except (ArgumentError, ValueError):
        is_one = False
    # The rest of a password with an @ in it would be taken for a host, whose name is no secret.
    if not is_one or text.count("@") > 1:
        raise StoreError(f"the database's address cannot be read: {_URL_FORM}")
    if not url.database:
        raise StoreError(f"the database's address names no database: {_URL_FORM}")
    return url.set(drivername="postgresql+psycopg")


@dataclass(frozen=True)
class PostgreSQLSchema(Location):
    """A schema, which is made by the first migration."""

    url: URL
    schema: str
    pool: str = field(default="", compare=False)
    """Name of the pool of connections that schemas share within this process; empty for one of its own."""
    noun: ClassVar[str] = "schema"

    def __post_init__(self) -> None:
        if not SCHEMA.fullmatch(self.schema) or self.schema.startswith("pg_"):
            raise ValueError(f"no name of a schema: {self.schema!r}")

    def __str__(self) -> str:
        user = f"{self.url.username}@" if self.url.username else ""
        port = f":{self.url.port}" if self.url.port else ""
        return f"schema {self.schema} of postgresql://{user}{self.url.host or ''}{port}/{self.url.database}"

    @contextmanager
    def engine(self, *, read_only: bool) -> Iterator[Engine]:
        """Provide an engine that detects a lost connection when it is next used, and replaces it."""
        if self.pool:
            with _sharing:
                engine, users = _shared.get((self.url, self.pool)) or (self._make(SHARED_POOL, False), 0)
                _shared[self.url, self.pool] = engine, users + 1
            try:
                yield engine.execution_options(**{READ_ONLY: read_only})
            finally:
                self._leave()
            return
        engine = self._make(POOL, read_only)
        try:
            yield engine
        finally:
            engine.dispose()

    def _leave(self) -> None:
        """Close the connections of a shared pool after its last use."""
        with _sharing:
            engine, users = _shared.pop((self.url, self.pool))
            if users > 1:
                _shared[self.url, self.pool] = engine, users - 1
                return
        engine.dispose()

    def _make(self, pool_size: int, read_only: bool) -> Engine:
        try:
            engine = create_engine(
                self.url,
                connect_args=self._connect_arguments(read_only),
                pool_size=pool_size,
                max_overflow=SHARED_OVERFLOW if self.pool else POOL_OVERFLOW,
                pool_timeout=POOL_TIMEOUT_S,
                pool_pre_ping=True,
                pool_use_lifo=True,
                hide_parameters=True,  # values may be secret, and tracebacks are logged
            )
        except ImportError as error:
            raise StoreError(
                f"{self} needs the driver psycopg, which is not installed: pip install 'kalarena[postgresql]'"
            ) from error
        event.listen(engine, "begin", partial(_begin, is_shared=bool(self.pool)))
        return engine

    def _connect_arguments(self, read_only: bool) -> dict[str, Any]:
        settings = {
            "search_path": f'"{self.schema}"',  # and not "public", where anybody's tables are
            "statement_timeout": STATEMENT_TIMEOUT_MS,
            "lock_timeout": BUSY_TIMEOUT_MS,
            "idle_in_transaction_session_timeout": IDLE_TIMEOUT_MS,
            "synchronous_commit": "on",  # what is committed survives a crash of the server
            "default_transaction_read_only": "on" if read_only else "off",
        }
        settings_text = " ".join(f"-c {name}={value}" for name, value in settings.items())
        defaults = {
            "connect_timeout": CONNECT_TIMEOUT_S,
            "application_name": f"kalarena {self.pool or self.schema}",
            "keepalives_idle": NETWORK_TIMEOUT_S // 2,
            "keepalives_interval": NETWORK_TIMEOUT_S // 6,
            "keepalives_count": 3,
            "tcp_user_timeout": NETWORK_TIMEOUT_S * 1000,
        }
        query = self.url.query
        options = {"options": f"{query.get('options', '')} {settings_text}".strip()}
        return {name: value for name, value in defaults.items() if name not in query} | options

    def options(self, kind: Kind) -> dict[str, Any]:
        """Return the kind and its isolation: a reader sees one moment, a writer the data since its lock."""
        isolation = "REPEATABLE READ" if kind is Kind.READ else "READ COMMITTED"
        return {KIND: kind, OF_SCHEMA: self.schema, "isolation_level": isolation}

    def explain(self, error: DBAPIError, *, writes: bool) -> Explanation:
        """Explain an error by its SQLSTATE, which is missing if there is no connection."""
        # The server's message without its position in a statement or function; else the driver's.
        message = getattr(getattr(error.orig, "diag", None), "message_primary", None) or error.orig
        text = " ".join(str(message).split())
        if self.url.password:
            text = text.replace(str(self.url.password), "***")
        state = getattr(error.orig, "sqlstate", None) or ""
        if error.connection_invalidated:
            return Explanation(f"{_LOST} ({text})", True)
        if not state and isinstance(error, OperationalError):
            return Explanation(f"{_NO_CONNECTION} ({text})", True)
        sentence = _SENTENCES.get(state) or _SENTENCES.get(state[:2])
        is_ours = state[:2] not in _CALLERS_OWN
        return Explanation(f"{sentence} ({text})" if sentence else text, is_ours, state in _DAMAGE)


def _begin(connection: Connection, *, is_shared: bool) -> None:
    options = connection.get_execution_options()
    kind, schema = options[KIND], options[OF_SCHEMA]
    if is_shared:
        connection.exec_driver_sql("SELECT set_config('search_path', %s, true)", (f'"{schema}"',))
        if options[READ_ONLY]:
            connection.exec_driver_sql("SET TRANSACTION READ ONLY")
    if kind is Kind.READ:
        return
    # One writer at a time, as with SQLite: otherwise a writer could overwrite the changes of another one.
    connection.exec_driver_sql("SELECT pg_advisory_xact_lock(%s)", (_lock_number(schema),))
    if kind is Kind.MIGRATE:
        # A migration may rewrite all games, which takes long.
        connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
        find = "SELECT 1 FROM pg_namespace WHERE nspname = %s"
        if connection.exec_driver_sql(find, (schema,)).first() is None:
            connection.exec_driver_sql(f'CREATE SCHEMA "{schema}"')


def _lock_number(schema: str) -> int:
    """Return the number of the advisory lock that writers hold: 64 bits, signed."""
    return int.from_bytes(blake2b(f"kalarena {schema}".encode(), digest_size=8).digest(), "big", signed=True)


_LOST = "the connection was lost: if something was being written, see whether it was kept"

_NO_CONNECTION = "no connection: is the server running, and are address, user and password right?"

_CALLERS_OWN = ("", "22", "23")
"""Classes of errors in the data to store: errors of the driver itself, data, constraints."""

_DAMAGE = ("42703", "42P01", "XX001", "XX002")
"""SQLSTATEs of a missing column or table, and of damaged pages."""

_SENTENCES = {
    "25006": "nothing can be written here: the server, or what was opened, is read-only",
    "3F000": "the user may not use this schema: grant it USAGE",
    "40": "another process was in the way: try again",
    "42501": "the user may not do that here: give it the rights",
    "42P01": "a table is missing: this schema is damaged",
    "42703": "a column is missing: this schema is damaged",
    "53": "the server lacks something that it needs: try again later",
    "53100": "the server's disk is full: make room",
    "53300": "the server has no connection left: raise its max_connections, or try again later",
    "55P03": f"another process has been writing for {BUSY_TIMEOUT_MS // 1000} s: wait for it",
    "57014": f"it took longer than {STATEMENT_TIMEOUT_MS // 1000} s: is the server overloaded?",
    "58": "the server cannot use its disk",
    "XX": "the server failed: its log says more",
    **dict.fromkeys(("XX001", "XX002"), "the database is damaged"),
}
"""Meaning of a SQLSTATE, or of its class.  https://www.postgresql.org/docs/current/errcodes-appendix.html"""
