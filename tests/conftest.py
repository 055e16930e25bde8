"""Settings of all tests, and what many of them need."""

import gc
import os
import signal
import sys
from collections.abc import Generator, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import trio_parallel
from hypothesis import HealthCheck, settings

import tests.support.store_locations  # noqa: F401 - sets the limit for connections, here and in child processes
from referee import session
from referee.games.catalog import GAMES, parse_game
from referee.sandbox.host_resources import core_count
from tests.support.confinement import UNHURRIED
from tests.support.databases import (
    OF_EACH_KIND,
    copy_tables_into_new_files,
    depends_on_kind,
    dropped_at_the_end,
    empty_database,
    empty_location,
    on_postgresql,
)
from tests.support.failure_report import add_conversations
from tests.support.postgresql import PostgreSQLServer, shared_server
from tests.support.tiers import slow
from tests.support.warm_workers import fork_workers_from_a_warm_process, open_started_context
from tournaments.database.base import Location
from tournaments.database.location import Database
from tournaments.processes.process_settings import GC_THRESHOLDS

# With Python's own thresholds, collections take a fifth of the time, since each test is an object that stays.
gc.set_threshold(*GC_THRESHOLDS)
copy_tables_into_new_files()
fork_workers_from_a_warm_process()

# No test is a timed one: machines are slow at times, and a slow example is no failure.  Each run has other
# examples, so that not every run needs a hundred.
settings.register_profile(
    "kalarena", max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("kalarena")


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out what does not depend on the kind of database that is asked for."""
    if collection_path.suffix == ".py" and on_postgresql() and not depends_on_kind(collection_path):
        return True
    return None


@pytest.hookimpl(trylast=True)  # after the selection by markers
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what runs with each kind of database anyway, or with none; begin with long tests."""
    if on_postgresql():
        left_out = {item for item in items if not _runs_again(item)}
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]
    items[:] = _with_long_ones_first(items, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))


def _with_long_ones_first(items: list[pytest.Item], processes: int) -> list[pytest.Item]:
    """Return tests so that each process begins with its share of the long ones.

    The last test to begin runs alone beside idle processes.  At first, xdist gives each process as many tests
    as the others, in their order, and what one of them has begun no other one takes.  Modules stay whole
    because of their fixtures.
    """
    long_files = list(dict.fromkeys(item.path for item in items if item.get_closest_marker("long")))
    shares = {path: number % processes for number, path in enumerate(long_files)}
    others = [item for item in items if item.path not in shares]
    ordered: list[pytest.Item] = []
    for process in range(processes):
        ordered += [item for item in items if shares.get(item.path) == process]
        end = max(0, len(items) * (process + 1) // processes - len(ordered))
        ordered += others[:end]
        del others[:end]
    return ordered + others


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int | None:
    """Return the number of processes for `-n auto`: tests wait for child processes a sixth of their time."""
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None  # xdist reads it
    return core_count() + int(os.environ.get("KALARENA_EXTRA_WORKERS", "1"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the conversations of the games that a failed test played to its report."""
    report = yield
    if report.failed and call.excinfo is not None:
        add_conversations(report, call.excinfo)
    return report


def _runs_again(item: pytest.Item) -> bool:
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    return OF_EACH_KIND.isdisjoint(parameters) and item.get_closest_marker("any_database") is None


@pytest.fixture(autouse=True)
def databases_are_dropped() -> Iterator[None]:
    """Those of a test; one that a module's tests share stays until the end."""
    with dropped_at_the_end():
        yield


@pytest.fixture
def game_catalog() -> Iterator[None]:
    """Remove the games that a test registered from the catalog, and their modules, after the test."""
    before = dict(GAMES)
    yield
    GAMES.clear()
    GAMES.update(before)
    parse_game.cache_clear()
    for name in [name for name in sys.modules if name.startswith("kalarena_game ")]:
        del sys.modules[name]


@pytest.fixture
def restored_signals() -> Iterator[None]:
    """Restore the handlers of the signals that stop a program after the test."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def started_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start each worker anew, as commands and servers do."""
    monkeypatch.setattr(trio_parallel, "open_worker_context", open_started_context)


@pytest.fixture
def patient_referee(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait longer for the end of a process whose pipes are closed; not for a bot that closes them and stays.

    On a busy machine, bubblewrap or an adapter can end seconds after the output of its bot.  The bot's fault
    would be that it closed its output.
    """
    monkeypatch.setattr(session, "END_OF_OUTPUT_GRACE_S", 60.0)


@pytest.fixture
def unhurried_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allow more time after END than `kalarena check` does, for honest bots on a busy machine."""
    monkeypatch.setattr("tournaments.cli.check.Limits", partial(replace, UNHURRIED))


@pytest.fixture(scope="session")
def postgresql() -> PostgreSQLServer:
    """A server for all tests of this process."""
    return shared_server()


BOTH_KINDS = ["sqlite", *slow("postgresql")]
"""A PostgreSQL server takes seconds to start in each test process; a few quick tests name it themselves."""


@pytest.fixture(params=BOTH_KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Location]:
    """A location without tables, in each kind of database."""
    with empty_location(request.param, tmp_path) as location:
        yield location


@pytest.fixture(params=BOTH_KINDS)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A server's database without any data, of each kind."""
    with empty_database(request.param, tmp_path) as database:
        yield database
