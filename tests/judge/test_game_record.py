"""The game record: its packed form, its JSON form, older forms, and damaged ones."""

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from referee.errors import RefereeError
from referee.judge.clock import TimeControl
from referee.judge.limits import Limits
from referee.judge.record_rows import Fact, MoveRecord, WireLine
from referee.judge.results import RECORD_SCHEMA, GameRecord, MatchResult, Player, Reason
from referee.sandbox.bubblewrap import Tier
from tests.support.builders import lost_by, make_record

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    ["", "\\xff\\x00", 'MOVE;"3"', "Größe\u2028\U0001f3b2", "\r\n\t\x00\x1b[31m"]
)
MICROS = st.integers(0, 2**48)
SIDES = st.integers(0, 1)
PLAYERS = st.builds(Player, TEXTS, st.lists(TEXTS, min_size=1, max_size=3).map(tuple), TEXTS, TEXTS)
CONTROLS = st.builds(
    TimeControl,
    st.none() | st.floats(0.001, 1e6),
    st.floats(0.001, 1e6),
    st.floats(0, 1e3),
    st.floats(0, 1e3),
    st.floats(0.001, 1e3),
)
MAYBE_MICROS = st.none() | MICROS
PLAIN = TEXTS | st.integers(-(2**31), 2**48) | st.none()
DATA = st.lists(PLAIN | st.lists(PLAIN, max_size=3).map(tuple), max_size=4).map(tuple)
SCORES = st.tuples(st.integers(0, 500), st.integers(0, 500))
RESULTS = st.builds(
    MatchResult,
    st.none() | SIDES,
    st.sampled_from(Reason),
    TEXTS,
    st.none() | SCORES,
    st.none() | TEXTS,
    TEXTS,
)
STATUSES = st.none() | st.integers(-64, 255)
RECORDS = st.builds(
    GameRecord,
    key=TEXTS,
    game=TEXTS,
    players=st.tuples(PLAYERS, PLAYERS),
    control=CONTROLS,
    moves=st.lists(
        st.builds(MoveRecord, SIDES, TEXTS, MICROS, MICROS, MAYBE_MICROS, MAYBE_MICROS, MAYBE_MICROS),
        max_size=4,
    ),
    wire=st.lists(st.builds(WireLine, SIDES, st.sampled_from(["to", "from"]), TEXTS, MICROS), max_size=4),
    facts=st.lists(st.builds(Fact, st.none() | SIDES, TEXTS, MICROS, st.integers(0, 999), DATA), max_size=3),
    final_state=TEXTS,
    result=RESULTS,
    stderr=st.tuples(TEXTS, TEXTS),
    exit_status=st.tuples(STATUSES, STATUSES),
    started_at=TEXTS,
    opening=TEXTS,
    duration_us=MICROS,
    host=TEXTS,
    versions=st.dictionaries(TEXTS, TEXTS, max_size=2),
    limits=st.builds(Limits, st.integers(16, 4096), st.integers(1, 999), end_grace_s=st.floats(0, 60)),
    sandbox=st.sampled_from(["", *Tier]).map(str),
    clock=st.sampled_from(["wall", "fair"]),
    cpu_us=st.tuples(MAYBE_MICROS, MAYBE_MICROS),
    off_turn_cpu_us=st.tuples(MAYBE_MICROS, MAYBE_MICROS),
    host_speed=st.none() | st.floats(1, 1e9),
    peak_memory_bytes=st.just((None, None)) | st.tuples(st.integers(1, 2**40), st.none() | st.integers(1, 9)),
    runtime_settings=st.tuples(*[st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2)] * 2),
)


@given(RECORDS)
@settings(max_examples=60)
def test_a_record_survives_both_forms(record: GameRecord) -> None:
    back = GameRecord.from_msgpack(record.to_msgpack())
    assert back == record
    assert back.to_msgpack() == record.to_msgpack()
    # Equality does not distinguish a list from a tuple of its rows, nor a word from a reason.
    assert {type(move) for move in back.moves} <= {MoveRecord}
    assert {type(line) for line in back.wire} <= {WireLine}
    assert {type(fact) for fact in back.facts} <= {Fact}
    assert (type(back.result.reason), type(back.control)) == (Reason, TimeControl)
    text = json.dumps(record.to_json())
    assert json.dumps(json.loads(text)) == text


def test_mean_time_of_a_move() -> None:
    times = ((0, 1000), (1, 7000), (0, 2000))
    record = make_record(moves=[MoveRecord(player, "1", time_us, time_us) for player, time_us in times])
    assert [record.mean_move_ms(player) for player in (0, 1)] == [1.5, 7.0]
    assert make_record(moves=[]).mean_move_ms(0) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("runtime_settings", ({"GOMAXPROCS": "2"}, {"JAVA_TOOL_OPTIONS": "-Xmx1m"})),
        ("host_speed", 250_000.5),
    ],
)
def test_records_from_before_a_field_was_added_are_read(name: str, value: Any) -> None:
    record, old = make_record(**{name: value}), make_record()
    data = msgpack.unpackb(record.to_msgpack())
    del data[name]
    assert GameRecord.from_msgpack(msgpack.packb(data)) == old
    view = json.loads(json.dumps(record.to_json()))
    assert GameRecord.from_json(view) == record
    del view[name]
    assert GameRecord.from_json(view) == old


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"wire": ...}, "no game record"),
        ({"schema": RECORD_SCHEMA + 1}, f"has schema {RECORD_SCHEMA + 1}, this program reads JSON of schema"),
        ({"moves": 5}, "this game record is damaged"),
        ({"moves": [None]}, "this game record is damaged"),
        ({"players": ...}, "not whole, it has no 'players'"),
    ],
)
def test_json_that_is_no_record_is_refused_with_the_reason(changes: dict[str, Any], message: str) -> None:
    view = {**json.loads(json.dumps(make_record().to_json())), **changes}
    with pytest.raises(RefereeError, match=message):
        GameRecord.from_json({name: value for name, value in view.items() if value is not ...})


@pytest.mark.parametrize("schema", [RECORD_SCHEMA + 1, 0, -1, "1", None, 99.5])
def test_another_schema_is_refused(schema: object) -> None:
    data = msgpack.unpackb(make_record().to_msgpack())
    packed = msgpack.packb({**data, "schema": schema})
    with pytest.raises(RefereeError, match=f"has schema {schema}, this program reads schema {RECORD_SCHEMA}"):
        GameRecord.from_msgpack(packed)


@pytest.mark.parametrize(
    "packed",
    [
        *(b"", b"\xc1", b"no record", msgpack.packb([1, 2]), msgpack.packb(None)),
        *(msgpack.packb({"game": "kalah"}), make_record().to_msgpack()[:-1]),
        make_record().to_msgpack() + b"\x00",
    ],
)
def test_bytes_that_are_no_record(packed: bytes) -> None:
    with pytest.raises(RefereeError, match="no game record"):
        GameRecord.from_msgpack(packed)


DAMAGES: dict[str, Callable[[dict[str, Any]], object]] = {
    "a field is missing": lambda data: data.pop("moves"),
    "a field too many": lambda data: data.update(colour="red"),
    "one player": lambda data: data.update(players=data["players"][:1]),
    "no players": lambda data: data.update(players=None),
    "no such reason": lambda data: data["result"].update(reason="bored"),
    "half a score": lambda data: data["result"].update(score=[3]),
    "no score at all": lambda data: data["result"].update(score=[]),
    "score of another kind": lambda data: data["result"].update(score=7),
    "uneven columns": lambda data: data["moves"][0].append(1),
    "a column too few": lambda data: data["wire"].pop(),
    "columns of another kind": lambda data: data.update(wire=5),
    "time control without a limit": lambda data: data["control"].update(move_s=None),
    "time control of words": lambda data: data["control"].update(move_s="long"),
    "result of another kind": lambda data: data.update(result="won"),
    "stderr of another kind": lambda data: data.update(stderr=None),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damaged_records(damage: Callable[[dict[str, Any]], object]) -> None:
    data = msgpack.unpackb(make_record().to_msgpack())
    damage(data)
    with pytest.raises(RefereeError, match="damaged"):
        GameRecord.from_msgpack(msgpack.packb(data))


@given(st.data())
def test_flipped_bytes_are_an_error_or_a_record(data: st.DataObject) -> None:
    packed = bytearray(make_record().to_msgpack())
    for _ in range(data.draw(st.integers(1, 3))):
        packed[data.draw(st.integers(0, len(packed) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = GameRecord.from_msgpack(bytes(packed))
    except RefereeError:
        return
    assert isinstance(found, GameRecord)


# The contract of `kalarena play --json`: scripts depend on these keys, and nothing is ever taken away.
CONTRACT: dict[str, type] = {
    **dict.fromkeys(("game", "reason", "detail", "final_state"), str),
    **dict.fromkeys(("players", "score", "moves", "wire"), list),
    "winner": int,
}
ADDED = {
    *("judge", "cores", "limits", "sandbox", "clock", "cpu_ms", "off_turn_cpu_ms", "fault", "facts"),
    *("time_control", "stderr", "exit_status", "started_at", "duration_ms", "host", "host_speed"),
    *("runtime_settings", "versions", "key", "schema", "note", "opening"),
}
NOT_COUNTED = {"cpu_ms": None, "wait_ms": None, "referee_wait_ms": None}


def test_json_view_has_the_keys_and_shapes_of_the_contract() -> None:
    view = make_record().to_json()
    assert set(view) == set(CONTRACT) | ADDED
    assert next(iter(view)) == "game"
    for key, kind in CONTRACT.items():
        assert type(view[key]) is kind, key
    assert (view["winner"], view["reason"], view["score"]) == (0, "score", [2, 0])
    assert view["moves"] == [
        {"player": 0, "move": "1", "wall_ms": 1.5, "charged_ms": 1.5} | NOT_COUNTED,
        {"player": 1, "move": "1", "wall_ms": 2.5, "charged_ms": 2.5} | NOT_COUNTED,
    ]
    assert view["wire"][2] == {"player": 0, "dir": "from", "line": "MOVE;1", "t_ms": 1.52}
    assert view["facts"] == [
        {"player": 0, "fact": "Taken", "t_ms": 0.03, "text": "", "after": 2, "data": []},
        {
            "player": None,
            "fact": "TimePassed",
            "t_ms": 0.04,
            "text": "x",
            "after": 2,
            "data": [("x", ""), None, ""],
        },
    ]
    assert view["limits"] == asdict(Limits())
    assert (view["sandbox"], view["clock"]) == ("", "wall")
    assert view["cpu_ms"] == view["off_turn_cpu_ms"] == [None, None]
    counted = make_record(cpu_us=(1500, 0), off_turn_cpu_us=(None, 250)).to_json()
    assert (counted["cpu_ms"], counted["off_turn_cpu_ms"]) == ([1.5, 0.0], [None, 0.25])
    assert make_record(peak_memory_bytes=(4096, None)).to_json()["peak_memory_bytes"] == [4096, None]
    assert view["final_state"] == "0,1,0,1"
    assert [player["name"] for player in view["players"]] == ["one", "two"]
    assert view["players"][0]["command"] == ["/opt/python", "/home/one/bot.py"]


def test_json_view_of_a_draw_and_of_a_fault() -> None:
    draw = make_record(result=MatchResult(None, Reason.SCORE, "draw: 3 to 3", (3, 3))).to_json()
    assert (draw["winner"], draw["score"]) == (None, [3, 3])
    lost = make_record(result=lost_by(Reason.TIMEOUT, 0, fault="late")).to_json()
    assert (lost["winner"], lost["reason"], lost["fault"], lost["score"]) == (1, "timeout", "late", None)
    assert {"score", "illegal-move", "protocol", "timeout", "exit", "flood", "start"} <= set(Reason)


def test_size_of_a_typical_record() -> None:
    """A long game: 60 moves, each sent to two bots with a board of 16 numbers of up to two digits."""
    board = ",".join(str(number) for number in range(5, 21))
    moves = [MoveRecord(turn % 2, "3", 123_456 + turn, 123_456 + turn) for turn in range(60)]
    lines = (("from", "MOVE;3"), ("to", f"CHANGE;3;{board};OPP"), ("to", f"CHANGE;3;{board};YOU"))
    wire = [
        WireLine(turn % 2, direction, line, 1_000_000 + turn)
        for turn in range(60)
        for direction, line in lines
    ]
    record = make_record(moves=moves, wire=wire)
    columns = len(record.to_msgpack()) - len(replace(record, moves=[], wire=[]).to_msgpack())
    text = sum(len(line.line) for line in wire) + sum(len(move.move) for move in moves)
    # Beside the text itself: at most 12 bytes a wire line and 15 a move (player, direction, times, lengths).
    assert columns <= text + 12 * len(wire) + 15 * len(moves)
    counted = [move._replace(cpu_us=120_000, wait_us=3000, referee_wait_us=50) for move in moves]
    more = len(replace(record, moves=counted).to_msgpack()) - len(record.to_msgpack())
    assert more <= 7 * len(moves)  # where the counters were read
