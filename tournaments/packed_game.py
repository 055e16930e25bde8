"""A game as it leaves the process that refereed it, and as the store keeps it.

It is packed and summed up there, since whoever asked for it may have asked thousands.
"""

import zlib
from dataclasses import dataclass, replace

from referee.errors import RefereeError
from referee.results import GameRecord
from tournaments.game_summary import GameSummary

DEFLATE_LEVEL = 1
"""Records are kept deflated: the fastest level brings 12 KB of a game of 86 moves to under a fifth."""


@dataclass(frozen=True, slots=True)
class PackedGame:
    """A summary to compute with, and the whole record as it is stored and sent between processes."""

    summary: GameSummary
    packed: bytes
    host: str = ""
    """The cluster's host that played it; empty if the tournament's own machine did."""

    @property
    def record(self) -> GameRecord:
        """The whole record, unpacked each time.  Raises RefereeError if it is damaged."""
        return unpacked(self.packed)

    def in_round(self, number: int, pair: str = "") -> "PackedGame":
        """The game as its tournament knows it; ``pair`` is what it has in common with its return game."""
        return replace(self, summary=replace(self.summary, round=number, pair=pair))

    @classmethod
    def of(cls, record: GameRecord, round_number: int = 0, pair: str = "") -> "PackedGame":
        """For round and pair see ``in_round``; who only referees it knows neither."""
        packed = zlib.compress(record.to_msgpack(), DEFLATE_LEVEL)
        host = "" if record.host_speed is None else record.host
        return cls(GameSummary.of(record, round_number, pair), packed, host)


def unpacked(packed: bytes) -> GameRecord:
    """The record.  Raises RefereeError if it is damaged."""
    try:
        return GameRecord.from_msgpack(zlib.decompress(packed))
    except zlib.error as error:
        raise RefereeError(str(error)) from error
