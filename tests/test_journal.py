"""The journal: kept as it was written, in order, and only ever added to."""

import json
import sqlite3
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import make_record
from tournaments.journal import Action, Entry
from tournaments.store import Store, StoreError

AT = "2026-01-02T03:04:05+00:00"
ENTRIES = [
    Entry(Action.VOID, "r001-1v2", "the power went out", 1, AT),
    Entry(Action.REPLAY, "r001-2v1", "an appeal: 'Größe' was \ufffd misread", 1, AT),
    Entry(Action.WITHDRAW, "two", "it gave up", 2, AT, {"annul": True}),
    Entry(Action.WITHDRAW, "two", "it gave up", 2, AT, {"annul": False}),
    Entry(Action.ADD, "ten", "late", 3, AT, {"bot": "x", "base": "/", "digest": "d", "replaces": "two"}),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "results.db"
    with Store(path) as store:
        store.add(make_record(), 1)
    return path


def test_entries_come_back_whole_in_order_and_numbered(path: Path) -> None:
    with Store(path) as store:
        assert store.journal() == []
        for entry in ENTRIES[:2]:
            store.note(entry)
        store.note(*ENTRIES[2:])
        found = store.journal()
    assert [entry.number for entry in found] == [1, 2, 3, 4, 5]
    for kept, written in zip(found, ENTRIES, strict=True):
        assert (kept.action, kept.subject, kept.why, kept.round, kept.at, kept.data) == (
            *(written.action, written.subject, written.why, written.round, written.at, written.data),
        )
    with Store(path, read_only=True) as store:
        assert store.journal() == found


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE journal SET why = 'never mind' WHERE number = 1",
        "UPDATE journal SET number = number + 10",
        "DELETE FROM journal WHERE number = 2",
        "DELETE FROM journal",
        "REPLACE INTO journal (number, at, action, subject, why, round, data) "
        "VALUES (1, '', 'void', 'x', 'y', 1, '{}')",
        "INSERT INTO journal (number, at, action, subject, why, round, data) "
        "VALUES (1, '', 'void', 'x', 'y', 1, '{}') ON CONFLICT DO UPDATE SET why = 'z'",
    ],
)
def test_nothing_that_was_ruled_can_be_changed(path: Path, statement: str) -> None:
    with Store(path) as store:
        store.note(*ENTRIES)
        before = store.journal()
    connection = sqlite3.connect(path)
    with pytest.raises(sqlite3.IntegrityError, match="the journal is only ever added to"):
        connection.execute(statement)
    connection.close()
    with Store(path) as store:
        assert store.journal() == before
        store.note(ENTRIES[0])  # and it can still be added to
        assert len(store.journal()) == len(before) + 1


def test_several_entries_are_kept_all_or_none(path: Path) -> None:
    broken = Entry(Action.VOID, "r001-1v2", None, 1, AT)  # type: ignore[arg-type]
    with Store(path) as store:
        with pytest.raises(StoreError):
            store.note(ENTRIES[0], broken)
        assert store.journal() == []


@pytest.mark.parametrize(("column", "value"), [("action", "burn"), ("data", "{"), ("data", "")])
def test_an_entry_that_is_none_is_a_damaged_file(path: Path, column: str, value: str) -> None:
    values: dict[str, object] = {
        "at": AT,
        "action": "void",
        "subject": "r001-1v2",
        "why": "w",
        "round": 1,
        "data": "{}",
    }
    values[column] = value
    names, places = ", ".join(values), ", ".join("?" * len(values))
    with sqlite3.connect(path) as connection:
        connection.execute(f"INSERT INTO journal ({names}) VALUES ({places})", list(values.values()))
    connection.close()
    with Store(path) as store, pytest.raises(StoreError, match="damaged"):
        store.journal()


@pytest.mark.parametrize(
    ("entry", "text"),
    list(
        zip(
            ENTRIES,
            [
                "void r001-1v2: the power went out",
                "replay r001-2v1: an appeal: 'Größe' was \ufffd misread",
                "withdraw two (its games count for nobody): it gave up",
                "withdraw two (its games still count): it gave up",
                "add ten (in the place of two): late",
            ],
            strict=True,
        )
    ),
)
def test_an_entry_as_people_read_it(entry: Entry, text: str) -> None:
    assert str(entry) == text


@given(why=st.text(st.characters(codec="utf-8"), min_size=1), subject=st.text(st.characters(codec="utf-8")))
def test_any_text_is_kept(tmp_path_factory: pytest.TempPathFactory, why: str, subject: str) -> None:
    path = tmp_path_factory.getbasetemp() / "any.db"
    with Store(path) as store:
        store.note(Entry(Action.VOID, subject, why, 1, AT, {"note": why}))
        last = store.journal()[-1]
    assert (last.subject, last.why, last.data) == (subject, why, {"note": why})
    assert json.loads(json.dumps(last.data)) == last.data
