"""Summaries of games for tables, schedules and statistics, and packed games as workers send them.

Games are packed and summarized in the referee's process, since its user may play thousands at a time.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, NamedTuple

from referee.games.base import LONGEST_FAULT, Game, MoveError, Side
from referee.games.catalog import parse_game
from referee.games.layout import PitBoard
from referee.games.opening import OpeningError, parse_opening
from referee.games.spec import SpecError
from referee.judge.results import GameRecord, Reason
from tournaments.results.packing import pack, unpacked

FINGERPRINT_BYTES = 8
"""Size of fingerprints.

With 64 bits, two of a million different games share a fingerprint with a chance of 3 in 100 million.
"""


class GameSummary(NamedTuple):
    """A game without its moves and its conversation.

    A named tuple is created in a fifth of the time of a frozen dataclass; a table needs all games of a
    tournament.
    """

    key: str
    round: int
    first: str
    """Name of the bot that moved first."""
    second: str
    winner: int | None
    """Index of the winner: 0 is ``first``, 1 is ``second``, None is a draw."""
    reason: Reason
    fault: str | None
    detail: str
    score: tuple[int, int] | None
    moves: tuple[int, int]
    """Number of moves of first and second."""
    wall_us: tuple[int, int]
    """Total wall time of these moves in microseconds."""
    charged_us: tuple[int, int]
    """Total charged time of these moves in microseconds."""
    sandbox: str
    """Confinement of the bots, see referee/sandbox/bubblewrap.py."""
    pair: str = ""
    """Common name of this game and its return game; empty for a game without one."""
    opening: str = ""
    """Text of the opening; empty for the game's own start."""
    fingerprint: str = ""
    """Fingerprint that is equal for identical games: the same start, moves, winner and reason."""
    swapped: int | None = None
    """Bot that used the pie rule's swap (0 first, 1 second); None if neither did."""
    line: str = ""
    """Digest that is equal for near-copies: the same rules, start and moves until the game is half over."""

    deficit_permille: int | None = None
    """Largest share of all seeds by which the winner was behind in the stores, in thousandths.

    None for a draw, and for games without stores.
    """

    @property
    def likeness(self) -> str:
        """Digest that is equal for games that count once; empty for a game that is like no other."""
        return self.line or self.fingerprint

    @property
    def points(self) -> tuple[float, float]:
        """Points of first and second: 1 for a win, 0.5 for a draw."""
        if self.winner is None:
            return 0.5, 0.5
        return (1.0, 0.0) if self.winner == 0 else (0.0, 1.0)

    @property
    def loser(self) -> str | None:
        """Name of the bot that lost; None for a draw."""
        return None if self.winner is None else (self.first, self.second)[1 - self.winner]

    @property
    def neither_started(self) -> bool:
        """True if the game ended in a draw because neither bot could be started."""
        return self.fault is not None and self.winner is None

    @classmethod
    def of(cls, record: GameRecord, round_number: int, pair: str = "") -> "GameSummary":
        """Create the summary of a record."""
        result = record.result
        texts = [move.move for move in record.moves]
        moves = [[move for move in record.moves if move.player == player] for player in (0, 1)]
        return cls(
            key=record.key,
            round=round_number,
            first=record.players[0].name,
            second=record.players[1].name,
            winner=result.winner,
            reason=result.reason,
            fault=result.fault and result.fault[:LONGEST_FAULT],
            detail=result.detail,
            score=result.score,
            moves=(len(moves[0]), len(moves[1])),
            wall_us=(sum(move.wall_us for move in moves[0]), sum(move.wall_us for move in moves[1])),
            charged_us=(sum(move.charged_us for move in moves[0]), sum(move.charged_us for move in moves[1])),
            sandbox=record.sandbox,
            pair=pair,
            opening=record.opening,
            fingerprint=fingerprint(record),
            line=line_of(record.game, record.opening, texts),
            swapped=next((move.player for move in record.moves if move.move == SWAP), None),
            deficit_permille=deficit_of(record.game, record.opening, texts, result.winner),
        )


SWAP = "SWAP"
"""Text of the pie rule's swap in a record's moves, for all games (referee/games/base.py)."""


def fingerprint(record: GameRecord) -> str:
    """Return a digest that is equal for identical games: the same rules, start, moves, winner and reason."""
    result = record.result
    moves = [move.move for move in record.moves]
    return _digest([record.game, record.opening, moves, result.winner, result.reason.value])


def line_of(game: str, opening: str, moves: Sequence[str]) -> str:
    """Return a digest that is equal for near-copies of a game.

    Of two games that agree until they are half over, the second adds hardly any information: a bot that plays
    at random once its game is decided must not make many games out of one.  All moves count if the game ends
    before it is half over, or if a move is not possible by the rules.

    Args:
        game: Spec text of the rules.
        opening: The opening's text.
        moves: The moves' texts, the swap written as SWAP.
    """
    return _digest([game, opening, list(moves[: _half(game, opening, moves)])])


def _half(spec: str, opening: str, moves: Sequence[str]) -> int:
    """Return the number of moves until the game is half over; at most all."""
    for number, (rules, state) in enumerate(_positions(spec, opening, moves)):
        if number and rules.is_half_over(state):
            return number
    return len(moves)


def deficit_of(game: str, opening: str, moves: Sequence[str], winner: int | None) -> int | None:
    """Return the largest deficit of the winner, see ``GameSummary.deficit_permille``.

    The positions from the end of the opening on count, up to the first move that the rules do not allow.

    Args:
        game: Spec text of the rules.
        opening: The opening's text.
        moves: The moves' texts, the swap written as SWAP.
        winner: Index of the winner; None for a draw.
    """
    if winner is None:
        return None
    largest: int | None = None
    for rules, state in _positions(game, opening, moves):
        board = rules.layout(state)
        if not isinstance(board, PitBoard):
            return None
        largest = max(largest or 0, board.lead_permille(Side(winner).other))
    return largest


def _positions(spec: str, opening: str, moves: Sequence[str]) -> Iterator[tuple[Game[Any, Any], Any]]:
    """Yield the rules, and the position after the opening and after each move that the rules allow."""
    try:
        rules = parse_game(spec)
        steps = parse_opening(rules, opening)
        state = steps[-1].state if steps else rules.initial_state()
        yield rules, state
        for text in moves:
            swap = rules.swap if text == SWAP else None
            state = rules.apply(state, rules.parse_move(state, text) if swap is None else swap)
            yield rules, state
    except (SpecError, OpeningError, MoveError):
        return


def _digest(content: object) -> str:
    return blake2b(json.dumps(content).encode(), digest_size=FINGERPRINT_BYTES).hexdigest()


@dataclass(frozen=True, slots=True)
class PackedGame:
    """A summary for computations, and the whole record as it is sent between processes."""

    summary: GameSummary
    packed: bytes
    """See ``packing``."""
    host: str = ""
    """Cluster host that played the game; empty if the tournament's own machine did."""
    warnings: tuple[str, ...] = ()
    """See ``GameRecord.warnings``."""

    @property
    def record(self) -> GameRecord:
        """The whole record, unpacked each time.  Raises RefereeError if it is damaged."""
        return unpacked(self.packed)

    def in_round(self, number: int, pair: str = "") -> "PackedGame":
        """Return the game with its round; ``pair`` is the common name of the game and its return game."""
        return replace(self, summary=self.summary._replace(round=number, pair=pair))

    @classmethod
    def of(cls, record: GameRecord, round_number: int = 0, pair: str = "") -> "PackedGame":
        """Pack a record; for round and pair, which the referee does not set, see ``in_round``."""
        host = "" if record.host_speed is None else record.host
        return cls(GameSummary.of(record, round_number, pair), pack(record), host, record.warnings)
