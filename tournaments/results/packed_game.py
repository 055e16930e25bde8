"""Packed games, as the referee's process sends them and the store holds them.

Games are packed and summarized in that process, since its user may play thousands at a time.
"""

import zlib
from dataclasses import dataclass, replace

from referee.errors import RefereeError
from referee.judge.results import GameRecord
from tournaments.results.game_summary import GameSummary

DEFLATE_LEVEL = 1
"""Compression level of records: the fastest level brings 12 KB of a game of 86 moves to under a fifth."""


@dataclass(frozen=True, slots=True)
class PackedGame:
    """A summary for computations, and the whole record as it is stored and sent between processes."""

    summary: GameSummary
    packed: bytes
    host: str = ""
    """Cluster host that played the game; empty if the tournament's own machine did."""

    @property
    def record(self) -> GameRecord:
        """The whole record, unpacked each time.  Raises RefereeError if it is damaged."""
        return unpacked(self.packed)

    def in_round(self, number: int, pair: str = "") -> "PackedGame":
        """Return the game with its round; ``pair`` is the common name of the game and its return game."""
        return replace(self, summary=replace(self.summary, round=number, pair=pair))

    @classmethod
    def of(cls, record: GameRecord, round_number: int = 0, pair: str = "") -> "PackedGame":
        """Pack a record; for round and pair, which the referee does not set, see ``in_round``."""
        packed = zlib.compress(record.to_msgpack(), DEFLATE_LEVEL)
        host = "" if record.host_speed is None else record.host
        return cls(GameSummary.of(record, round_number, pair), packed, host)


def unpacked(packed: bytes) -> GameRecord:
    """Return the record.  Raises RefereeError if it is damaged."""
    try:
        return GameRecord.from_msgpack(zlib.decompress(packed))
    except zlib.error as error:
        raise RefereeError(str(error)) from error
