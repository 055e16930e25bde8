"""Transactions, in both databases alike: what is read stays, what is kept is whole, one writer at a time."""

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

from tests.builders import RUN_LIMIT_S
from tests.places import to_argument
from tournaments.database import base, postgresql, sqlite
from tournaments.database.base import Connections, Kind, Location, StoreError

ROOT = Path(__file__).resolve().parent.parent

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


def test_threads_that_read_and_then_write_lose_nothing(connections: Connections) -> None:
    def work() -> None:
        for _ in range(25):
            increase(connections)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(RUN_LIMIT_S)
    assert value(connections) == 200


INCREASE = """
import sys
from tests.places import from_argument
from tests.test_database_connections import increase
from tournaments.database.base import Connections
with Connections(from_argument(sys.argv[1])) as connections:
    sys.stdin.read(1)
    for _ in range(50):
        increase(connections)
"""


def test_processes_that_read_and_then_write_lose_nothing(connections: Connections) -> None:
    command = [sys.executable, "-c", INCREASE, to_argument(connections.location)]
    processes = [subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE) for _ in range(4)]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write(b"!")  # all at once
        process.stdin.flush()
    for process in processes:
        process.communicate(timeout=RUN_LIMIT_S)
        assert process.returncode == 0
    assert value(connections) == 200


@contextmanager
def busy_timeout_of_200_ms(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patched:
        for module in (base, sqlite, postgresql):
            patched.setattr(module, "BUSY_TIMEOUT_MS", 200)
        yield


def test_a_writer_who_waits_in_vain(connections: Connections, monkeypatch: pytest.MonkeyPatch) -> None:
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


HOLD_THE_LOCK = """
import sys
from sqlalchemy import insert
from tests.places import from_argument
from tests.test_database_connections import counter
from tournaments.database.base import Connections
with Connections(from_argument(sys.argv[1])) as connections, connections.writing() as connection:
    connection.execute(insert(counter).values(name="half", value=1))
    print("written", flush=True)
    sys.stdin.read()
"""


def test_a_writer_who_is_killed_lets_go_and_leaves_nothing(connections: Connections) -> None:
    command = [sys.executable, "-c", HOLD_THE_LOCK, to_argument(connections.location)]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"written\n"
    process.kill()
    increase(connections)  # at once, or else it fails after the busy timeout
    process.communicate(timeout=RUN_LIMIT_S)
    assert value(connections) == 1  # "half" would be a second row


# All or nothing, and one moment


def test_nothing_is_kept_of_what_was_given_up(connections: Connections) -> None:
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


def test_a_reader_sees_one_moment(connections: Connections) -> None:
    with connections.reading() as connection:
        assert read(connection) == 0
        increase(connections)
        assert read(connection) == 0
    assert value(connections) == 1


def test_what_is_written_while_reading_is_not_kept(connections: Connections) -> None:
    with connections.reading() as connection:
        connection.execute(counter.update().values(value=7))
    assert value(connections) == 0


def test_who_only_reads_cannot_write(connections: Connections) -> None:
    with Connections(connections.location, read_only=True) as reader:
        assert value(reader) == 0
        with pytest.raises(StoreError):
            increase(reader)
    assert value(connections) == 0


def test_references_are_kept(connections: Connections) -> None:
    with pytest.raises(StoreError, match=r"(?i)foreign key") as raised, connections.writing() as connection:
        connection.execute(insert(note).values(counter="nothing"))
    assert not raised.value.is_ours
    with connections.writing() as connection:
        connection.execute(insert(note).values(counter="c"))
    with pytest.raises(StoreError, match=r"(?i)foreign key"), connections.writing() as connection:
        connection.execute(counter.delete())


def test_a_migration_makes_a_table_anew_that_others_refer_to(connections: Connections) -> None:
    """As Alembic does it with SQLite."""
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


# Errors as sentences


def test_what_goes_wrong_is_said_in_one_line(connections: Connections) -> None:
    with pytest.raises(StoreError) as raised, connections.writing("it was not kept: ") as connection:
        connection.execute(insert(counter).values(name="c", value=1))
    assert str(raised.value).startswith(f"{connections.location}: it was not kept: ")
    assert "\n" not in str(raised.value)
    assert not raised.value.is_ours


@pytest.mark.parametrize("error", [ValueError("no JSON"), TypeError("no text")])
def test_what_cannot_be_decoded_is_damaged(connections: Connections, error: Exception) -> None:
    words = f"{connections.location}: this {connections.location.noun} is damaged \\({error}\\)"
    with pytest.raises(StoreError, match=words) as raised, connections.reading():
        raise error
    assert raised.value.is_ours
