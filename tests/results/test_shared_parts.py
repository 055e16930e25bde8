"""Shared parts of records: stored once, by any process, and part of the chain."""

from dataclasses import replace

import pytest
from sqlalchemy import select, text

from referee.judge.results import GameRecord
from tests.support.builders import make_player, make_record
from tests.support.random_games import random_game
from tests.support.store_locations import store_of_revision
from tests.support.tampering import tampering
from tournaments.database.base import Connections, Location
from tournaments.results import shared_parts
from tournaments.results.chain_check import ChainCheck
from tournaments.results.game_summary import PackedGame
from tournaments.results.packing import QUICK_GAME_US, is_split, is_whole
from tournaments.results.schema import game, shared_part
from tournaments.results.store import Store, StoreError

BOTS = ("one", "two", "three")


def played(number: int) -> GameRecord:
    """Return a game of two of the bots on one of two hosts."""
    players = (make_player(BOTS[number % 3]), make_player(BOTS[(number + 1) % 3]))
    record = random_game("kalah(3,2)", number % 5)
    return replace(
        record,
        key=f"r{number:03d}-1v2",
        players=players,
        host=f"host-{number % 2}",
        duration_us=QUICK_GAME_US,
    )


def stored(place: Location) -> tuple[list[bytes], list[bytes]]:
    """Return the column of records, and all shared parts."""
    with Connections(place) as connections, connections.reading() as connection:
        return (
            list(connection.execute(select(game.c.record).order_by(game.c.key)).scalars()),
            list(connection.execute(select(shared_part.c.content)).scalars()),
        )


def problems(store: Store) -> list[str]:
    chained = store.chained()
    assert chained is not None
    return [finding.text for finding in ChainCheck(chained).findings() if not finding.remark]


def altered(store: Store) -> set[str]:
    """Return the keys of the games that differ from their entry in the chain."""
    chained = store.chained()
    assert chained is not None
    links = ChainCheck(chained).games
    games = store.stored(sorted(links))
    return {key for key, link in links.items() if games[key].item.content != link.content}


def test_parts_are_stored_once_and_records_come_back(place: Location) -> None:
    records = [played(number) for number in range(12)]
    with Store(place) as one, Store(place) as other:  # as of two processes
        for number, record in enumerate(records):
            assert (one, other)[number % 2].add(record, 1)
        for store in (one, other):
            assert store.records([record.key for record in records]) == {
                record.key: record for record in records
            }
    packed, parts = stored(place)
    assert all(map(is_split, packed))
    assert len(parts) == len(set(parts)) == 1 + 2 + len(BOTS)
    with Store(place, read_only=True) as store:
        assert store.record(records[0].key) == records[0]
        assert problems(store) == []
        assert altered(store) == set()


def test_parts_of_a_failed_transaction_are_not_taken_for_stored(place: Location) -> None:
    record = played(0)
    with Store(place) as store:
        with pytest.raises(StoreError):
            store.add_all([PackedGame.of(record)] * 2)  # the same key twice
        assert stored(place) == ([], [])
        assert store.add(record, 1)
    with Store(place) as store:
        assert store.record(record.key) == record


def test_records_keep_their_parts_if_there_are_too_many(
    place: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_parts, "MOST_SHARED", 5)
    records = [played(number) for number in range(4)]
    with Store(place) as store:
        for record in records:
            store.add(record, 1)
        assert [store.record(record.key) for record in records] == records
        assert altered(store) == set()
    packed, parts = stored(place)
    assert len(parts) <= 5
    assert {is_split(packed[0]), is_whole(packed[3])} == {True}


@pytest.mark.parametrize("statement", ["UPDATE shared_part SET number = number", "DELETE FROM shared_part"])
def test_the_database_refuses_changes_of_parts(place: Location, statement: str) -> None:
    with Store(place) as store:
        store.add(played(0), 1)
    with (
        pytest.raises(StoreError, match="only added to"),
        Connections(place) as connections,
        connections.writing() as connection,
    ):
        connection.exec_driver_sql(statement)


def test_a_changed_part_is_found_in_all_its_games(place: Location) -> None:
    records = [played(0), played(1)]
    with Store(place) as store:
        for record in records:
            store.add(record, 1)
    with tampering(place) as connection:
        rows = connection.execute(select(shared_part)).all()
        of_host = next(row for row in rows if b"host-0" in row.content)
        changed = of_host.content.replace(b"host-0", b"host-9")
        connection.execute(
            shared_part.update().where(shared_part.c.number == of_host.number).values(content=changed)
        )
    with Store(place) as store:
        assert altered(store) == {records[0].key}
        with pytest.raises(StoreError, match=f"game {records[0].key}: its checksum differs"):
            store.record(records[0].key)
        assert store.record(records[1].key) == records[1]
    with tampering(place) as connection:
        connection.execute(shared_part.delete().where(shared_part.c.number == of_host.number))
    with Store(place) as store:
        assert altered(store) == {records[0].key}
        with pytest.raises(StoreError, match=records[0].key):
            store.record(records[0].key)


def test_the_chain_of_an_earlier_version_is_read_and_migrated(place: Location) -> None:
    """Its digests are texts there; nothing of what they say changes."""
    keys = ["r001-1v2", "r001-2v1"]
    with Store(place) as store:
        store.claim("cup", {}, {})
        for key in keys:
            store.add(make_record(key), 1)  # a record that is stored in the form of earlier versions
        head = store.head()
    with store_of_revision(place, "0006") as connection:
        digests = connection.execute(text("SELECT digest FROM chain ORDER BY number")).scalars().all()
        assert head is not None
        assert digests[-1] == head.digest
    for read_only in (True, False, True):
        with Store(place, read_only=read_only) as store:
            assert store.head() == head
            assert problems(store) == []
            assert altered(store) == set()
    with Store(place) as store:
        store.add(played(3), 1)
        assert problems(store) == []


def test_a_damaged_chain_of_an_earlier_version_is_migrated_and_found(place: Location) -> None:
    with Store(place) as store:
        store.claim("cup", {}, {})
        store.add(make_record(), 1)
    with store_of_revision(place, "0006") as connection:
        for trigger in ("no_update", "is_kept"):
            on = "" if place.noun == "file" else " ON chain"
            connection.execute(text(f"DROP TRIGGER IF EXISTS chain_{trigger}{on}"))
        connection.execute(text("UPDATE chain SET content = 'nothing' WHERE number = 2"))
    with Store(place) as store:
        assert any("entry 2" in problem for problem in problems(store))


def test_records_in_an_earlier_revision_are_columns_again(place: Location) -> None:
    record = played(0)
    with Store(place) as store:
        store.add(record, 1)
    with store_of_revision(place, "0006"):
        pass
    for read_only in (True, False):
        with Store(place, read_only=read_only) as store:
            assert store.record(record.key) == record
