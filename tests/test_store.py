"""The store: one transaction a game, and clear words for everything that is not a store of ours."""

import sqlite3
from pathlib import Path
from threading import Thread

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine

from referee.results import MatchResult, Reason
from tests.builders import lost_by, make_record
from tournaments import migrations
from tournaments.game_summary import GameSummary
from tournaments.schema import REVISION, metadata
from tournaments.store import Store, StoreError

IDENTITY = {"game": "manchester", "time control": "2 s", "bots": {"one": "d1", "two": "d2"}}
CONFIG = {"game": "manchester", "bots": ["one", "two"]}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "results.db"


def test_migrations_make_the_tables_of_the_schema(path: Path) -> None:
    with Store(path):
        pass
    engine = create_engine(f"sqlite:///{path}")
    with engine.connect() as connection:
        options = {"compare_type": True, "compare_server_default": True}
        differences = compare_metadata(MigrationContext.configure(connection, opts=options), metadata)
    engine.dispose()
    assert differences == []


def alembic_config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    return config


def test_the_revision_that_is_looked_for_is_the_newest() -> None:
    assert ScriptDirectory.from_config(alembic_config()).get_current_head() == REVISION


def test_a_game_comes_back_whole(path: Path) -> None:
    record = make_record(result=lost_by(Reason.PROTOCOL, 1, "two sent '\\xff Größe'", "crlf"))
    with Store(path) as store:
        assert store.add(record, 7) is True
        assert store.record(record.key) == record
        assert store.games() == [GameSummary.of(record, 7)]
    with Store(path) as store:  # what is there stays there
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
def test_summaries_of_all_results(path: Path, result: MatchResult) -> None:
    record = make_record(result=result)
    with Store(path) as store:
        store.add(record, 1)
        assert store.games() == [GameSummary.of(record, 1)]


def test_a_game_is_kept_once(path: Path) -> None:
    first = make_record(result=MatchResult(0, Reason.SCORE, "the first result", (2, 0)))
    again = make_record(result=MatchResult(1, Reason.SCORE, "another result", (0, 2)))
    with Store(path) as store:
        assert store.add(first, 1) is True
        assert store.add(again, 1) is False
        assert store.record(first.key) == first
        assert len(store.games()) == 1


def test_games_are_in_the_order_of_their_keys(path: Path) -> None:
    with Store(path) as store:
        for key in ("r002-1v2", "r001-2v1", "r001-1v2"):
            store.add(make_record(key), 1)
        assert [game.key for game in store.games()] == ["r001-1v2", "r001-2v1", "r002-1v2"]


def test_a_game_that_is_not_there(path: Path) -> None:
    with Store(path) as store, pytest.raises(StoreError, match="holds no game 'r009-1v2'"):
        store.record("r009-1v2")


def test_a_damaged_record_is_an_error_of_its_own(path: Path) -> None:
    with Store(path) as store:
        store.add(make_record(), 1)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE game SET record = x'00'")
    connection.close()
    with Store(path) as store:
        assert len(store.games()) == 1
        with pytest.raises(StoreError, match="game r001-1v2"):
            store.record("r001-1v2")


# Which tournament it is


def test_claim_and_resume(path: Path) -> None:
    with Store(path) as store:
        with pytest.raises(StoreError, match="holds no tournament yet"):
            store.config()
        store.claim("cup", CONFIG, IDENTITY)
    with Store(path) as store:
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
    path: Path, changes: dict[str, object], complaints: list[str]
) -> None:
    with Store(path) as store:
        store.claim("cup", CONFIG, IDENTITY)
        store.add(make_record(), 1)
        with pytest.raises(StoreError) as raised:
            store.claim("new cup", {}, {**IDENTITY, **changes})
        message = str(raised.value)
        assert f"{path} holds another tournament ('cup')" in message
        for complaint in complaints:
            assert complaint in message
        assert message.count(";") == len(complaints) - 1
        # and nothing was touched
        assert store.config() == {"name": "cup", **CONFIG}
        assert store.played() == {"r001-1v2"}


# Files that are no store of ours


def test_a_newer_store(path: Path) -> None:
    with Store(path) as store:
        store.add(make_record(), 1)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match=r"written by a newer version of kalarena .*9999.*upgrade kalarena"):
        Store(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "content", [b"this is a text\n" * 100, b"\x00" * 5000, b"SQLite format 3\x00" + b"\xff" * 5000]
)
def test_a_file_that_is_no_database(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(StoreError, match="this file is no results store"):
        Store(path)
    assert path.read_bytes() == content


def test_a_database_of_another_program(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE patients (name TEXT)")
    connection.close()
    with pytest.raises(StoreError, match="no results store"):
        Store(path)
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("patients",)]
    connection.close()


def test_a_store_that_was_damaged(path: Path) -> None:
    """Pages in the middle overwritten: an error of ours, whatever is read."""
    with Store(path) as store:
        store.claim("cup", CONFIG, IDENTITY)
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


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    for path in (tmp_path / "no" / "results.db", tmp_path):
        with pytest.raises(StoreError, match="cannot be written here"):
            Store(path)


@pytest.mark.parametrize("name", ["a b", "what?", "50%", "a#b", "a&b=c", "Größe", "x?mode=memory"])
def test_names_of_folders_are_taken_literally(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    with Store(folder / "results.db") as store:
        store.add(make_record(), 1)
    assert (folder / "results.db").is_file()
    assert [path.name for path in tmp_path.iterdir()] == [name]


# Several at a time


def test_two_stores_at_once_lose_nothing(path: Path) -> None:
    """Two threads with a store each, adding games of their own and some in common."""
    own, common = 15, 5
    added: list[bool] = []
    with Store(path) as one, Store(path) as two:

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


def test_a_reader_does_not_wait_for_a_writer(path: Path) -> None:
    """`kalarena tournament table` while a tournament runs."""
    with Store(path) as store:
        store.claim("cup", CONFIG, IDENTITY)
        store.add(make_record(), 1)
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("DELETE FROM game")
    try:
        with Store(path) as reader:
            assert reader.played() == {"r001-1v2"}
            assert reader.config()["name"] == "cup"
    finally:
        writer.execute("ROLLBACK")
        writer.close()
