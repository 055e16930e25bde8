"""The store in an SQLite file: errors of the file and of the host, each as a sentence."""

import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import event

from tests.reporting.reports import write_store
from tests.support.builders import invoke, make_record
from tests.support.tampering import tampering
from tournaments.results.journal import Action, Entry
from tournaments.results.store import NothingKeptError, Store, StoreError

ENTRY = Entry(Action.VOID, "r001-1v2", "why", 0, "2026-01-02T03:04:05+00:00", {})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "results.db"


@pytest.mark.parametrize(
    "content", [b"this is a text\n" * 100, b"\x00" * 5000, b"SQLite format 3\x00" + b"\xff" * 5000]
)
def test_a_file_that_is_no_database_is_refused(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(StoreError, match="this file is no SQLite database"):
        Store(path)
    assert path.read_bytes() == content


def test_a_damaged_store_is_an_error(path: Path) -> None:
    """One page after the other is overwritten."""
    with Store(path) as store:
        store.claim("cup", {"game": "manchester", "bots": ["one", "two"]}, {})
        for number in range(40):
            store.add(make_record(f"r{number:03d}-1v2"), 1)
    whole = path.read_bytes()
    pages = len(whole) // 4096
    assert pages > 6
    messages = []
    for page in range(1, pages):
        damaged = bytearray(whole)
        damaged[page * 4096 : (page + 1) * 4096] = b"\x55" * 4096
        path.write_bytes(damaged)
        try:
            with Store(path) as store:
                store.config()
                store.played()
                store.games()
                store.record("r000-1v2")
        except StoreError as error:
            messages.append(str(error))
    assert messages
    assert all(str(path) in message and "\n" not in message for message in messages)


def test_a_location_that_cannot_be_written(tmp_path: Path) -> None:
    for path in (tmp_path / "no" / "results.db", tmp_path):
        with pytest.raises(StoreError, match="cannot be written here"):
            Store(path)


@pytest.mark.parametrize("name", ["a b", "what?", "50%", "a#b", "a&b=c", "Größe", "x?mode=memory"])
def test_any_name_of_a_folder_is_taken_literally(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    with Store(folder / "results.db") as store:
        store.add(make_record(), 1)
    assert (folder / "results.db").is_file()
    assert [path.name for path in tmp_path.iterdir()] == [name]


class _Failed(sqlite3.OperationalError):
    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.sqlite_errorcode = code


def let_insertions_fail(store: Store, text: str, code: int) -> None:
    def fail(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if statement.startswith("INSERT"):
            raise _Failed(text, code)

    event.listen(store._connections._engine, "before_cursor_execute", fail)


FAILURES = {
    "full": (sqlite3.SQLITE_FULL, "database or disk is full", "the disk is full: make room"),
    "read only": (sqlite3.SQLITE_READONLY, "attempt to write a readonly database", "cannot be written here"),
    "read only, in detail": (sqlite3.SQLITE_READONLY | 1 << 8, "readonly", "cannot be written here"),
    "input and output": (sqlite3.SQLITE_IOERR | 3 << 8, "disk I/O error", "cannot be written: is the disk"),
    "damaged": (sqlite3.SQLITE_CORRUPT, "database disk image is malformed", "this file is damaged"),
    "locked": (sqlite3.SQLITE_BUSY, "database is locked", "another process has been writing for 10 s"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_of_the_host_names_the_data_that_were_not_stored(path: Path, name: str) -> None:
    code, text, words = FAILURES[name]
    with Store(path) as store:
        let_insertions_fail(store, text, code)
        with pytest.raises(StoreError) as game:
            store.add(make_record("k1"), 1)
        with pytest.raises(StoreError) as ruling:
            store.note(ENTRY)
        with pytest.raises(StoreError) as claimed:
            store.claim("cup", {}, {})
    for raised, begin in (
        (game, "game k1 could not be kept: "),
        (ruling, "nothing was noted in the journal: "),
        (claimed, "the tournament could not be noted: "),
    ):
        assert raised.value.is_ours
        assert raised.value.is_damaged is (name == "damaged")
        assert str(raised.value).startswith(f"{path}: {begin}")
        assert words in str(raised.value)


def test_a_wrong_request_is_no_failure_of_the_host(path: Path) -> None:
    (path.parent / "text").write_text("no database")
    for file in (path.parent / "text", path.parent / "none"):
        with pytest.raises(StoreError) as raised:
            Store(file, read_only=True)
        assert not raised.value.is_ours
        assert "written" not in str(raised.value)
    with Store(path) as store:
        with pytest.raises(NothingKeptError) as raised:
            store.config()
        assert not raised.value.is_ours
        with pytest.raises(StoreError) as missing:
            store.record("k1")
        assert not missing.value.is_ours


def test_a_damaged_record_ends_an_export_with_status_1(tmp_path: Path) -> None:
    directory = write_store(tmp_path / "cup", ["ada", "bob"])
    with tampering(directory / "results.db") as connection:
        connection.exec_driver_sql("UPDATE game SET record = x'00' WHERE key = 'r001-2v1'")
    result = invoke("tournament", "export", directory, "--what", "moves")
    assert result.exit_code == 1
    assert "game r001-2v1" in result.stderr
    assert invoke("tournament", "export", tmp_path, "--what", "games").exit_code == 2
