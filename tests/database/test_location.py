"""Locations of a server's tables by its configuration, and addresses that are refused."""

import os
import sqlite3
import sys
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sqlalchemy.exc import DBAPIError

from tournaments.database.base import Connections, StoreError
from tournaments.database.location import POSTGRESQL, SQLITE, Database
from tournaments.database.postgresql import PostgreSQLSchema, parse_url
from tournaments.database.sqlite import SQLiteFile


def test_files_of_a_folder(tmp_path: Path) -> None:
    for location in (tmp_path / "data", str(tmp_path / "data")):
        database = Database.at(location)
        assert database.kind == SQLITE
        assert database.course() == SQLiteFile(tmp_path / "data/course.db")
        assert database.competition("cup-1") == SQLiteFile(tmp_path / "data/competitions/cup-1/results.db")
    assert (tmp_path / "data/competitions/cup-1").is_dir()


def modes(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir() if path.is_file()}


def test_only_the_owner_can_read_the_course(tmp_path: Path) -> None:
    """It has password hashes, and the data directory may be open to all."""
    files = dict.fromkeys(("course.db", "course.db-wal", "course.db-shm"), 0o600)
    before = os.umask(0o022)
    try:
        for _ in range(2):  # a new file, and one that others may read
            with Connections(Database.at(tmp_path).course()) as connections:
                with connections.writing() as connection:
                    connection.exec_driver_sql("CREATE TABLE IF NOT EXISTS a (b INTEGER)")
                assert modes(tmp_path) == files
            (tmp_path / "course.db").chmod(0o644)
        with Connections(SQLiteFile(tmp_path / "course.db")) as other, other.writing():
            assert set(modes(tmp_path).values()) == {0o644}
            with Connections(Database.at(tmp_path).course()) as connections, connections.reading():
                assert modes(tmp_path) == files
    finally:
        os.umask(before)


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"file/competitions/cup cannot be made: Not a directory") as raised:
        Database.at(tmp_path / "file").competition("cup")
    assert raised.value.is_ours


@pytest.mark.parametrize("scheme", ["postgresql", "postgres"])
def test_schemas_of_a_database(scheme: str) -> None:
    database = Database.at(f"{scheme}://somebody:s3cret@db.example:5433/kalarena?sslmode=require")
    assert database.kind == POSTGRESQL
    course, cup = database.course(), database.competition("cup-1")
    assert str(course) == "schema course of postgresql://somebody@db.example:5433/kalarena"
    assert str(cup) == "schema competition-cup-1 of postgresql://somebody@db.example:5433/kalarena"
    assert "s3cret" not in repr((database, course, cup))
    assert isinstance(cup, PostgreSQLSchema)
    assert cup.url.query == {"sslmode": "require"}


def test_invalid_names_of_competitions_and_schemas(tmp_path: Path) -> None:
    for slug in ("", "Cup", "../cup", "a/b", 'a"b', "a b", "x" * 41, "größe", "a\n"):
        for location in (tmp_path, "postgresql://localhost/kalarena"):
            with pytest.raises(ValueError, match="no competition's name"):
                Database.at(location).competition(slug)
    for schema in ("", "pg_course", 'x"; DROP SCHEMA public; --', "a b", "x" * 64, "1"):
        with pytest.raises(ValueError, match="no name of a schema"):
            PostgreSQLSchema(parse_url("postgresql://localhost/kalarena"), schema)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "address",
    [
        *("postgresql:", "postgresql:kalarena", "postgresql://", "postgresql:/localhost/kalarena"),
        *("postgresql://s3cret@localhost", "postgresql://me:s3cret@localhost/", "postgresql+asyncpg://h/d"),
        *("mysql://me:s3cret@localhost/kalarena", "sqlite:///s3cret.db", "://me:s3cret@h/d"),
        *("postgresql://me:s3cret@localhost:port/kalarena", "postgresql://me:s3cret@localhost:99999/k"),
        *("postgresql://me:p@s3cret@localhost/kalarena", "postgresql://me:p@s3cret:1@localhost/kalarena"),
    ],
)
def test_invalid_addresses(address: str) -> None:
    """The error shows the form of an address, and not the text, which may hold a password."""
    with pytest.raises(StoreError, match=r"the database's address .*: write postgresql://USER:") as raised:
        Database.at(address)
    assert "s3cret" not in str(raised.value)
    assert raised.value.__cause__ is None
    assert not raised.value.is_ours


def message(address: str) -> str:
    """Return the text that a user reads about this address."""
    try:
        place = Database.at(address).course()
    except StoreError as error:
        return str(error)
    return f"{place} {place!r}"


@given(st.text(":/?#&=%[]ab1 \\'\"", max_size=9), st.text(":/@?#&=%[]ab1 \\'\"", max_size=20))
def test_no_message_repeats_a_password(before: str, after: str) -> None:
    assume("@" in after or "/" not in before)  # else the password is the name of a database at host "me"
    assert "s3cret" not in message(f"postgresql://me:{before}s3cret{after}")


@given(st.text(":/@?ab1", max_size=9), st.text(":/?ab1", max_size=9))
def test_a_password_that_was_not_encoded_is_not_used_as_a_host(one: str, two: str) -> None:
    assert "s3cret" not in message(f"postgresql://me:{one}@{two}s3cret@localhost/kalarena")


@pytest.mark.parametrize(
    ("writes", "words"),
    [(False, "the file cannot be read: is the disk"), (True, "the file cannot be written")],
)
def test_a_failing_disk_is_named_by_what_it_did_not_do(tmp_path: Path, writes: bool, words: str) -> None:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR_READ
    found = SQLiteFile(tmp_path / "course.db").explain(DBAPIError("", {}, error), writes=writes)
    assert found.sentence.startswith(words)
    assert found.is_ours


def test_without_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    place = Database.at("postgresql://me:s3cret@localhost/kalarena").course()
    words = r"schema course .* needs the driver psycopg, .*: pip install 'kalarena\[postgresql\]'"
    with pytest.raises(StoreError, match=words) as raised:
        Connections(place)
    assert "s3cret" not in str(raised.value)
