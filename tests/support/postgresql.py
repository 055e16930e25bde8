"""A real PostgreSQL server for the tests, on a socket; it ends with them, and leaves no files.

Each process that runs tests starts a server when it first needs one.
"""

import atexit
import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from itertools import count
from pathlib import Path
from typing import NoReturn

import psycopg
import pytest
from sqlalchemy import URL

from tournaments.database.location import Database
from tournaments.database.postgresql import PostgreSQLSchema, parse_url

USER = "kalarena"
"""The server's administrator, who needs a password."""

SERVERS_ACCOUNT = "postgres"
"""Account of Debian's package, which runs the server where the tests run as root: PostgreSQL refuses that."""

START_LIMIT_S = 300
IN_MEMORY = Path("/dev/shm")
"""Files in memory: making and dropping a database, with its 300 files, takes a quarter of the time there."""
NEEDED_BYTES = 1 << 30
"""Free space for the server's files in memory.  It uses a fifth."""

SETTINGS = """
# The data need not survive a crash of the machine.
fsync = off
full_page_writes = off
autovacuum = off
shared_buffers = 16MB
max_connections = 60
max_wal_size = 64MB
min_wal_size = 32MB
listen_addresses = ''
log_min_messages = fatal
"""

# Reads commands until its input ends, which happens when the tests end in any way.  The server is its child.
WATCHED = """
programs=$1 folder=$2
trap '' HUP INT TERM
trap 'cd /; rm -rf "$folder"' EXIT
cd "$folder"
"$programs/initdb" --no-sync --no-locale --encoding=UTF8 --auth=scram-sha-256 --username="$3" \
  --pwfile=password --pgdata=data >initdb.log 2>&1 || { cat initdb.log; exit 1; }
rm password
echo "unix_socket_directories = '$folder' $4" >>data/postgresql.conf
start() {
  "$programs/postgres" -D "$folder/data" </dev/null >>server.log 2>&1 &
  server=$!
  until "$programs/pg_isready" --quiet --host="$folder"; do
    kill -0 "$server" 2>/dev/null || { cat server.log; exit 1; }
    sleep 0.02
  done
  echo started
}
stop() {
  kill -QUIT "$server" 2>/dev/null
  wait "$server"
}
start
while read -r order; do
  "$order"
  [ "$order" = start ] || echo done
done
stop
"""


class PostgreSQLServer:
    """A running server.  ``url`` leads to its first database."""

    def __init__(self, folder: Path, url: URL, watcher: "subprocess.Popen[str]") -> None:
        self.folder = folder
        self.url = url
        self._watcher = watcher
        self._numbers = count(1)

    @contextmanager
    def schema(self) -> Iterator[PostgreSQLSchema]:
        """Yield the name of a new schema, which is dropped at the end."""
        schema = PostgreSQLSchema(self.url, f"schema-{next(self._numbers)}")
        try:
            yield schema
        finally:
            self.run(f'DROP SCHEMA IF EXISTS "{schema.schema}" CASCADE')

    @contextmanager
    def database(self) -> Iterator[Database]:
        """Yield a new database, which is dropped at the end."""
        made = self.make_database()
        try:
            yield made
        finally:
            self.drop_database(made)

    def make_database(self, template: Database | None = None) -> Database:
        """Return a new database, or a copy of one without connections."""
        name = f"database_{next(self._numbers)}"
        copied = "" if template is None else f" TEMPLATE {_name(template)}"
        self.run(f"CREATE DATABASE {name}{copied}")
        return Database(self.url.set(database=name))

    def drop_database(self, database: Database) -> None:
        """Drop a database, and end its connections."""
        self.run(f"DROP DATABASE {_name(database)} WITH (FORCE)")

    def connect(self) -> "psycopg.Connection[tuple[object, ...]]":
        """Return a connection of the administrator; each statement is a transaction of its own."""
        return psycopg.connect(
            user=USER,
            password=self.url.password,
            host=str(self.folder),
            dbname=self.url.database,
            autocommit=True,
        )

    def run(self, statement: str) -> None:
        """Execute one statement."""
        with self.connect() as connection:
            connection.execute(statement.encode())

    def stop(self) -> None:
        """End the server and all connections at once, as a crash does."""
        self._send("stop")

    def start(self) -> None:
        """Start the server again."""
        self._send("start")

    def _send(self, order: str) -> None:
        assert self._watcher.stdin is not None
        assert self._watcher.stdout is not None
        self._watcher.stdin.write(f"{order}\n")
        self._watcher.stdin.flush()
        assert self._watcher.stdout.readline() in ("started\n", "done\n")


def _base() -> Path | None:
    """Return the folder for the server's files; None for that of temporary files."""
    if not os.access(IN_MEMORY, os.W_OK) or shutil.disk_usage(IN_MEMORY).free < NEEDED_BYTES:
        return None
    return IN_MEMORY


def _name(database: Database) -> str:
    assert isinstance(database.address, URL)
    return str(database.address.database)


@cache
def shared_server() -> PostgreSQLServer:
    """Return the server of this process, which is started at the first call."""
    running = ExitStack()
    atexit.register(running.close)
    return running.enter_context(running_server())


@contextmanager
def running_server() -> Iterator[PostgreSQLServer]:
    """Start a server.  Skips the test if there is no PostgreSQL; fails it where there must be one."""
    programs, prefix = _programs(), _as_servers_account()
    if programs is None or prefix is None:
        _without("PostgreSQL is not installed" if programs is None else "no account to run PostgreSQL as")
    folder = Path(tempfile.mkdtemp(prefix="kalarena-postgresql-", dir=_base()))
    password = secrets.token_urlsafe()
    (folder / "password").write_text(password)
    if prefix:
        for path in (folder, folder / "password"):
            shutil.chown(path, SERVERS_ACCOUNT)
    watcher = subprocess.Popen(
        [*prefix, "sh", "-c", WATCHED, "sh", str(programs), str(folder), USER, SETTINGS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        # An interrupt goes to the tests, which then end the server.  In a session of its own it would be
        # ended as an orphan of a bot (referee/process/subreaper.py).
        process_group=0,
    )
    assert watcher.stdout is not None
    try:
        said = watcher.stdout.readline()
        if said != "started\n":
            pytest.fail(f"PostgreSQL did not start: {said}{watcher.stdout.read()}")
        url = parse_url(f"postgresql://{USER}:{password}@/postgres?host={folder}")
        yield PostgreSQLServer(folder, url, watcher)
    finally:
        watcher.communicate(timeout=START_LIMIT_S)


def _programs() -> Path | None:
    """Return the folder of the newest version of Debian, or of the version on the path."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    on_path = shutil.which("initdb")
    if on_path is not None:
        found.append(Path(on_path).resolve())
    return found[-1].parent if found else None


def programs() -> Path:
    """Return the folder of the programs; the caller runs a server."""
    found = _programs()
    assert found is not None
    return found


def _as_servers_account() -> list[str] | None:
    """Return the prefix of a command that root may not run; None if there is none."""
    if os.geteuid() != 0:
        return []
    try:
        pwd.getpwnam(SERVERS_ACCOUNT)
    except KeyError:
        return None
    if shutil.which("setpriv") is None:
        return None
    account = (f"--reuid={SERVERS_ACCOUNT}", f"--regid={SERVERS_ACCOUNT}")
    return ["setpriv", *account, "--init-groups", "--"]


def _without(reason: str) -> NoReturn:
    if os.environ.get("CI") or os.environ.get("KALARENA_REQUIRE_POSTGRESQL") == "1":
        pytest.fail(reason)
    pytest.skip(reason)
