"""Stores of earlier versions: they are migrated, verified, and their tournaments are resumed."""

import json
import re
import shutil
import zlib
from pathlib import Path
from typing import Any

import msgpack
import pytest
from sqlalchemy import Connection, inspect, text

from referee.judge.record_rows import MoveRecord
from referee.judge.results import GameRecord, Reason
from tests.support.builders import invoke, lost_by, make_record, one_object, write_tournament
from tests.support.random_games import random_game
from tests.support.store_locations import store_of_revision
from tournaments.database.base import Connections, Location
from tournaments.database.sqlite import SQLiteFile
from tournaments.results.chain_check import ChainCheck
from tournaments.results.game_summary import GameSummary, PackedGame
from tournaments.results.journal import Action, Entry
from tournaments.results.schema import game
from tournaments.results.store import Store, StoreError

AT = "2026-01-02T03:04:05+00:00"
KEY, OTHER = "r001-1v2", "r001-2v1"
CUP = 'name = "Cup"\ngame = "kalah(3,2)"\nbots = ["first_legal", "greedy", "random:1"]\n'
GAMES = 6


def as_schema_1(record: GameRecord) -> bytes:
    """Return the record as the first version wrote it: moves without charges, facts as text, no limits."""
    data = msgpack.unpackb(record.to_msgpack(), unicode_errors="surrogatepass")
    later = "limits sandbox clock cpu_us off_turn_cpu_us host_speed runtime_settings"
    for added in later.split():
        del data[added]
    for added in ("clock", "ponder"):
        del data["control"][added]
    data["players"] = [player[:6] for player in data["players"]]
    data["moves"] = data["moves"][:3]
    data["facts"] = [*data["facts"][:3], ["x" for _ in record.facts]]
    packed: bytes = msgpack.packb({**data, "schema": 1}, unicode_errors="surrogatepass")
    return packed


def insert_game(connection: Connection, record: GameRecord, packed: bytes, **more: object) -> None:
    """Insert a row with the columns of the first version, and ``more``."""
    summary = GameSummary.of(record, 1)
    score = summary.score or (None, None)
    values = {
        "key": record.key,
        "round": 1,
        "first": summary.first,
        "second": summary.second,
        "winner": summary.winner,
        "reason": summary.reason.value,
        "fault": summary.fault,
        "detail": summary.detail,
        **dict(zip(("first_score", "second_score"), score, strict=True)),
        **dict(zip(("first_moves", "second_moves"), summary.moves, strict=True)),
        **dict(zip(("first_wall_us", "second_wall_us"), summary.wall_us, strict=True)),
        "record": zlib.compress(packed),
        **more,
    }
    names, parameters = ", ".join(values), ", ".join(f":{name}" for name in values)
    connection.execute(text(f"INSERT INTO game ({names}) VALUES ({parameters})"), values)


def test_a_store_of_the_first_version_is_migrated(place: Location) -> None:
    written = make_record()
    with store_of_revision(place, "0001") as connection:
        insert_game(connection, written, as_schema_1(written))
    with pytest.raises(StoreError, match="older version"), Store(place, read_only=True):
        pass
    with Store(place) as store:
        (found,) = store.games()
        record = store.record(written.key)
    assert found.wall_us == found.charged_us == (1500, 2500)
    assert record.moves == [MoveRecord(0, "1", 1500, 1500), MoveRecord(1, "1", 2500, 2500)]
    assert record.wire == written.wire
    assert [fact.text for fact in record.facts] == ["x", "x"]
    assert record.control.clock == "wall"
    assert record.result == written.result
    assert found == GameSummary.of(record, 1, "r001-1+2")._replace(sandbox="off")


PAIRS = {
    "r001-1v2": "r001-1+2",
    "r001-2v1": "r001-1+2",
    "r012-03v11": "r012-03+11",
    "r012-11v03": "r012-03+11",
    "a game of its own": "",
}
"""Key -> common name of the game and its return game."""


def test_columns_that_were_added_are_filled_from_the_records(place: Location) -> None:
    swap = [MoveRecord(0, "1", 10, 10), MoveRecord(1, "SWAP", 20, 20), MoveRecord(0, "2", 30, 30)]
    others: list[dict[str, Any]] = [
        {},
        {"moves": []},
        {"moves": swap, "opening": "1 2"},
        {"moves": [MoveRecord(0, "SWAP", 1, 1)], "game": "kalah(6,4)"},
        {"stderr": ("\udcff", ""), "opening": "3"},
    ]
    records = [
        make_record(key, result=lost_by(Reason.TIMEOUT, 0), **more)
        for key, more in zip(PAIRS, others, strict=True)
    ]
    with store_of_revision(place, "0002") as connection:
        for record in records:
            first, second = GameSummary.of(record, 1).charged_us
            more = {"first_charged_us": first, "second_charged_us": second, "sandbox": record.sandbox}
            insert_game(connection, record, record.to_msgpack(), **more)
    with Store(place) as store:
        found = {one.key: one for one in store.games()}
        assert store.journal() == []
    for record in records:
        assert found[record.key] == GameSummary.of(record, 1, PAIRS[record.key])
    assert [found[key].swapped for key in PAIRS] == [None, None, 1, 0, None]
    assert len({one.fingerprint for one in found.values()}) == len(PAIRS)


# Stores without a chain


def fill(place: Location) -> None:
    with Store(place) as store:
        store.claim("cup", {"rounds": 1}, {"game": "kalah"})
        store.add_all([PackedGame.of(make_record(key), 1, "r001-1+2") for key in (KEY, OTHER)])
        store.note(Entry(Action.VOID, KEY, "why", 1, AT), Entry(Action.VOID, OTHER, "why", 1, AT))


@pytest.mark.parametrize("revision", ["0002", "0003", "0004"])
def test_a_store_is_put_back_to_an_old_revision_and_migrated_again(place: Location, revision: str) -> None:
    """A user may put a store back by hand, and the tests of old stores do."""
    fill(place)
    with store_of_revision(place, revision):
        pass
    expected = GameSummary.of(make_record(KEY), 1, "r001-1+2")
    if revision != "0002":
        with Store(place, read_only=True) as store:
            assert not store.is_chained
            assert (store.head(), store.chained()) == (None, None)
            assert [one.key for one in store.games()] == [KEY, OTHER]
            assert store.games()[0] == expected
    with Store(place) as store:
        assert store.add(make_record("r001-1v3"), 1)
        chained = store.chained()
        assert store.games()[0] == expected
    assert chained is not None
    rulings = ["ruling", "ruling"] if revision != "0002" else []
    kinds = ["tournament", "game", "game", *rulings, "adopted", "game"]
    assert [link.kind for link in chained.links] == kinds
    (remark,) = ChainCheck(chained).findings()
    assert remark.remark
    counted = "2 games, 2 rulings, 1 configuration" if rulings else "2 games, 0 rulings, 1 configuration"
    assert remark.text.startswith(f"{counted} were stored before there was a chain")
    assert f"(entry {len(kinds) - 1}): a change before that time" in remark.text


def test_a_store_without_deficits_is_read_and_migrated(place: Location) -> None:
    record = random_game("manchester")
    with Store(place) as store:
        store.claim("cup", {"rounds": 1}, {"game": "manchester"})
        store.add(record, 1)
    with store_of_revision(place, "0005") as connection:
        assert "deficit_permille" not in {
            column["name"] for column in inspect(connection).get_columns("game")
        }
    expected = GameSummary.of(record, 1)
    assert expected.deficit_permille is not None
    for read_only in (True, False):
        with Store(place, read_only=read_only) as store:
            assert store.is_chained
            assert store.games() == [expected]
    for change in ("DELETE FROM game", "UPDATE game SET round = 2"):  # as before the migration
        with (
            pytest.raises(StoreError, match="never changed"),
            Connections(place) as connections,
            connections.writing("") as connection,
        ):
            connection.execute(text(change))


@pytest.mark.parametrize("damage", ["opening", "game"])
def test_an_old_store_with_a_damaged_record_can_be_opened(place: Location, damage: str) -> None:
    """``verify`` can name the record only then."""
    fill(place)
    record = msgpack.unpackb(make_record(KEY).to_msgpack())
    with store_of_revision(place, "0003") as connection:
        packed = zlib.compress(msgpack.packb(record | {damage: None}))
        connection.execute(game.update().where(game.c.key == KEY).values(record=packed))
    for read_only in (True, False):
        with Store(place, read_only=read_only) as store:
            assert [one.key for one in store.games()] == [KEY, OTHER]
            assert store.games()[0].line == ""


# Old tournaments are resumed


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with the store of a tournament; no test changes it."""
    out = tmp_path_factory.mktemp("played") / "out"
    assert invoke("tournament", "run", write_tournament(out.parent, CUP), "--out", out).exit_code == 0
    return out


@pytest.fixture
def out(played: Path, tmp_path: Path) -> Path:
    """Return a copy of the directory that a test may change; cup.toml is beside it."""
    shutil.copytree(played, tmp_path / "out")
    write_tournament(tmp_path, CUP)
    return tmp_path / "out"


def verify(out: Path, *arguments: str) -> tuple[int, list[str]]:
    result = invoke("verify", out, *arguments)
    return result.exit_code, result.output.splitlines()


def test_an_old_tournament_is_shown_verified_and_resumed(out: Path) -> None:
    """The store of the second version has no journal and no plan, and fewer columns."""
    file = out.parent / "cup.toml"
    before = invoke("tournament", "table", out, "--format", "csv").output
    with store_of_revision(SQLiteFile(out / "results.db"), "0002") as connection:
        noted = json.loads(connection.execute(text("SELECT config FROM tournament")).scalar_one())
        old = {name: noted[name] for name in ("game", "control", "bots", "ranking")} | {"total": GAMES}
        connection.execute(text("UPDATE tournament SET config = :config"), {"config": json.dumps(old)})
        connection.execute(text("DELETE FROM game WHERE key = 'r001-2v1'"))
    shown = invoke("tournament", "table", out)
    assert shown.exit_code == 2
    assert "is of an older version: run the tournament first" in shown.output
    with Store(out / "results.db"):  # it is migrated, and keeps its old plan
        pass
    value = one_object(invoke("tournament", "table", out, "--format", "json").output)
    assert (value["games"], value["games_total"], value["rounds"]) == (GAMES - 1, GAMES, 1)
    assert invoke("tournament", "withdraw", out, "nobody", "--why", "x").exit_code == 2
    # The missing game is played with the same result.
    assert invoke("tournament", "run", file, "--out", out).exit_code == 0
    assert invoke("tournament", "table", out, "--format", "csv").output == before
    more = write_tournament(out.parent, "rounds = 2\n" + CUP)
    assert invoke("tournament", "run", more, "--out", out).exit_code == 0
    assert verify(out)[1][-1] == f"{2 * GAMES} games verified, nothing wrong"


@pytest.mark.slow
@pytest.mark.parametrize("revision", ["0003", "0004"])
def test_an_old_tournament_is_verified_without_a_chain(out: Path, revision: str) -> None:
    with store_of_revision(SQLiteFile(out / "results.db"), revision):
        pass
    results = out / "results.json"  # as an earlier version writes it
    results.write_text(re.sub(r',\n *"score_percent": [^\n]*', "", results.read_text()))
    status, (line, *remarks, conclusion) = verify(out)
    assert remarks
    assert all("an earlier version wrote it" in remark for remark in remarks)
    assert status == 0
    assert line.startswith("chain: not chained: the store is of an older version")
    assert conclusion == f"{GAMES} games verified, nothing wrong"
    status, lines = verify(out, "--head", "0" * 16)
    assert status == 1
    assert any(line.startswith("head: 0000000000000000 cannot be compared: ") for line in lines)
    assert invoke("tournament", "run", out.parent / "cup.toml", "--out", out).exit_code == 0
    status, lines = verify(out)
    assert status == 0
    assert re.match(
        rf"chain: {GAMES} games, 0 rulings, 1 configuration were stored before there was a chain, and "
        rf"entered at 20\d\d-\S+ \(entry {GAMES + 2}\): .* \(a remark\)",
        lines[0],
    )
