"""Databases for tests that are not about one kind: SQLite files, or PostgreSQL where that is asked for.

``make test`` runs them with files.  ``make test-postgresql`` sets ``KALARENA_TEST_DATABASE=postgresql``: then
each data directory has a PostgreSQL database of its own, and tests that this does not change are left out.
"""

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest
from sqlalchemy import URL

from tests.courses import CHEAP
from tests.postgresql import PostgreSQLServer, shared_server
from tournaments.course.course import Course
from tournaments.database.location import Database
from tournaments.results.store import Store

SWITCH = "KALARENA_TEST_DATABASE"
OF_EACH_KIND = frozenset({"place", "database"})
"""Fixtures whose tests run with both kinds, whichever is asked for."""
COMPETITIONS = ("practice", "cup")
"""Those of most tests."""
IMPORT = re.compile(r"^\s*from tests(?:\.(\w+) import| import (\w+))", re.MULTILINE)

_made: dict[Path, Database] = {}
"""Data directory -> its database on the server."""


def on_postgresql() -> bool:
    """Whether it is asked for.  Raises pytest.UsageError if something else is."""
    kind = os.environ.get(SWITCH, "sqlite")
    if kind not in ("sqlite", "postgresql"):
        raise pytest.UsageError(f"{SWITCH} is sqlite, as without it, or postgresql, not {kind!r}")
    return kind == "postgresql"


def database_of(data: Path) -> Database:
    """The database of a data directory: the same one each time until the test is over."""
    if not on_postgresql():
        return Database(data)
    where = data.resolve()
    if where not in _made:
        server = shared_server()
        _made[where] = server.make_database(_template(server))
    return _made[where]


def server_file_of(data: Path) -> str:
    """The line of server.toml by which a server of this directory finds its database; none for files."""
    where = database_of(data).address
    return f"database = {json.dumps(address(where))}\n" if isinstance(where, URL) else ""


def address(url: URL) -> str:
    """As people write it, with its password."""
    return url.set(drivername="postgresql").render_as_string(hide_password=False)


@contextmanager
def dropped_at_the_end() -> Iterator[None]:
    """Drop those databases that are made in the block: each has 8 MB."""
    before = set(_made)
    try:
        yield
    finally:
        for where in _made.keys() - before:
            shared_server().drop_database(_made.pop(where))


def depends_on_kind(test: Path) -> bool:
    """Whether a file of tests imports this one, or one that does."""
    needed = {test.stem}
    new: set[str] | frozenset[str] = needed
    while new:
        new = frozenset[str]().union(*map(_imports, new)) - needed
        needed |= new
    return Path(__file__).stem in needed


@cache
def _imports(name: str) -> frozenset[str]:
    """What a module of this folder imports from here."""
    path = Path(__file__).with_name(f"{name}.py")
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    return frozenset(module or name for module, name in IMPORT.findall(text))


@cache
def _template(server: PostgreSQLServer) -> Database:
    """A database with tables: copying them is quicker than making them step by step."""
    template = server.make_database()
    Course(template.course(), CHEAP).close()
    for slug in COMPETITIONS:
        with Store(template.competition(slug)):
            pass
    return template
