"""The journal of rulings: entries are read as they were written, in order, and never change."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import insert

from tests.support.builders import make_record
from tournaments.database.base import Connections, Location
from tournaments.results.journal import Action, Entry
from tournaments.results.schema import journal
from tournaments.results.store import Store, StoreError

AT = "2026-01-02T03:04:05+00:00"
ENTRIES = [
    Entry(Action.VOID, "r001-1v2", "the power went out", 1, AT),
    Entry(Action.REPLAY, "r001-2v1", "an appeal: 'Größe' was \ufffd misread", 1, AT),
    Entry(Action.WITHDRAW, "two", "it gave up", 2, AT, {"annul": True}),
    Entry(Action.WITHDRAW, "two", "it gave up", 2, AT, {"annul": False}),
    Entry(Action.ADD, "ten", "late", 3, AT, {"bot": "x", "base": "/", "digest": "d", "replaces": "two"}),
    Entry(Action.PAIR, "ten", "the sponsor asks", 3, AT, {"opponent": "one", "for_round": 4}),
]


@pytest.fixture
def where(place: Location) -> Location:
    """A store with a game and no entry yet."""
    with Store(place) as store:
        store.add(make_record(), 1)
    return place


def test_entries_are_read_complete_numbered_and_in_order(where: Location) -> None:
    with Store(where) as store:
        assert store.journal() == []
        for entry in ENTRIES[:2]:
            store.note(entry)
        store.note(*ENTRIES[2:])
        found = store.journal()
    assert [entry.number for entry in found] == [1, 2, 3, 4, 5, 6]
    for kept, written in zip(found, ENTRIES, strict=True):
        assert (kept.action, kept.subject, kept.why, kept.round, kept.at, kept.data) == (
            *(written.action, written.subject, written.why, written.round, written.at, written.data),
        )
    with Store(where, read_only=True) as store:
        assert store.journal() == found


def test_several_entries_are_kept_all_or_none(where: Location) -> None:
    broken = Entry(Action.VOID, "r001-1v2", None, 1, AT)  # type: ignore[arg-type]
    with Store(where) as store:
        with pytest.raises(StoreError):
            store.note(ENTRIES[0], broken)
        assert store.journal() == []


@pytest.mark.parametrize(("column", "value"), [("action", "burn"), ("data", "{"), ("data", "")])
def test_a_damaged_entry_is_an_error(where: Location, column: str, value: str) -> None:
    row = {"number": 1, "at": AT, "action": "void", "subject": "x", "why": "w", "round": 1, "data": "{}"}
    with Connections(where) as connections, connections.writing() as connection:
        connection.execute(insert(journal).values(row | {column: value}))
    with Store(where) as store, pytest.raises(StoreError, match="damaged"):
        store.journal()


def test_entries_as_text() -> None:
    assert [str(entry) for entry in ENTRIES] == [
        "void r001-1v2: the power went out",
        "replay r001-2v1: an appeal: 'Größe' was \ufffd misread",
        "withdraw two (its games count for nobody): it gave up",
        "withdraw two (its games still count): it gave up",
        "add ten (in the place of two): late",
        "pair ten (meets one in round 4): the sponsor asks",
    ]


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x00"))
"""PostgreSQL keeps no text with the character 0."""


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(why=TEXT.filter(bool), subject=TEXT)
def test_any_text_is_kept(place: Location, why: str, subject: str) -> None:
    with Store(place) as store:
        store.note(Entry(Action.VOID, subject, why, 1, AT, {"note": why}))
        last = store.journal()[-1]
    assert (last.subject, last.why, last.data) == (subject, why, {"note": why})


@pytest.mark.parametrize(
    ("place", "why", "words"),
    [
        ("sqlite", "half a \ud800", "half a character"),
        ("postgresql", "half a \ud800", "half a character"),
        ("postgresql", "nothing\x00", "NUL"),
    ],
    indirect=["place"],
)
def test_half_characters_and_nul_are_refused(where: Location, why: str, words: str) -> None:
    with Store(where) as store:
        with pytest.raises(StoreError, match=f"nothing was noted in the journal: .*{words}") as raised:
            store.note(ENTRIES[0], Entry(Action.VOID, "r001-1v2", why, 1, AT))
        assert not raised.value.is_ours
        assert store.journal() == []
