"""Packed records of games: a fifth of the bytes of their columns, deflated (pure).

Three forms of a packed record differ in their first byte:

- the columns, deflated (zlib): records of earlier versions, and those that cannot be packed otherwise;
- ``WHOLE``: the shared parts of a record, its key, and its own part;
- ``SPLIT``: its own part, and the numbers of the shared ones, which a store keeps once for all games; the key
  is that of the row.

The shared parts are what many games of a tournament have in common: settings, host, each player.  The own
part has a checksum of the columns, the other fields (deflated with a preset dictionary), and the moves and
lines as ``packed_conversation`` writes them.  A record is packed so only if exactly its columns come back:
each is unpacked once.  A later version whose rules differ cannot read the record, and reads no other one:
the checksum is that of the columns.  tests/data/packed_games.json has records that every version must read.
"""

import struct
import zlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import msgpack

from protocol.errors import ProtocolError
from referee.errors import RefereeError
from referee.games.catalog import parse_game
from referee.judge.clock import TimeControl
from referee.judge.record_rows import columns_of, rows_of
from referee.judge.results import RECORD_SCHEMA, GameRecord
from tournaments.results.packed_conversation import (
    NoScriptError,
    ScriptSettings,
    Texts,
    pack_conversation,
    unpack_conversation,
)

DEFLATE_LEVEL = 1
"""Compression level of columns: the fastest level brings 12 KB of a game of 86 moves to under a third."""
QUICK_GAME_US = 100_000
"""Duration below which a game is stored as columns.  The other form takes 3.5 ms of a core's time for 86
moves: 4 % of a longer game, but more than the referee's time for a game of bots that answer at once."""
WHOLE = 0x02
SPLIT = 0x03
"""First bytes; the first byte of zlib's format ends in the digit 8 (RFC 1950)."""

FIELDS = (
    *("key", "game", "players", "control", "moves", "wire", "facts", "final_state", "result", "stderr"),
    *("exit_status", "started_at", "opening", "duration_us", "host", "versions", "cores", "limits"),
    *("sandbox", "clock", "cpu_us", "off_turn_cpu_us", "host_speed", "judge", "runtime_settings"),
)
"""Fields that each record has, in the order of its columns; rarer ones are after them."""
SETTINGS = ("game", "control", "opening", "limits", "sandbox", "clock", "judge")
HOST = ("host", "versions", "cores", "host_speed")
OWN = ("facts", "stderr", "exit_status", "started_at", "duration_us", "cpu_us", "off_turn_cpu_us")
RESULT = ("winner", "reason", "detail", "score", "fault", "note")
PARTS = 4
"""Number of shared parts: settings, host, first player, second player."""

_FAILURES = (
    *(ValueError, LookupError, TypeError, ArithmeticError, AttributeError),
    *(ProtocolError, msgpack.UnpackException),
)
"""Exceptions of a record that is none of a real game, and of damaged bytes."""
_WHOLE, _SPLIT = bytes([WHOLE]), bytes([SPLIT])
_NUMBERS = struct.Struct(f">{PARTS}H")
"""Numbers of shared parts: a store has at most ``shared_parts.MOST_SHARED`` of them."""
_CHECK_BYTES = 4
_RAW = -15
"""Bits of a window of zlib, negative for a stream without a header."""
_DICTIONARY_RECORD = [
    [[[1, 0], ["Taken", "Taken"], [60_000, 120_000], [1, 2], [[], []]], ["", ""], [0, 0]],
    ["TimePassed", "BotExited", "OutputClosed", "LineReceived", "LimitPassed", "LineTooLong", "queued"],
    ["timeout", "late", "protocol", "illegal-move", "exit", "start", "turn-cap", "memory", "MOVE;", "SWAP"],
    [0, "score", "\x00 (\x02) won: 40 to 32", [40, 32], None, ""],
    [1, "score", "\x01 (\x03) won: 50 to 22", [50, 22], None, ""],
    [None, "score", "draw: 36 to 36", [36, 36], None, ""],
    [None, [[], [], [[0, 0, 0, False]]]],
    [1_780_000_000_000, 150_000, [None, None], [None, None], {}],
]
DICTIONARY = msgpack.packb(_DICTIONARY_RECORD)
"""Preset dictionary of the own parts.  It never changes, since stored records need it."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MARKS = ("\x00", "\x01", "\x02", "\x03")
"""Characters for the names of players and seats in the sentence of a verdict."""


class Packed(NamedTuple):
    """The parts of a packed record."""

    shared: tuple[bytes, ...]
    """The shared parts, PARTS in number."""
    key: str
    """Key of the game."""
    own: bytes


def pack(record: GameRecord) -> bytes:
    """Return a record in the form WHOLE, or as deflated columns if it cannot be packed so, or was quick."""
    return deflated(record) if record.duration_us < QUICK_GAME_US else pack_small(record)


def deflated(record: GameRecord) -> bytes:
    """Return a record as deflated columns."""
    return zlib.compress(record.to_msgpack(), DEFLATE_LEVEL)


def pack_small(record: GameRecord) -> bytes:
    """Return a record in the form WHOLE, or as deflated columns if it cannot be packed so."""
    columns = record.to_msgpack()
    try:
        packed = _packed(columns)
        if _columns(packed) == columns:
            return joined(packed)
    except (*_FAILURES, RefereeError):
        pass  # as of a game of another distribution, or with a number that is none of a time
    return deflated(record)


def unpacked(packed: bytes) -> GameRecord:
    """Return the record in one of the first two forms.  Raises RefereeError if it is damaged."""
    return GameRecord.from_msgpack(_inflated(packed))


def as_columns(packed: bytes) -> bytes:
    """Return the record in the form of earlier versions.  Raises RefereeError if it is damaged."""
    return zlib.compress(_inflated(packed), DEFLATE_LEVEL) if is_whole(packed) else packed


def _inflated(packed: bytes) -> bytes:
    try:
        return _columns(parts_of(packed)) if is_whole(packed) else zlib.decompress(packed)
    except zlib.error as error:
        raise RefereeError(str(error)) from error
    except _FAILURES as error:
        raise RefereeError(f"this game record is damaged: {error!r}") from error


def is_whole(packed: bytes) -> bool:
    """Return True for the form WHOLE."""
    return packed[:1] == _WHOLE


def is_split(packed: bytes) -> bool:
    """Return True for the form SPLIT."""
    return packed[:1] == _SPLIT


def parts_of(packed: bytes) -> Packed:
    """Return the parts of the form WHOLE.  Raises ValueError if it is damaged."""
    *shared, key, own = _unpackb(packed[1:])
    return Packed(tuple(shared), key, own)


def joined(parts: Packed) -> bytes:
    """Return the form WHOLE."""
    return _WHOLE + _packb([*parts.shared, parts.key, parts.own])


def split(parts: Packed, numbers: Sequence[int]) -> bytes:
    """Return the form SPLIT, with the numbers of the shared parts."""
    return _SPLIT + _NUMBERS.pack(*numbers) + parts.own


def numbers_of(packed: bytes) -> tuple[int, ...]:
    """Return the numbers of the shared parts of the form SPLIT; none if it is damaged."""
    return _NUMBERS.unpack_from(packed, 1) if len(packed) > _NUMBERS.size else ()


def whole(packed: bytes, shared: Sequence[bytes], key: str) -> bytes:
    """Return the form WHOLE of the form SPLIT, with its shared parts and its key."""
    return joined(Packed(tuple(shared), key, packed[1 + _NUMBERS.size :]))


def _packed(columns: bytes) -> Packed:
    """Return the parts of a record's columns.  Raises ValueError or another error if that is impossible."""
    data: dict[str, Any] = _unpackb(columns)
    if tuple(data)[: len(FIELDS)] != FIELDS or data["schema"] != RECORD_SCHEMA:
        raise NoScriptError("it has other fields")
    rare = {name: value for name, value in data.items() if name not in FIELDS and name != "schema"}
    settings = [data[name] for name in SETTINGS]
    players = [[*pair] for pair in zip(data["players"], data["runtime_settings"], strict=True)]
    texts, stream, board = pack_conversation(
        _script_settings(data | rare), list(rows_of(data["moves"])), rows_of(data["wire"])
    )
    own = [
        *(_packed_time(data[name]) if name == "started_at" else data[name] for name in OWN),
        [data["result"][name] for name in RESULT],
        None if board == data["final_state"] else data["final_state"],
        [*texts],
        rare,
    ]
    own[len(OWN)][2] = _replaced(data["result"]["detail"], _names(data), _MARKS)
    deflate = zlib.compressobj(9, zlib.DEFLATED, _RAW, 9, zlib.Z_DEFAULT_STRATEGY, DICTIONARY)
    check = zlib.crc32(columns).to_bytes(_CHECK_BYTES, "big")
    host = [data[name] for name in HOST]
    return Packed(
        tuple(map(_packb, (settings, host, *players))),
        data["key"],
        check + deflate.compress(_packb(own)) + deflate.flush() + stream,
    )


def _columns(packed: Packed) -> bytes:
    """Return the columns of a record.  Raises RefereeError if they are not those that were packed."""
    settings, host, first, second = map(_unpackb, packed.shared)
    inflate = zlib.decompressobj(_RAW, DICTIONARY)
    *own, result, final_state, texts, rare = _unpackb(inflate.decompress(packed.own[_CHECK_BYTES:]))
    if not inflate.eof:
        raise RefereeError("incomplete stream")
    found: dict[str, Any] = {
        **dict(zip(SETTINGS, settings, strict=True)),
        **dict(zip(HOST, host, strict=True)),
        **dict(zip(OWN, own, strict=True)),
        "key": packed.key,
        "players": [first[0], second[0]],
        "runtime_settings": [first[1], second[1]],
        "result": dict(zip(RESULT, result, strict=True)),
    }
    found["started_at"] = _time_of(found["started_at"])
    detail = _replaced(result[2], _MARKS, _names(found))
    found["result"]["detail"] = detail
    moves, wire, board = unpack_conversation(
        _script_settings(found | rare), Texts(*texts), inflate.unused_data
    )
    found["moves"], found["wire"] = columns_of(moves), columns_of(wire)
    found["final_state"] = board if final_state is None else final_state
    columns = _packb({**{name: found[name] for name in FIELDS}, **rare, "schema": RECORD_SCHEMA})
    if zlib.crc32(columns).to_bytes(_CHECK_BYTES, "big") != packed.own[:_CHECK_BYTES]:
        raise RefereeError(
            "its checksum differs: it is damaged, is of another key, or these rules give another conversation"
        )
    return columns


def _script_settings(data: Mapping[str, Any]) -> ScriptSettings:
    control = TimeControl(**data["control"])
    first, second = (
        control if own is None else TimeControl(**own) for own in data.get("own_controls", (None, None))
    )
    timed = ["time" in player[4] for player in data["players"]]
    return ScriptSettings(data["game"], data["opening"], (timed[0], timed[1]), (first, second))


def _names(data: Mapping[str, Any]) -> list[str]:
    """Return the names of the players and of the seats, which are in the sentence of a verdict."""
    rules = parse_game(data["game"])
    return [*(player[0] for player in data["players"]), *rules.seats(rules.initial_state())]


def _packed_time(text: Any) -> Any:
    """Return a time, UTC in ISO 8601 with milliseconds, as milliseconds since 1970; another text as it is."""
    try:
        since = (datetime.fromisoformat(text) - _EPOCH) // timedelta(milliseconds=1)
    except (ValueError, TypeError):
        return text
    return since if _time_of(since) == text else text


def _time_of(packed: Any) -> Any:
    """Return the text that ``_packed_time`` packed."""
    if isinstance(packed, str):
        return packed
    return (_EPOCH + timedelta(milliseconds=packed)).isoformat(timespec="milliseconds")


def _replaced(text: str, old: Sequence[str], new: Sequence[str]) -> str:
    for one, other in zip(old, new, strict=True):
        text = text.replace(one, other)
    return text


def _packb(value: Any) -> bytes:
    packed: bytes = msgpack.packb(value, unicode_errors="surrogatepass")
    return packed


def _unpackb(packed: bytes) -> Any:
    return msgpack.unpackb(packed, unicode_errors="surrogatepass")
