"""Failures of a real PostgreSQL server: it stops, refuses, waits, or has no room; each is a sentence."""

import socket
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import URL

from tests.support.builders import make_record
from tests.support.postgresql import PostgreSQLServer
from tournaments.database import postgresql as module
from tournaments.database.base import Connections, StoreError
from tournaments.database.migrations import allow_changes
from tournaments.database.postgresql import PostgreSQLSchema
from tournaments.results.store import Store

pytestmark = pytest.mark.slow


@pytest.fixture
def schema(postgresql: PostgreSQLServer) -> Iterator[PostgreSQLSchema]:
    with postgresql.schema() as place:
        yield place


def reached_by(place: PostgreSQLSchema, **changes: Any) -> PostgreSQLSchema:
    """Return the same schema with another address."""
    return PostgreSQLSchema(place.url.set(**changes), place.schema)


# The server stops


def test_a_server_that_was_restarted_is_used_again(
    postgresql: PostgreSQLServer, schema: PostgreSQLSchema
) -> None:
    """Committed data are kept, and a transaction in which the server stops changes nothing."""
    with Store(schema) as store:
        assert store.add(make_record("before"), 1)
        postgresql.stop()
        try:
            for _ in range(2):
                words = "game while could not be kept: no connection: is the"
                with pytest.raises(StoreError, match=words) as raised:
                    store.add(make_record("while"), 1)
                assert raised.value.is_ours
                assert "\n" not in str(raised.value)
            with pytest.raises(StoreError, match="no connection"):
                Store(schema)
        finally:
            postgresql.start()
        assert store.add(make_record("after"), 1)
        with Connections(schema) as connections:

            def delete() -> None:
                with connections.writing() as connection:
                    allow_changes(connection, "game")
                    connection.exec_driver_sql("DELETE FROM game")
                    postgresql.stop()
                    postgresql.start()
                    connection.exec_driver_sql("DELETE FROM tournament")

            with pytest.raises(StoreError, match="the connection was lost: if something was") as raised:
                delete()
            assert raised.value.is_ours
        assert store.played() == {"before", "after"}


def test_idle_connections_that_were_ended_are_replaced(
    postgresql: PostgreSQLServer, schema: PostgreSQLSchema
) -> None:
    """A firewall ends them at night, or an administrator."""
    with Store(schema) as store, postgresql.connect() as administrator:
        for number in range(3):
            assert store.add(make_record(f"k{number}"), 1)
            ended = administrator.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s",
                (f"kalarena {schema.schema}",),
            ).fetchall()
            assert ended


# The server refuses the connection


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"password": "s3cret"}, r"no connection: .* user and password right.* authentication"),
        ({"database": "nowhere"}, '"nowhere" does not exist'),
    ],
)
def test_a_wrong_address(schema: PostgreSQLSchema, changes: dict[str, str], words: str) -> None:
    with pytest.raises(StoreError, match=words) as raised:
        Store(reached_by(schema, **changes))
    assert "s3cret" not in str(raised.value)
    assert raised.value.is_ours


@pytest.fixture
def student(postgresql: PostgreSQLServer, schema: PostgreSQLSchema) -> Iterator[PostgreSQLSchema]:
    """The schema for a user without any rights."""
    postgresql.run("CREATE ROLE student LOGIN PASSWORD 'p%40ss wörd'")
    try:
        yield reached_by(schema, username="student", password="p%40ss wörd")
    finally:
        postgresql.run("DROP OWNED BY student")
        postgresql.run("DROP ROLE student")


def test_a_user_without_rights(
    postgresql: PostgreSQLServer, schema: PostgreSQLSchema, student: PostgreSQLSchema
) -> None:
    words = r"it could not be brought up to date: the user may not do that .*denied for database"
    with pytest.raises(StoreError, match=words) as raised:
        Store(student)
    assert raised.value.is_ours
    with Store(schema) as store:
        store.add(make_record(), 1)
    with pytest.raises(StoreError, match="the user may not use this schema: grant it USAGE"):
        Store(student)
    postgresql.run(f'GRANT USAGE ON SCHEMA "{schema.schema}" TO student')
    postgresql.run(f'GRANT SELECT ON ALL TABLES IN SCHEMA "{schema.schema}" TO student')
    with Store(student) as store:
        assert store.played() == {"r001-1v2"}
        with pytest.raises(StoreError, match=r"game k could not be kept: the user may not .* table game"):
            store.add(make_record("k"), 1)


def test_a_schema_that_was_made_for_a_user_with_one_connection(
    postgresql: PostgreSQLServer, student: PostgreSQLSchema
) -> None:
    """A user who may make no schemas needs only this one."""
    postgresql.run("ALTER ROLE student CONNECTION LIMIT 1")
    postgresql.run(f'CREATE SCHEMA "{student.schema}" AUTHORIZATION student')
    with Store(student) as store:
        with pytest.raises(StoreError, match=r"no connection: .*too many connections") as raised:
            Store(student)
        assert raised.value.is_ours
        assert store.add(make_record(), 1)


def test_more_readers_than_there_are_connections(
    schema: PostgreSQLSchema, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "POOL_OVERFLOW", 0)
    monkeypatch.setattr(module, "POOL_TIMEOUT_S", 0.05)
    with Connections(schema) as connections, connections.reading(), connections.reading():
        words = "it was not read: too much is asked of the database at once"
        with pytest.raises(StoreError, match=words) as raised, connections.explained("it was not read: "):
            connections._engine.connect()
        assert raised.value.is_ours


def test_a_server_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CONNECT_TIMEOUT_S", 1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        url = URL.create("postgresql+psycopg", "me", "s3cret", "127.0.0.1", port, "kalarena")
        with pytest.raises(StoreError, match=r"no connection: .*timeout") as raised:
            Store(PostgreSQLSchema(url, "course"))
    assert raised.value.is_ours
    assert "s3cret" not in str(raised.value)


# Statements fail


def test_a_statement_that_takes_too_long(schema: PostgreSQLSchema, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STATEMENT_TIMEOUT_MS", 1000)  # the other statements are in time
    with Connections(schema) as connections:
        with (
            pytest.raises(StoreError, match="it took longer than") as raised,
            connections.reading() as reader,
        ):
            reader.exec_driver_sql("SELECT pg_sleep(60)")
        assert raised.value.is_ours
        with connections.reading() as reader:
            assert reader.exec_driver_sql("SELECT 1").scalar() == 1


def test_an_idle_transaction_is_ended(schema: PostgreSQLSchema, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another writer does not wait for it for ever."""
    monkeypatch.setattr(module, "IDLE_TIMEOUT_MS", 100)

    def idle() -> None:
        with Connections(schema) as idle_connections, idle_connections.writing() as connection:
            connection.exec_driver_sql("SELECT 1")
            with Connections(schema) as other, other.writing() as waited:
                waited.exec_driver_sql("SELECT 1")
            connection.exec_driver_sql("SELECT 1")

    with pytest.raises(StoreError, match="the connection was lost"):
        idle()


STATES = {
    "53100": "the server's disk is full: make room",
    "53200": "the server lacks something",
    "58030": "the server cannot use its disk",
    "40P01": "another process was in the way: try again",
    "XX000": "the server failed: its log says more",
    "XX001": "the database is damaged",
}


def test_errors_of_the_server_are_sentences(schema: PostgreSQLSchema) -> None:
    """A trigger raises each of them, and nothing is stored."""
    with Store(schema) as store, Connections(schema) as connections:
        with connections.writing() as connection:
            connection.exec_driver_sql(
                "CREATE FUNCTION trouble() RETURNS trigger LANGUAGE plpgsql AS "
                "$$ BEGIN RAISE 'something is wrong' USING ERRCODE = NEW.key; END $$"
            )
            connection.exec_driver_sql(
                "CREATE TRIGGER trouble AFTER INSERT ON game FOR EACH ROW EXECUTE FUNCTION trouble()"
            )
        for state, sentence in STATES.items():
            with pytest.raises(StoreError) as raised:
                store.add(make_record(state), 1)
            assert raised.value.is_ours
            assert raised.value.is_damaged is ("damaged" in sentence)
            assert str(raised.value).startswith(f"{schema}: game {state} could not be kept: {sentence}")
            assert str(raised.value).endswith("(something is wrong)")
        assert store.played() == set()
        with connections.writing() as connection:
            connection.exec_driver_sql("DROP TABLE game")
        with pytest.raises(StoreError, match="a table is missing: this schema is damaged") as raised:
            store.played()
        assert raised.value.is_ours
        assert raised.value.is_damaged


# Settings


def test_tables_in_other_schemas_are_not_used(postgresql: PostgreSQLServer, schema: PostgreSQLSchema) -> None:
    postgresql.run("CREATE TABLE public.game (key text)")
    try:
        with Store(schema) as store, postgresql.schema() as another, Store(another) as second:
            assert store.add(make_record("one"), 1)
            assert second.add(make_record("two"), 1)
            assert (store.played(), second.played()) == ({"one"}, {"two"})
        with postgresql.connect() as connection:
            assert connection.execute("SELECT * FROM public.game").fetchall() == []
    finally:
        postgresql.run("DROP TABLE public.game")


def test_our_settings_replace_those_of_the_role_and_extend_those_of_the_address(
    postgresql: PostgreSQLServer, schema: PostgreSQLSchema
) -> None:
    """A writer reads what others wrote while it waited, whatever isolation is the role's default."""
    query = {**schema.url.query, "application_name": "term 1", "options": "-c work_mem=1MB"}
    names = ("transaction_isolation", "application_name", "work_mem", "search_path", "statement_timeout")
    postgresql.run("ALTER ROLE kalarena SET default_transaction_isolation = 'repeatable read'")
    try:
        with Connections(reached_by(schema, query=query)) as connections, connections.writing() as connection:
            shown = [connection.exec_driver_sql(f"SHOW {name}").scalar() for name in names]
    finally:
        postgresql.run("ALTER ROLE kalarena RESET default_transaction_isolation")
    assert shown == ["read committed", "term 1", "1MB", f'"{schema.schema}"', "30s"]
