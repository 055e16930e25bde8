"""Packed records: they come back unchanged, whatever they hold, and damage is found."""

import base64
import gzip
import hashlib
import json
import zlib
from collections.abc import Callable
from dataclasses import replace

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from referee.errors import RefereeError
from referee.games.catalog import GAMES
from referee.judge import clock
from referee.judge.limits import Limits
from referee.judge.record_rows import Correction, KeptFile, MoveRecord, WireLine
from referee.judge.results import GameRecord
from tests.games.test_games_contract import SPECS
from tests.judge import test_replay_check as judged
from tests.judge.test_game_record import RECORDS
from tests.support.builders import make_record
from tests.support.paths import TEST_DATA
from tests.support.random_games import game_of_length, random_game
from tournaments.results.number_stream import Frequencies, NumberReader, NumberWriter, StreamError
from tournaments.results.packing import QUICK_GAME_US, is_whole, pack, pack_small, parts_of, unpacked

NUMBERS = st.integers(0, 2**127 - 1) | st.integers(0, 300)
KINDS: list[Callable[[], GameRecord]] = [
    *(judged.opened, judged.swapped, judged.timed, judged.of_kalamala, judged.late_reply),
    *(judged.late_but_illegal, judged.starved, judged.starved_before_its_reply, judged.early_lines),
    judged.corrected,
]
MOST_OWN_BYTES = 5.5
"""Bytes of a move with its three lines and their times, without the names and settings of the game."""


def comes_back(record: GameRecord) -> bool:
    """Check that a record comes back; return True if it is packed by the rules."""
    packed = pack_small(record)
    assert unpacked(packed).to_msgpack() == record.to_msgpack()
    return is_whole(packed)


@given(st.lists(st.integers(0, 300) | st.integers(-(2**126) + 1, 2**126 - 1), max_size=60))
def test_numbers_of_any_size_come_back(numbers: list[int]) -> None:
    writer, frequencies = NumberWriter(), Frequencies()
    for number in numbers:
        writer.signed(frequencies, number)
    reader, frequencies = NumberReader(writer.content()), Frequencies()
    assert [reader.signed(frequencies) for _ in numbers] == numbers


@pytest.mark.parametrize("damage", [lambda content: content + b"\x00", lambda _: b""])
def test_a_stream_that_does_not_end_with_its_numbers_is_an_error(damage: Callable[[bytes], bytes]) -> None:
    writer, frequencies = NumberWriter(), Frequencies()
    for number in (5, 300, 2**40):
        writer.number(frequencies, number)
    reader, frequencies = NumberReader(damage(writer.content())), Frequencies()
    with pytest.raises(StreamError):
        read_all(reader, frequencies)


def read_all(reader: NumberReader, frequencies: Frequencies) -> None:
    for _ in range(3):
        reader.number(frequencies)
    reader.end()


def test_a_number_that_is_too_large_is_refused() -> None:
    for number in (-1, 2**127):
        with pytest.raises(StreamError, match="cannot be written"):
            NumberWriter().number(Frequencies(), number)


@pytest.mark.parametrize("spec", SPECS)
def test_games_of_the_catalog_are_packed_by_their_rules(spec: str) -> None:
    for seed in (1, 2):
        assert comes_back(random_game(spec, seed))
        assert comes_back(random_game(spec, seed, illegal_after=seed))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_odd_games_are_packed_by_their_rules(kind: Callable[[], GameRecord]) -> None:
    assert comes_back(kind())


def test_real_games_with_all_faults_are_packed_by_their_rules() -> None:
    file = TEST_DATA / "earlier" / "records.msgpack.gz"
    for columns in msgpack.unpackb(gzip.decompress(file.read_bytes())):
        assert comes_back(GameRecord.from_msgpack(columns))


@settings(max_examples=60)
@given(RECORDS)
def test_records_that_no_game_has_come_back(record: GameRecord) -> None:
    comes_back(record)


RARE = {
    "own controls": {"own_controls": (None, clock.TimeControl(move_s=3, game_s=60.5, increment_s=0.1))},
    "corrections": {"corrections": (Correction(3, 2**40, 2),)},
    "files": {"kept_files": ((KeptFile(b"a/\xff", b"\x00\xfe" * 40, 2**33),), ())},
    "warnings": {"warnings": ("it did not end",)},
    "memory": {"peak_memory_bytes": (2**40, None)},
    "binary standard error": {"stderr": ("\x00\x1b[31m\udcff" * 9, "Größe\u2028")},
    "negative CPU time": {"cpu_us": (-1, 2**62)},
    "stamp of another form": {"started_at": "2026-01-02T03:04:05+02:00"},
    "no stamp": {"started_at": "\x00"},
    "limits": {"limits": Limits(memory_mb=10**6, end_grace_s=0.001)},
    "board": {"final_state": "another"},
    "exit": {"exit_status": (None, -9)},
}


@pytest.mark.parametrize("name", RARE)
def test_rare_fields_come_back(name: str) -> None:
    assert comes_back(replace(random_game("kalah(3,2)"), **RARE[name]))  # type: ignore[arg-type]


@given(st.data())
def test_altered_games_come_back(data: st.DataObject) -> None:
    record = random_game("manchester", data.draw(st.integers(1, 3)))
    wire, moves = list(record.wire), list(record.moves)
    micros = st.integers(-5, 5) | st.integers(-(2**63), 2**63)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(wire) - 1))
        line = data.draw(st.sampled_from(["MOVE;1", "SWAP", "MOVE;01", "", "END", "\udcff", wire[at].line]))
        other = WireLine(
            data.draw(st.integers(0, 1)), data.draw(st.sampled_from(["to", "from"])), line, wire[at].at_us
        )
        change = data.draw(st.sampled_from(["drop", "add", "replace", "time", "move", "counters", "none"]))
        if change == "drop" and len(wire) > 1:
            del wire[at]
        elif change == "add":
            wire.insert(at, other)
        elif change == "replace":
            wire[at] = other
        elif change == "time":
            wire[at] = wire[at]._replace(at_us=data.draw(micros))
        elif change == "move" and moves:
            moves[at % len(moves)] = MoveRecord(0, line, data.draw(micros), data.draw(micros))
        elif change == "counters" and moves:
            counters = [data.draw(st.none() | micros) for _ in range(3)]
            wall, charged = data.draw(micros), data.draw(micros)
            moves[at % len(moves)] = MoveRecord(*moves[at % len(moves)][:2], wall, charged, *counters)
    comes_back(replace(record, wire=wire, moves=moves))


def test_a_game_of_another_distribution_keeps_its_lines() -> None:
    """Its rules may not be there when the record is read."""
    record = random_game("kalah(3,2)")
    entry = GAMES["kalah"]
    packed = pack_small(record)
    try:
        GAMES["kalah"] = replace(entry, source="/elsewhere/kalah.py")
        assert not comes_back(record)
        with pytest.raises(RefereeError, match="no game of the catalog"):
            unpacked(packed)
    finally:
        GAMES["kalah"] = entry


def test_a_game_takes_few_bytes() -> None:
    record = game_of_length("manchester", 60)
    own = len(parts_of(pack_small(record)).own)
    assert own < MOST_OWN_BYTES * len(record.moves)
    assert own < len(zlib.compress(record.to_msgpack())) / 5


def test_quick_games_are_stored_as_columns_which_takes_less_time() -> None:
    record = game_of_length("manchester", 60)
    assert is_whole(pack(replace(record, duration_us=QUICK_GAME_US)))
    quick = pack(replace(record, duration_us=QUICK_GAME_US - 1))
    assert not is_whole(quick)
    assert unpacked(quick).moves == record.moves


def test_records_in_the_form_of_earlier_versions_are_read() -> None:
    record = make_record()
    assert unpacked(zlib.compress(record.to_msgpack())) == record


def test_packed_games_stay_readable() -> None:
    """Stores have such records: a change of the rules or of the packing must not keep them from being read.

    Never change the file; a new form of records adds to it.
    """
    for game in json.loads((TEST_DATA / "packed_games.json").read_text()):
        packed = base64.b64decode(game["packed"])
        assert is_whole(packed)
        assert hashlib.sha256(unpacked(packed).to_msgpack()).hexdigest() == game["columns"], game["name"]


@given(st.data())
def test_damage_is_found(data: st.DataObject) -> None:
    """Bytes can differ and yet mean the same: then exactly the record comes back."""
    record = random_game("kalah(3,2)")
    packed = bytearray(pack_small(record))
    at = data.draw(st.integers(0, len(packed) - 1))
    if data.draw(st.booleans()):
        packed[at] ^= data.draw(st.integers(1, 255))
    else:
        del packed[at:]
    try:
        found = unpacked(bytes(packed))
    except RefereeError:
        return
    assert found.to_msgpack() == record.to_msgpack()
