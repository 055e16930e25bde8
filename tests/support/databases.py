"""Databases for tests: of both kinds, or of the kind that an environment variable selects.

The fixtures ``place`` and ``database`` are of both kinds.  ``database_of`` returns SQLite files.
``make test-postgresql`` sets ``KALARENA_TEST_DATABASE=postgresql``: then each data directory has a PostgreSQL
database of its own, and tests that do not depend on the kind are left out.
"""

import json
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import URL

from tests.support.courses import FAST_PASSWORDS
from tests.support.paths import REPOSITORY_ROOT
from tests.support.postgresql import PostgreSQLServer, shared_server
from tournaments.course.course import Course
from tournaments.database.base import Connections, Kind, Location
from tournaments.database.location import Database
from tournaments.database.migrations import Migrations
from tournaments.database.sqlite import SQLiteFile
from tournaments.results.store import Store

SWITCH = "KALARENA_TEST_DATABASE"
OF_EACH_KIND = frozenset({"place", "database"})
"""Fixtures whose tests run with both kinds, whichever is selected."""
COMPETITIONS = ("practice", "cup")
"""Slugs in the databases of most tests."""
IMPORT = re.compile(r"^\s*from tests\.?([\w.]*) import (\([^)]*\)|.*)$", re.MULTILINE)
NAME = re.compile(r"\w+")

_made: dict[Path, Database] = {}
"""Data directory -> its database on the server."""
_apply = Migrations.apply


def copy_tables_into_new_files() -> None:
    """Let this process migrate one SQLite file of each kind, and make those of the tests like that one.

    A new file takes 7 ms of CPU time then, and 33 with migrations.
    """
    Migrations.apply = _copy_and_apply  # type: ignore[method-assign, assignment]


def _copy_and_apply(migrations: Migrations, connections: Connections) -> str:
    location = connections.location
    if isinstance(location, SQLiteFile) and not connections.read_only and not _has_content(location.path):
        with connections.writing("it could not be brought up to date: ", Kind.MIGRATE) as connection:
            # Another process or thread may have made the tables meanwhile.
            if not connection.exec_driver_sql("SELECT count(*) FROM sqlite_master").scalar():
                for statement in _statements(migrations):
                    connection.exec_driver_sql(statement)
    return _apply(migrations, connections)


@cache
def _statements(migrations: Migrations) -> list[str]:
    """Return the statements that make the newest tables in an SQLite file."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Connections(SQLiteFile(Path(folder, "new.db"))) as connections,
    ):
        _apply(migrations, connections)
        with connections.reading() as connection:
            driver: Any = connection.connection.driver_connection
            return list(driver.iterdump())[1:-1]  # without BEGIN and COMMIT


def _has_content(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0


def on_postgresql() -> bool:
    """Return whether PostgreSQL is selected.  Raises pytest.UsageError for an unknown kind."""
    kind = os.environ.get(SWITCH, "sqlite")
    if kind not in ("sqlite", "postgresql"):
        raise pytest.UsageError(f"{SWITCH} is sqlite, as without it, or postgresql, not {kind!r}")
    return kind == "postgresql"


def database_of(data: Path, template: Database | None = None) -> Database:
    """Return the database of a data directory: the same one each time until the test is over.

    On PostgreSQL it is a copy of a template; SQLite files are those of the directory.
    """
    if not on_postgresql():
        return Database(data)
    where = data.resolve()
    if where not in _made:
        server = shared_server()
        _made[where] = server.make_database(template or _template(server))
    return _made[where]


def lasting_database(data: Path) -> Database:
    """Return a new database that is not dropped after the test: a template of others."""
    if not on_postgresql():
        return Database(data)
    server = shared_server()
    return server.make_database(_template(server))


def server_file_of(data: Path) -> str:
    """Return the line of server.toml that names the database of a data directory; empty for files."""
    where = database_of(data).address
    return f"database = {json.dumps(address(where))}\n" if isinstance(where, URL) else ""


def address(url: URL) -> str:
    """Return a URL as people write it, with its password."""
    return url.set(drivername="postgresql").render_as_string(hide_password=False)


@contextmanager
def dropped_at_the_end() -> Iterator[None]:
    """Drop the databases that are made in the block: each has 8 MB."""
    before = set(_made)
    try:
        yield
    finally:
        for where in _made.keys() - before:
            shared_server().drop_database(_made.pop(where))


def depends_on_kind(test: Path) -> bool:
    """Return whether a test file imports this module, directly or through other modules of the tests."""
    needed = {test.resolve()}
    new: set[Path] | frozenset[Path] = needed
    while new:
        new = frozenset[Path]().union(*map(_imports, new)) - needed
        needed |= new
    return Path(__file__).resolve() in needed


@cache
def _imports(module: Path) -> frozenset[Path]:
    """Return the files of the tests that a file imports by name."""
    tests = REPOSITORY_ROOT / "tests"
    found = set()
    for package, names in IMPORT.findall(module.read_text(encoding="utf-8")):
        of_package = tests.joinpath(*package.split(".")) if package else tests
        candidates = [
            of_package.with_suffix(".py"),
            *(of_package / f"{name}.py" for name in NAME.findall(names)),
        ]
        found |= {path for path in candidates if path.is_file()}
    return frozenset(found)


@contextmanager
def empty_location(kind: str, folder: Path) -> Iterator[Location]:
    """Yield a location without tables: a file in a folder, or a schema on a PostgreSQL server."""
    if kind == "sqlite":
        yield SQLiteFile(folder / "course.db")
        return
    with shared_server().schema() as schema:
        yield schema


@contextmanager
def empty_database(kind: str, folder: Path) -> Iterator[Database]:
    """Yield a server's database without any data: files in a folder, or a PostgreSQL database."""
    if kind == "sqlite":
        yield Database(folder / "data")
        return
    with shared_server().database() as database:
        yield database


@cache
def _template(server: PostgreSQLServer) -> Database:
    """Return a database with tables: copying it is quicker than running the migrations."""
    template = server.make_database()
    Course(template.course(), FAST_PASSWORDS).close()
    for slug in COMPETITIONS:
        with Store(template.competition(slug)):
            pass
    return template
