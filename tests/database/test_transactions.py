"""Transactions in both databases: one writer at a time, all or nothing, and readers that see one moment."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy import Column, Connection, ForeignKey, Integer, MetaData, Table, Text, insert, select

from tests.support.builders import RUN_LIMIT_S
from tests.support.paths import REPOSITORY_ROOT
from tests.support.store_locations import to_argument
from tournaments.database import base, postgresql, sqlite
from tournaments.database.base import Connections, Kind, Location, StoreError

metadata = MetaData()
counter = Table(
    "counter", metadata, Column("name", Text, primary_key=True), Column("value", Integer, nullable=False)
)
note = Table(
    "note",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("counter", Text, ForeignKey("counter.name")),
)


@pytest.fixture
def connections(place: Location) -> Iterator[Connections]:
    """With a counter at 0."""
    with Connections(place) as opened:
        with opened.writing("", Kind.MIGRATE) as connection:
            metadata.create_all(connection)
            connection.execute(insert(counter).values(name="c", value=0))
        yield opened


def value(connections: Connections) -> int:
    with connections.reading() as connection:
        return read(connection)


def read(connection: Connection) -> int:
    found: int = connection.execute(select(counter.c.value)).scalar_one()
    return found


def increase(connections: Connections) -> None:
    with connections.writing() as connection:
        connection.execute(counter.update().values(value=read(connection) + 1))


# One writer at a time


def test_changes_by_threads_are_not_lost(connections: Connections) -> None:
    def work() -> None:
        for _ in range(10):
            increase(connections)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(RUN_LIMIT_S)
    assert value(connections) == 60


IN_ANOTHER_PROCESS = """
import sys
from sqlalchemy import insert
from tests.support.store_locations import from_argument
from tests.database.test_transactions import counter, increase
from tournaments.database.base import Connections
with Connections(from_argument(sys.argv[1])) as connections:
    if sys.argv[2] == "increase":
        sys.stdin.read(1)
        for _ in range(10):
            increase(connections)
    else:
        with connections.writing() as connection:
            connection.execute(insert(counter).values(name="half", value=1))
            print("written", flush=True)
            sys.stdin.read()
"""


def start(connections: Connections, what: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-c", IN_ANOTHER_PROCESS, to_argument(connections.location), what]
    return subprocess.Popen(command, cwd=REPOSITORY_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


@pytest.mark.slow
def test_changes_by_processes_are_not_lost(connections: Connections) -> None:
    processes = [start(connections, "increase") for _ in range(3)]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write(b"!")  # all at once
        process.stdin.flush()
    for process in processes:
        process.communicate(timeout=RUN_LIMIT_S)
        assert process.returncode == 0
    assert value(connections) == 30


@contextmanager
def busy_timeout_of_200_ms(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patched:
        for module in (base, sqlite, postgresql):
            patched.setattr(module, "BUSY_TIMEOUT_MS", 200)
        yield


def test_a_writer_waits_for_a_limited_time(connections: Connections, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        busy_timeout_of_200_ms(monkeypatch),
        Connections(connections.location) as impatient,
        connections.writing(),
    ):
        words = "nothing was done: another process has been writing for"
        with pytest.raises(StoreError, match=words) as raised, impatient.writing("nothing was done: "):
            pytest.fail("two writers")
        assert raised.value.is_ours
        assert value(impatient) == 0  # a reader does not wait
    increase(connections)


@pytest.mark.kill
def test_a_killed_writer_releases_its_lock_and_leaves_nothing(connections: Connections) -> None:
    process = start(connections, "hold the lock")
    assert process.stdout is not None
    assert process.stdout.readline() == b"written\n"
    process.kill()
    increase(connections)  # at once, or else it fails after the busy timeout
    process.communicate(timeout=RUN_LIMIT_S)
    assert value(connections) == 1  # "half" would be a second row


# All or nothing, and one moment


def test_a_failed_transaction_changes_nothing(connections: Connections) -> None:
    class ChangedMyMindError(Exception):
        pass

    def begin() -> None:
        with connections.writing() as connection:
            connection.execute(counter.update().values(value=7))
            raise ChangedMyMindError

    with pytest.raises(ChangedMyMindError):
        begin()
    assert value(connections) == 0
    increase(connections)
    assert value(connections) == 1


def test_a_reader_sees_one_moment_and_changes_nothing(connections: Connections) -> None:
    with connections.reading() as connection:
        assert read(connection) == 0
        increase(connections)
        assert read(connection) == 0
    assert value(connections) == 1
    with connections.reading() as connection:
        connection.execute(counter.update().values(value=7))
    with Connections(connections.location, read_only=True) as reader:
        assert value(reader) == 1
        with pytest.raises(StoreError):
            increase(reader)
    assert value(connections) == 1


def test_references_are_kept(connections: Connections) -> None:
    with pytest.raises(StoreError, match=r"(?i)foreign key") as raised, connections.writing() as connection:
        connection.execute(insert(note).values(counter="nothing"))
    assert not raised.value.is_ours
    with connections.writing() as connection:
        connection.execute(insert(note).values(counter="c"))
    with pytest.raises(StoreError, match=r"(?i)foreign key"), connections.writing() as connection:
        connection.execute(counter.delete())


def test_a_migration_can_replace_a_table_that_others_refer_to(connections: Connections) -> None:
    """Alembic replaces tables with SQLite."""
    with connections.writing() as connection:
        connection.execute(insert(note).values(counter="c"))
    with connections.writing("", Kind.MIGRATE) as connection:
        operations = Operations(MigrationContext.configure(connection))
        with operations.batch_alter_table("counter") as batch:
            batch.alter_column("value", existing_type=Integer(), nullable=True)
    with connections.writing() as connection:
        assert connection.execute(select(note.c.counter)).scalars().all() == ["c"]
        connection.exec_driver_sql("UPDATE counter SET value = NULL")
        assert connection.execute(select(counter.c.value)).scalar_one() is None
    test_references_are_kept(connections)


DURABILITY = """
import sys
from pathlib import Path
from tournaments.database.sqlite import SQLiteFile
with SQLiteFile(Path(sys.argv[1])).engine(read_only=False) as engine:
    connection = engine.raw_connection()
    for name in ("journal_mode", "synchronous"):
        print(*connection.cursor().execute(f"PRAGMA {name}").fetchone())
    connection.close()
"""


def test_commits_to_a_file_wait_for_the_disk(tmp_path: Path) -> None:
    """The processes of tests do not, see tests/support/store_locations.py."""
    arguments = [sys.executable, "-c", DURABILITY, str(tmp_path / "new.db")]
    run = subprocess.run(
        arguments, cwd=REPOSITORY_ROOT, capture_output=True, text=True, check=True, timeout=RUN_LIMIT_S
    )
    assert run.stdout.split() == ["wal", "2"]  # 2 is FULL, https://sqlite.org/pragma.html#pragma_synchronous


# Errors as sentences


def test_an_error_is_one_line(connections: Connections) -> None:
    with pytest.raises(StoreError) as raised, connections.writing("it was not kept: ") as connection:
        connection.execute(insert(counter).values(name="c", value=1))
    assert str(raised.value).startswith(f"{connections.location}: it was not kept: ")
    assert "\n" not in str(raised.value)
    assert not raised.value.is_ours


@pytest.mark.parametrize("error", [ValueError("no JSON"), TypeError("no text")])
def test_data_that_cannot_be_decoded_are_damaged(connections: Connections, error: Exception) -> None:
    words = f"{connections.location}: this {connections.location.noun} is damaged \\({error}\\)"
    with pytest.raises(StoreError, match=words) as raised, connections.reading():
        raise error
    assert raised.value.is_ours
    assert raised.value.is_damaged
