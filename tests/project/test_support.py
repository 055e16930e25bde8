"""Databases of the tests: one for each data directory, on a PostgreSQL server that ends with the tests."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest

from referee.process.subreaper import become_subreaper, kill_orphans
from tests.support import postgresql as module
from tests.support.builders import RUN_LIMIT_S
from tests.support.courses import NOW
from tests.support.databases import (
    COMPETITIONS,
    SWITCH,
    database_of,
    depends_on_kind,
    dropped_at_the_end,
    server_file_of,
)
from tests.support.paths import REPOSITORY_ROOT
from tests.support.postgresql import PostgreSQLServer, running_server
from tests.support.processes import living_with
from tournaments.course.course import Course
from tournaments.database.location import Database
from tournaments.results.store import Store
from tournaments.web.server_config import load_server_file

RUN_UNTIL_KILLED = """
import sys
from tests.support.postgresql import running_server
with running_server() as server:
    print(server.folder, flush=True)
    sys.stdin.read()
"""


def test_the_kind_of_database_is_selected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SWITCH, raising=False)
    assert database_of(tmp_path) == Database(tmp_path)
    assert server_file_of(tmp_path) == ""
    monkeypatch.setenv(SWITCH, "postgres")
    with pytest.raises(pytest.UsageError, match=r"KALARENA_TEST_DATABASE is sqlite, .* not 'postgres'"):
        database_of(tmp_path)


@pytest.mark.slow
def test_each_directory_has_its_own_database_until_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, postgresql: PostgreSQLServer
) -> None:
    monkeypatch.setenv(SWITCH, "postgresql")
    with dropped_at_the_end():
        one, other = database_of(tmp_path / "one"), database_of(tmp_path / "other")
        assert one != other
        assert database_of(tmp_path / "other" / ".." / "one") == one
        with Course(one.course()) as course:
            course.teams.add("Team 1", NOW)
        with Course(other.course()) as course:
            assert course.teams.all() == []
        for slug in COMPETITIONS:
            with Store(other.competition(slug), read_only=True) as store:  # the tables are there already
                assert store.games() == []
        (tmp_path / "server.toml").write_text(server_file_of(tmp_path / "one"))
        address = load_server_file(tmp_path / "server.toml").database
        assert address is not None
        assert Database.at(address) == one
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        psycopg.connect(address)


def test_tests_that_use_a_database_run_with_postgresql_too() -> None:
    for name, expected in {
        "project/test_support": True,
        "web/test_pages": True,  # through played_course
        "server/test_server_hostile": True,  # through served_course and server_process
        "games/test_kalah_rules": False,
        "results/test_store": False,  # runs with both kinds in any case
    }.items():
        assert depends_on_kind(REPOSITORY_ROOT / "tests" / f"{name}.py") is expected, name


@pytest.mark.kill
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_the_server_ends_with_the_tests(postgresql: PostgreSQLServer, end: signal.Signals) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", RUN_UNTIL_KILLED],
        cwd=REPOSITORY_ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    folder = Path(process.stdout.readline().strip())
    assert folder != postgresql.folder
    assert living_with(str(folder))
    os.killpg(process.pid, end)
    process.communicate(timeout=RUN_LIMIT_S)
    give_up = time.monotonic() + RUN_LIMIT_S
    while folder.exists() or living_with(str(folder)):
        assert time.monotonic() < give_up, living_with(str(folder))
        time.sleep(0.01)


@pytest.mark.slow
def test_the_server_is_not_ended_as_an_orphan_of_a_bot() -> None:
    """Tests play games in their own process, which ends all orphans that it adopts."""
    become_subreaper()
    with running_server() as server:
        kill_orphans()
        server.stop()
        server.start()
        kill_orphans()
        server.run("SELECT 1")
    assert not server.folder.exists()


def test_without_a_server_tests_are_skipped_or_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_programs", lambda: None)
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.delenv("KALARENA_REQUIRE_POSTGRESQL", raising=False)
    with pytest.raises(pytest.skip.Exception, match="PostgreSQL is not installed"), running_server():
        pass
    monkeypatch.setenv("KALARENA_REQUIRE_POSTGRESQL", "1")
    with pytest.raises(pytest.fail.Exception, match="PostgreSQL is not installed"), running_server():
        pass
