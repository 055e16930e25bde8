"""The store of games on both databases, and clear errors for a location that holds no store of ours."""

from threading import Thread

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, select

from referee.judge.record_rows import MoveRecord
from referee.judge.results import MatchResult, Reason
from tests.support.builders import RUN_LIMIT_S, lost_by, make_record
from tests.support.tampering import tampering
from tournaments.database.base import Connections, Kind, Location
from tournaments.results.chain_check import ChainCheck
from tournaments.results.game_summary import GameSummary
from tournaments.results.journal import Action, Entry
from tournaments.results.schema import REVISION, game, metadata, tournament
from tournaments.results.store import GAME_MODULE, MIGRATIONS, NothingKeptError, Store, StoreError

IDENTITY = {"game": "manchester", "time control": "2 s", "bots": {"one": "d1", "two": "d2"}}
CONFIG = {"game": "manchester", "bots": ["one", "two"]}
HOUR_US = 3_600_000_000
"""Microseconds of an hour are more than 32 bits hold."""


def test_migrations_make_the_tables_of_the_schema(place: Location) -> None:
    with Store(place):
        pass
    with Connections(place) as connections, connections.reading() as connection:
        options = {"compare_type": True, "compare_server_default": True}
        differences = compare_metadata(MigrationContext.configure(connection, opts=options), metadata)
    assert differences == []
    assert ScriptDirectory(str(MIGRATIONS.scripts)).get_current_head() == REVISION


@pytest.mark.parametrize("place", ["sqlite", "postgresql"], indirect=True)
def test_a_game_is_stored_once_and_read_back_complete(place: Location) -> None:
    record = make_record(
        result=lost_by(Reason.PROTOCOL, 1, "two sent '\\xff Größe'", "crlf"),
        moves=[MoveRecord(0, "1", HOUR_US, HOUR_US), MoveRecord(1, "1", HOUR_US, HOUR_US)],
    )
    with Store(place) as store:
        assert store.add(record, 7) is True
        assert store.add(make_record(result=MatchResult(1, Reason.SCORE, "another", (0, 2))), 1) is False
        assert store.games() == [GameSummary.of(record, 7)]
    with Store(place) as store:
        assert store.record(record.key) == record
        assert store.played() == {record.key}
        for key in ("r002-1v2", "r001-1v10", "r001-0v1"):
            store.add(make_record(key), 1)
        assert [each.key for each in store.games()] == ["r001-0v1", "r001-1v10", record.key, "r002-1v2"]
        assert [each.key for each in store.games(["r002-1v2", "none"])] == ["r002-1v2"]
        wanted = ["r002-1v2", record.key]
        assert store.records(wanted) == {"r002-1v2": make_record("r002-1v2"), record.key: record}
        with pytest.raises(StoreError, match="holds no game 'r009-1v2'"):
            store.records([record.key, "r009-1v2"])
        with pytest.raises(StoreError, match="holds no game 'r009-1v2'"):
            store.record("r009-1v2")


@pytest.mark.parametrize("place", ["sqlite", "postgresql"], indirect=True)
def test_any_text_of_a_bot_can_be_stored_with_its_game(place: Location) -> None:
    """PostgreSQL stores no NUL, and neither database a lone surrogate: the record keeps both."""
    text = "two lost: \0 and \ud800 and Größe"
    record = make_record(result=lost_by(Reason.EXIT, 1, text), stderr=(text, text))
    with Store(place) as store:
        assert store.add(record, 1)
        assert store.games()[0].detail == "two lost: \N{SYMBOL FOR NULL} and ? and Größe"
        assert store.record(record.key) == record
        chained = store.chained()
    assert chained is not None
    assert list(ChainCheck(chained).findings()) == []


def test_a_long_word_for_a_fault_is_cut_in_the_table(place: Location) -> None:
    """A game of somebody else's may have one, and its results are no reason to lose a tournament."""
    record = make_record(result=lost_by(Reason.ILLEGAL, 1, fault="a-capture-is-possible-in-another-corner"))
    with Store(place) as store:
        assert store.add(record, 1)
        assert store.games() == [GameSummary.of(record, 1)]
        assert store.games()[0].fault == "a-capture-is-possible-in-another"
        assert store.record(record.key) == record


def test_summaries_of_all_results(place: Location) -> None:
    results = [
        MatchResult(0, Reason.SCORE, "won", (50, 48)),
        MatchResult(1, Reason.SCORE, "won", (0, 98)),
        MatchResult(None, Reason.SCORE, "draw", (49, 49)),
        *(lost_by(reason, loser) for reason in Reason if reason is not Reason.SCORE for loser in (0, 1)),
    ]
    records = [make_record(f"r{number:03d}-1v2", result=result) for number, result in enumerate(results)]
    with Store(place) as store:
        for record in records:
            store.add(record, 1)
        assert store.games() == [GameSummary.of(record, 1) for record in records]


def test_a_damaged_record_is_an_error_of_its_own(place: Location) -> None:
    with Store(place) as store:
        store.add(make_record(), 1)
    with tampering(place) as connection:
        connection.execute(game.update().values(record=b"\0"))
    with Store(place) as store:
        assert len(store.games()) == 1
        with pytest.raises(StoreError, match="game r001-1v2"):
            store.record("r001-1v2")


# The tournament's identity


def test_games_without_a_tournament_are_those_of_practice(place: Location) -> None:
    with Store(place) as store:
        store.add(make_record("r001-1v2"), 1)
        with pytest.raises(
            NothingKeptError, match=r"holds the games of a practice ladder .* see them on the pages"
        ):
            store.config()


def test_a_tournament_is_claimed_and_resumed(place: Location) -> None:
    with Store(place) as store:
        with pytest.raises(StoreError, match="holds no tournament yet"):
            store.config()
        store.claim("cup", CONFIG, IDENTITY)
    with Store(place) as store:
        store.claim("cup 2", {**CONFIG, "rounds": 2}, IDENTITY)
        assert store.config() == {"name": "cup 2", **CONFIG, "rounds": 2}


@pytest.mark.parametrize(
    ("changes", "differences"),
    [
        ({"game": "bga"}, ["its game is manchester, now it is bga"]),
        ({"time control": "3 s"}, ["its time control is 2 s, now it is 3 s"]),
        ({"openings": "1 2 3; " * 500}, ["there is a change in its openings"]),
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
@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_another_tournament_is_refused_with_all_differences(
    place: Location, changes: dict[str, object], differences: list[str]
) -> None:
    with Store(place) as store:
        store.claim("cup", CONFIG, IDENTITY)
        store.add(make_record(), 1)
        with pytest.raises(StoreError) as raised:
            store.claim("new cup", {}, {**IDENTITY, **changes})
        message = str(raised.value)
        assert f"{place} holds another tournament ('cup')" in message
        assert all(difference in message for difference in differences), message
        assert message.count(";") == len(differences) - 1
        assert store.config() == {"name": "cup", **CONFIG}
        assert store.played() == {"r001-1v2"}


# Tables that are no store of ours


def test_a_store_of_a_newer_version_is_refused(place: Location) -> None:
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


def test_a_store_of_an_earlier_version_has_no_digest_of_the_games_module(place: Location) -> None:
    with Store(place) as store:
        store.claim("cup", CONFIG, IDENTITY)
        store.check_identity({GAME_MODULE: "one", **IDENTITY})
        with pytest.raises(StoreError, match="its game is"):
            store.check_identity({GAME_MODULE: "one", **IDENTITY, "game": "oware"})


def test_tables_of_another_program_are_refused(place: Location) -> None:
    with Connections(place) as connections, connections.writing("", Kind.MIGRATE) as connection:
        connection.exec_driver_sql("CREATE TABLE patients (name TEXT)")
    with pytest.raises(StoreError, match=f"this {place.noun} is no results store, but another program's"):
        Store(place)
    with Connections(place) as connections, connections.reading() as connection:
        assert inspect(connection).get_table_names() == ["patients"]


def test_a_read_only_store_stays_unchanged(place: Location) -> None:
    with Store(place) as store:
        store.add(make_record(), 1)
    with Store(place, read_only=True) as store:
        assert store.record("r001-1v2") == make_record()
        with pytest.raises(StoreError, match="game another could not be kept: ") as raised:
            store.add(make_record("another"), 1)
        assert "read" in str(raised.value)
        assert store.played() == {"r001-1v2"}


# Several at a time


def test_two_simultaneous_stores_lose_nothing(place: Location) -> None:
    """Two threads have a store each; they add games of their own and some in common, and rulings."""
    own, common = 8, 4
    added: list[bool] = []
    with Store(place) as one, Store(place) as two:

        def add(store: Store, name: str) -> None:
            for number in range(own + common):
                key = f"{name}{number}" if number < own else f"c{number}"
                added.append(store.add(make_record(key), 1))
                store.note(Entry(Action.VOID, key, "why", 1, "2026-01-02T03:04:05+00:00"))

        threads = [Thread(target=add, args=arguments) for arguments in ((one, "a"), (two, "b"))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(RUN_LIMIT_S)
        assert one.played() == two.played()
        assert len(one.played()) == sum(added) == 2 * own + common
        chained = one.chained()
        assert all(one.record(key).key == key for key in one.played())
    assert chained is not None
    assert len(chained.links) == 2 * own + common + 2 * (own + common)
    assert list(ChainCheck(chained).findings()) == []


def test_a_reader_does_not_wait_for_a_writer(place: Location) -> None:
    """`kalarena tournament table` works while a tournament runs."""
    with Store(place) as store:
        store.claim("cup", CONFIG, IDENTITY)
        store.add(make_record(), 1)
    with Connections(place) as connections, connections.writing() as connection:
        connection.execute(tournament.delete())
        for read_only in (False, True):
            with Store(place, read_only=read_only) as reader:
                assert reader.played() == {"r001-1v2"}
                assert reader.config()["name"] == "cup"
