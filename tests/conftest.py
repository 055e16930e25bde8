"""Settings of all tests, and what many of them need."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.postgresql import PostgreSQLServer, running_server
from tournaments.database.location import Database
from tournaments.database.place import Place
from tournaments.database.sqlite import SQLiteFile

# No test is a timed one: machines are slow at times, and a slow example is no failure.
settings.register_profile("kalarena", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("kalarena")


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgreSQLServer]:
    """A server for all tests of this process."""
    with running_server() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """Where there are no tables yet, in each of the databases."""
    if request.param == "sqlite":
        yield SQLiteFile(tmp_path / "results.db")
        return
    server: PostgreSQLServer = request.getfixturevalue("postgresql")
    with server.schema() as schema:
        yield schema


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A server's database without anything in it, of each kind."""
    if request.param == "sqlite":
        yield Database(tmp_path / "data")
        return
    server: PostgreSQLServer = request.getfixturevalue("postgresql")
    with server.database() as fresh:
        yield fresh
