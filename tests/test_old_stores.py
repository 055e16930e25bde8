"""Stores of older versions: brought up to date, and their tournaments go on."""

import json
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgpack
import pytest
from sqlalchemy import text

from referee.judge.results import GameRecord, MoveRecord, Reason
from tests.builders import invoke, lost_by, make_record, one_object, write_tournament
from tests.places import store_of_revision
from tournaments.database.base import Location
from tournaments.database.sqlite import SQLiteFile
from tournaments.results.game_summary import GameSummary
from tournaments.results.store import Store, StoreError


def as_schema_1(record: GameRecord) -> bytes:
    """The record as the first version wrote it: moves without charges, facts as text, no limits."""
    data = msgpack.unpackb(record.to_msgpack(), unicode_errors="surrogatepass")
    for added in (
        "limits",
        "sandbox",
        "clock",
        "cpu_us",
        "off_turn_cpu_us",
        "host_speed",
        "runtime_settings",
    ):
        del data[added]
    for added in ("clock", "ponder"):
        del data["control"][added]
    data["players"] = [player[:6] for player in data["players"]]
    data["moves"] = data["moves"][:3]
    data["facts"] = [*data["facts"][:3], ["x" for _ in record.facts]]
    packed: bytes = msgpack.packb({**data, "schema": 1}, unicode_errors="surrogatepass")
    return packed


def make_store_of_revision_0001(place: Location, record: GameRecord) -> None:
    """A store as the first version made it, with one game."""
    with store_of_revision(place, "0001") as connection:
        values = {
            "key": record.key,
            "round": 1,
            "first": "one",
            "second": "two",
            "winner": 0,
            "reason": "score",
            "detail": record.result.detail,
            "first_score": 2,
            "second_score": 0,
            "first_moves": 1,
            "second_moves": 1,
            "first_wall_us": 1500,
            "second_wall_us": 2500,
            "record": zlib.compress(as_schema_1(record)),
        }
        names = ", ".join(values)
        places = ", ".join(f":{name}" for name in values)
        connection.execute(text(f"INSERT INTO game ({names}) VALUES ({places})"), values)


def test_a_store_of_the_first_version_is_brought_up_to_date(place: Location) -> None:
    written = make_record()
    make_store_of_revision_0001(place, written)
    with pytest.raises(StoreError, match="older version"), Store(place, read_only=True):
        pass
    with Store(place) as store:
        (game,) = store.games()
        record = store.record(written.key)
    assert game.wall_us == game.charged_us == (1500, 2500)
    assert game.sandbox == "off"
    assert record.moves == [MoveRecord(0, "1", 1500, 1500), MoveRecord(1, "1", 2500, 2500)]
    assert record.wire == written.wire
    assert [fact.text for fact in record.facts] == ["x", "x"]
    assert record.control.clock == "wall"
    assert record.result == written.result
    assert game == replace(GameSummary.of(record, 1, "r001-1+2"), sandbox="off")


KEYS = {
    "r001-1v2": "r001-1+2",
    "r001-2v1": "r001-1+2",
    "r012-03v11": "r012-03+11",
    "r012-11v03": "r012-03+11",
    "a game of its own": "",
}
"""Key -> what it has in common with its return game."""


def make_store_of_revision_0002(place: Location, records: list[GameRecord]) -> None:
    """A store as the second version made it."""
    with store_of_revision(place, "0002") as connection:
        for record in records:
            summary = GameSummary.of(record, 1)
            values = {
                "key": record.key,
                "round": 1,
                "first": summary.first,
                "second": summary.second,
                "winner": summary.winner,
                "reason": summary.reason.value,
                "fault": summary.fault,
                "detail": summary.detail,
                "first_score": None,
                "second_score": None,
                **dict(zip(("first_moves", "second_moves"), summary.moves, strict=True)),
                **dict(zip(("first_wall_us", "second_wall_us"), summary.wall_us, strict=True)),
                **dict(zip(("first_charged_us", "second_charged_us"), summary.charged_us, strict=True)),
                "sandbox": summary.sandbox,
                "record": zlib.compress(record.to_msgpack()),
            }
            names, places = ", ".join(values), ", ".join(f":{name}" for name in values)
            connection.execute(text(f"INSERT INTO game ({names}) VALUES ({places})"), values)


def test_a_store_of_the_second_version_learns_what_its_records_say(place: Location) -> None:
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
        for key, more in zip(KEYS, others, strict=True)
    ]
    make_store_of_revision_0002(place, records)
    with Store(place) as store:
        found = {game.key: game for game in store.games()}
        assert store.journal() == []
    for record in records:
        assert found[record.key] == GameSummary.of(record, 1, KEYS[record.key])
    assert [found[key].swapped for key in KEYS] == [None, None, 1, 0, None]
    assert len({game.fingerprint for game in found.values()}) == len(KEYS)


def test_a_step_back_leaves_the_games(place: Location) -> None:
    """What a person may do by hand, and what the tests of old stores are made with."""
    record = make_record()
    with Store(place) as store:
        store.add(record, 1, "r001-1+2")
    with store_of_revision(place, "0002"):
        pass
    with Store(place) as store:
        assert store.games() == [GameSummary.of(record, 1, "r001-1+2")]


# Old tournaments go on


OLD_CUP = 'name = "Cup"\ngame = "kalah(3,2)"\nbots = ["first_legal", "greedy", "random:1"]\n'


def test_an_old_tournament_is_shown_verified_and_goes_on(tmp_path: Path) -> None:
    """The store as the second version left it: without the new columns, the journal and the plan."""
    file = write_tournament(tmp_path, OLD_CUP)
    out = tmp_path / "out"
    assert invoke("tournament", "run", file, "--out", out).exit_code == 0
    before = invoke("tournament", "table", out, "--format", "csv").output
    with store_of_revision(SQLiteFile(out / "results.db"), "0002") as connection:
        noted = json.loads(connection.execute(text("SELECT config FROM tournament")).scalar_one())
        old = {name: noted[name] for name in ("game", "control", "bots", "ranking")} | {"total": 6}
        connection.execute(text("UPDATE tournament SET config = :config"), {"config": json.dumps(old)})
        connection.execute(text("DELETE FROM game WHERE key = 'r001-2v1'"))
    shown = invoke("tournament", "table", out)
    assert shown.exit_code == 2
    assert "is of an older version: run the tournament first" in shown.output
    with Store(out / "results.db"):  # it is brought up to date, and its plan is still the old one's
        pass
    value = one_object(invoke("tournament", "table", out, "--format", "json").output)
    assert (value["games"], value["games_total"], value["rounds"]) == (5, 6, 1)
    assert invoke("tournament", "withdraw", out, "nobody", "--why", "x").exit_code == 2
    # The missing game is played, as the one that it was.
    assert invoke("tournament", "run", file, "--out", out).exit_code == 0
    assert invoke("tournament", "table", out, "--format", "csv").output == before
    assert invoke("verify", out).output.splitlines()[-1] == "6 games verified, nothing wrong"
    more = write_tournament(tmp_path, "rounds = 2\n" + OLD_CUP)
    assert invoke("tournament", "run", more, "--out", out).exit_code == 0
    assert invoke("verify", out).output.splitlines()[-1] == "12 games verified, nothing wrong"
