"""What tables, schedules and statistics need to know of a game."""

import json
from dataclasses import dataclass
from hashlib import blake2b

from referee.results import GameRecord, Reason

FINGERPRINT_BYTES = 8
"""64 bits: that any two of a million different games share a fingerprint has a chance of 3 in 100 million."""


@dataclass(frozen=True, slots=True)
class GameSummary:
    """A game without its moves and its conversation."""

    key: str
    round: int
    first: str
    """Name of the bot that moved first."""
    second: str
    winner: int | None
    """0 is ``first``, 1 is ``second``, None is a draw."""
    reason: Reason
    fault: str | None
    detail: str
    score: tuple[int, int] | None
    moves: tuple[int, int]
    """Moves made by first and second."""
    wall_us: tuple[int, int]
    """Wall time of these moves together."""
    charged_us: tuple[int, int]
    """What was charged of it."""
    sandbox: str
    """How the bots were confined, see referee/sandbox.py."""
    pair: str = ""
    """What this game and its return game have in common; empty for a game that has none."""
    opening: str = ""
    """The opening's text; empty for the game's own start."""
    fingerprint: str = ""
    """Equal for identical games: the same start, moves, winner and reason."""
    swapped: int | None = None
    """Who used the pie rule's swap (0 first, 1 second); None if nobody did."""

    @property
    def points(self) -> tuple[float, float]:
        """1 for a win, 0.5 for a draw, of first and second."""
        if self.winner is None:
            return 0.5, 0.5
        return (1.0, 0.0) if self.winner == 0 else (0.0, 1.0)

    @property
    def loser(self) -> str | None:
        """Name of the bot that lost; None for a draw."""
        return None if self.winner is None else (self.first, self.second)[1 - self.winner]

    @classmethod
    def of(cls, record: GameRecord, round_number: int, pair: str = "") -> "GameSummary":
        """The summary of a record."""
        result = record.result
        moves = [[move for move in record.moves if move.player == player] for player in (0, 1)]
        return cls(
            key=record.key,
            round=round_number,
            first=record.players[0].name,
            second=record.players[1].name,
            winner=result.winner,
            reason=result.reason,
            fault=result.fault,
            detail=result.detail,
            score=result.score,
            moves=(len(moves[0]), len(moves[1])),
            wall_us=(sum(move.wall_us for move in moves[0]), sum(move.wall_us for move in moves[1])),
            charged_us=(sum(move.charged_us for move in moves[0]), sum(move.charged_us for move in moves[1])),
            sandbox=record.sandbox,
            pair=pair,
            opening=record.opening,
            fingerprint=fingerprint(record),
            swapped=next((move.player for move in record.moves if move.move == SWAP), None),
        )


SWAP = "SWAP"
"""How a record's list of moves writes the pie rule's swap, whatever the game (referee/games/base.py)."""


def fingerprint(record: GameRecord) -> str:
    """Equal for identical games: the same rules, start, moves, winner and reason."""
    result = record.result
    moves = [move.move for move in record.moves]
    told = [record.game, record.opening, moves, result.winner, result.reason.value]
    return blake2b(json.dumps(told).encode(), digest_size=FINGERPRINT_BYTES).hexdigest()
