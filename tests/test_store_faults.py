"""Whose fault it is that the store failed: this host's, or what was asked of it."""

import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import event

from tests.builders import invoke, make_record
from tests.reports import write_store
from tests.tampering import tampering
from tournaments.results.journal import Action, Entry
from tournaments.results.store import NothingKeptError, Store, StoreError

ENTRY = Entry(Action.VOID, "r001-1v2", "why", 0, "2026-01-02T03:04:05+00:00", {})


class _Failed(sqlite3.OperationalError):
    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.sqlite_errorcode = code


def failing(store: Store, text: str, code: int) -> None:
    """Let every insertion fail."""

    def fail(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if statement.startswith("INSERT"):
            raise _Failed(text, code)

    event.listen(store._connections._engine, "before_cursor_execute", fail)


FAILURES = {
    "full": (sqlite3.SQLITE_FULL, "database or disk is full", "the disk is full: make room"),
    "read only": (sqlite3.SQLITE_READONLY, "attempt to write a readonly database", "cannot be written here"),
    "read only, in detail": (sqlite3.SQLITE_READONLY | 1 << 8, "readonly", "cannot be written here"),
    "input and output": (sqlite3.SQLITE_IOERR | 3 << 8, "disk I/O error", "cannot be written: is the disk"),
    "locked": (sqlite3.SQLITE_BUSY, "database is locked", "another process has been writing for 10 s"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_host_that_fails(tmp_path: Path, name: str) -> None:
    """It is said what was not written: a ruling is no game."""
    code, text, words = FAILURES[name]
    with Store(tmp_path / "results.db") as store:
        failing(store, text, code)
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
        assert str(raised.value).startswith(f"{tmp_path / 'results.db'}: {begin}")
        assert words in str(raised.value)
    assert "game" not in str(ruling.value)


def test_what_was_asked_for_is_not_our_fault(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no database")
    for path in (tmp_path / "text", tmp_path / "none"):
        with pytest.raises(StoreError) as raised:
            Store(path, read_only=True)
        assert not raised.value.is_ours
        assert "written" not in str(raised.value)
    with Store(tmp_path / "results.db") as store:
        with pytest.raises(NothingKeptError) as raised:
            store.config()
        assert not raised.value.is_ours
        with pytest.raises(StoreError) as missing:
            store.record("k1")
        assert not missing.value.is_ours


def test_a_damaged_record_met_while_exporting(tmp_path: Path) -> None:
    """Exit status 1: nothing is wrong with what was asked for."""
    directory = write_store(tmp_path / "cup", ["ada", "bob"])
    with tampering(directory / "results.db") as connection:
        connection.exec_driver_sql("UPDATE game SET record = x'00' WHERE key = 'r001-2v1'")
    result = invoke("tournament", "export", directory, "--what", "moves")
    assert result.exit_code == 1
    assert "game r001-2v1" in result.stderr
    assert invoke("tournament", "export", tmp_path, "--what", "games").exit_code == 2
