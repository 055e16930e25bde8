"""Settings of all tests, and what many of them need."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.databases import OF_EACH_KIND, depends_on_kind, dropped_at_the_end, on_postgresql
from tests.postgresql import PostgreSQLServer, shared_server
from tests.spreading import spread
from tournaments.database.base import Location
from tournaments.database.location import Database
from tournaments.database.sqlite import SQLiteFile

# No test is a timed one: machines are slow at times, and a slow example is no failure.
settings.register_profile("kalarena", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("kalarena")


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out what does not depend on the kind of database that is asked for."""
    if collection_path.suffix == ".py" and on_postgresql() and not depends_on_kind(collection_path):
        return True
    return None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what runs with each kind anyway, and what says that none makes a difference.

    If several processes run tests, they begin with what is slow.
    """
    if on_postgresql():
        left_out = {item for item in items if not _runs_again(item)}
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]
    if (told := getattr(config, "workerinput", None)) is not None:  # in a worker of xdist's
        items[:] = spread(items, told["workercount"])


def _runs_again(item: pytest.Item) -> bool:
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    return OF_EACH_KIND.isdisjoint(parameters) and item.get_closest_marker("any_database") is None


@pytest.fixture(autouse=True)
def databases_are_dropped() -> Iterator[None]:
    """Those of a test; one that a module's tests share stays until the end."""
    with dropped_at_the_end():
        yield


@pytest.fixture(scope="session")
def postgresql() -> PostgreSQLServer:
    """A server for all tests of this process."""
    return shared_server()


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Location]:
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
