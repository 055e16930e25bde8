"""The store: one transaction a game, and clear words for everything that is not a store of ours."""

from threading import Thread

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, select

from referee.judge.results import MatchResult, MoveRecord, Reason
from tests.builders import lost_by, make_record
from tests.tampering import tampering
from tournaments.database.base import Connections, Kind, Location
from tournaments.results.game_summary import GameSummary
from tournaments.results.schema import REVISION, game, metadata, tournament
from tournaments.results.store import MIGRATIONS, Store, StoreError

IDENTITY = {"game": "manchester", "time control": "2 s", "bots": {"one": "d1", "two": "d2"}}
CONFIG = {"game": "manchester", "bots": ["one", "two"]}


def test_migrations_make_the_tables_of_the_schema(place: Location) -> None:
    with Store(place):
        pass
    with Connections(place) as connections, connections.reading() as connection:
        options = {"compare_type": True, "compare_server_default": True}
        differences = compare_metadata(MigrationContext.configure(connection, opts=options), metadata)
    assert differences == []


def test_the_revision_that_is_looked_for_is_the_newest() -> None:
    assert ScriptDirectory(str(MIGRATIONS.scripts)).get_current_head() == REVISION


def test_a_game_comes_back_whole(place: Location) -> None:
    record = make_record(result=lost_by(Reason.PROTOCOL, 1, "two sent '\\xff Größe'", "crlf"))
    with Store(place) as store:
        assert store.add(record, 7) is True
        assert store.record(record.key) == record
        assert store.games() == [GameSummary.of(record, 7)]
    with Store(place) as store:  # what is there stays there
        assert store.record(record.key) == record
        assert store.played() == {record.key}


@pytest.mark.parametrize(
    "result",
    [
        MatchResult(0, Reason.SCORE, "won", (50, 48)),
        MatchResult(1, Reason.SCORE, "won", (0, 98)),
        MatchResult(None, Reason.SCORE, "draw", (49, 49)),
        *(lost_by(reason, loser) for reason in Reason if reason is not Reason.SCORE for loser in (0, 1)),
    ],
)
def test_summaries_of_all_results(place: Location, result: MatchResult) -> None:
    record = make_record(result=result)
    with Store(place) as store:
        store.add(record, 1)
        assert store.games() == [GameSummary.of(record, 1)]


def test_a_game_is_kept_once(place: Location) -> None:
    first = make_record(result=MatchResult(0, Reason.SCORE, "the first result", (2, 0)))
    again = make_record(result=MatchResult(1, Reason.SCORE, "another result", (0, 2)))
    with Store(place) as store:
        assert store.add(first, 1) is True
        assert store.add(again, 1) is False
        assert store.record(first.key) == first
        assert len(store.games()) == 1


def test_games_are_in_the_order_of_their_keys(place: Location) -> None:
    with Store(place) as store:
        for key in ("r002-1v2", "r001-2v1", "r001-1v2"):
            store.add(make_record(key), 1)
        assert [each.key for each in store.games()] == ["r001-1v2", "r001-2v1", "r002-1v2"]


def test_a_game_that_is_not_there(place: Location) -> None:
    with Store(place) as store, pytest.raises(StoreError, match="holds no game 'r009-1v2'"):
        store.record("r009-1v2")


def test_a_damaged_record_is_an_error_of_its_own(place: Location) -> None:
    with Store(place) as store:
        store.add(make_record(), 1)
    with tampering(place) as connection:
        connection.execute(game.update().values(record=b"\0"))
    with Store(place) as store:
        assert len(store.games()) == 1
        with pytest.raises(StoreError, match="game r001-1v2"):
            store.record("r001-1v2")


# Which tournament it is


def test_claim_and_resume(place: Location) -> None:
    with Store(place) as store:
        with pytest.raises(StoreError, match="holds no tournament yet"):
            store.config()
        store.claim("cup", CONFIG, IDENTITY)
    with Store(place) as store:
        store.claim("cup 2", {**CONFIG, "rounds": 2}, IDENTITY)
        assert store.config() == {"name": "cup 2", **CONFIG, "rounds": 2}


@pytest.mark.parametrize(
    ("changes", "complaints"),
    [
        ({"game": "bga"}, ["its game is manchester, now it is bga"]),
        ({"time control": "3 s"}, ["its time control is 2 s, now it is 3 s"]),
        ({"bots": {"one": "d1", "two": "new"}}, ["the files of bot 'two' have changed since"]),
        ({"bots": {"one": "d1"}}, ["it has a bot 'two', which is not here"]),
        ({"bots": {"one": "d1", "two": "d2", "three": "d3"}}, ["it has no bot 'three'"]),
        # The keys of games count the bots: in another order they would be other games.
        ({"bots": {"two": "d2", "one": "d1"}}, ["its bots are the same but in another order"]),
        (
            {"game": "bga", "time control": "3 s", "bots": {"one": "x", "four": "d4"}},
            [
                *("its game is manchester, now it is bga", "its time control is 2 s, now it is 3 s"),
                *("it has no bot 'four'", "it has a bot 'two', which is not here"),
                "the files of bot 'one' have changed since",
            ],
        ),
    ],
)
def test_another_tournament_is_told_apart(
    place: Location, changes: dict[str, object], complaints: list[str]
) -> None:
    with Store(place) as store:
        store.claim("cup", CONFIG, IDENTITY)
        store.add(make_record(), 1)
        with pytest.raises(StoreError) as raised:
            store.claim("new cup", {}, {**IDENTITY, **changes})
        message = str(raised.value)
        assert f"{place} holds another tournament ('cup')" in message
        for complaint in complaints:
            assert complaint in message
        assert message.count(";") == len(complaints) - 1
        # and nothing was touched
        assert store.config() == {"name": "cup", **CONFIG}
        assert store.played() == {"r001-1v2"}


# What is no store of ours


def test_a_newer_store(place: Location) -> None:
    with Store(place) as store:
        store.add(make_record(), 1)
    with Connections(place) as connections, connections.writing() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    for read_only in (False, True):
        with pytest.raises(StoreError, match=r"by a newer version of kalarena .*9999.*upgrade kalarena"):
            Store(place, read_only=read_only)
    with Connections(place) as connections, connections.reading() as connection:
        assert connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar() == "9999"
        assert connection.execute(select(game.c.key)).scalars().all() == ["r001-1v2"]


def test_tables_of_another_program(place: Location) -> None:
    with Connections(place) as connections, connections.writing("", Kind.MIGRATE) as connection:
        connection.exec_driver_sql("CREATE TABLE patients (name TEXT)")
    with pytest.raises(StoreError, match=f"this {place.noun} is no results store, but another program's"):
        Store(place)
    with Connections(place) as connections, connections.reading() as connection:
        assert inspect(connection).get_table_names() == ["patients"]


def test_a_store_that_is_only_read_must_be_there_and_stays_as_it_is(place: Location) -> None:
    with Store(place) as store:
        store.add(make_record(), 1)
    with Store(place, read_only=True) as store:
        assert store.record("r001-1v2") == make_record()
        with pytest.raises(StoreError, match="game another could not be kept: ") as raised:
            store.add(make_record("another"), 1)
        assert "read" in str(raised.value)
        assert store.played() == {"r001-1v2"}


# Several at a time


def test_two_stores_at_once_lose_nothing(place: Location) -> None:
    """Two threads with a store each, adding games of their own and some in common."""
    own, common = 15, 5
    added: list[bool] = []
    with Store(place) as one, Store(place) as two:

        def add(store: Store, name: str) -> None:
            keys = [f"{name}{number}" for number in range(own)] + [f"c{number}" for number in range(common)]
            added.extend([store.add(make_record(key), 1) for key in keys])

        threads = [Thread(target=add, args=arguments) for arguments in ((one, "a"), (two, "b"))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert one.played() == two.played()
        assert len(one.played()) == 2 * own + common
        assert sum(added) == 2 * own + common
        assert len(added) == 2 * (own + common)
        assert all(one.record(key).key == key for key in one.played())


def test_a_reader_does_not_wait_for_a_writer(place: Location) -> None:
    """`kalarena tournament table` while a tournament runs."""
    with Store(place) as store:
        store.claim("cup", CONFIG, IDENTITY)
        store.add(make_record(), 1)
    with Connections(place) as connections, connections.writing() as connection:
        connection.execute(tournament.delete())
        for read_only in (False, True):
            with Store(place, read_only=read_only) as reader:
                assert reader.played() == {"r001-1v2"}
                assert reader.config()["name"] == "cup"


def test_times_of_long_games_are_kept(place: Location) -> None:
    """Microseconds of an hour are more than 32 bits hold."""
    hour_us = 3_600_000_000
    record = make_record(moves=[MoveRecord(0, "1", hour_us, hour_us), MoveRecord(1, "1", hour_us, hour_us)])
    with Store(place) as store:
        store.add(record, 1)
        assert store.games()[0].wall_us == (hour_us, hour_us)
