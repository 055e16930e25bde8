"""Times of the bots' moves.  Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import NamedTuple

from referee.judge.events import StartRead
from referee.judge.facts import NAMES
from referee.judge.results import GameRecord


class GameTimes(NamedTuple):
    """Times of one game; each pair is of the bot that moved first and the other bot."""

    charged_us: tuple[list[int], list[int]]
    """The time charged for each move."""
    off_turn_us: tuple[int | None, int | None]
    """CPU time while the opponent was on turn; None where it was not measured."""
    start_us: tuple[int | None, int | None]
    """Time from the start of the processes until START was taken; None if START was never taken."""
    move_limit_us: int | None
    """The time control's limit of a single move; None if it has none."""


def game_times(record: GameRecord) -> GameTimes:
    """Return the times of a record."""
    first, second = ([move.charged_us for move in record.moves if move.player == player] for player in (0, 1))
    started = [
        next((fact.at_us for fact in record.facts if fact.name == TAKEN and fact.player == player), None)
        for player in (0, 1)
    ]
    limit_s = record.control.move_s
    return GameTimes(
        (first, second),
        record.off_turn_cpu_us,
        (started[0], started[1]),
        None if limit_s is None else round(limit_s * 1e6),
    )


TAKEN = NAMES[StartRead]
"""Name in records of the event by which a bot took START."""


@dataclass(frozen=True)
class BotTimes:
    """Times of one bot, over all of its games that count."""

    charged_us: Sequence[int]
    """Charged times of all moves, the shortest first."""
    off_turn_us: int | None
    """Average CPU time off turn of a game; None if it was never measured."""
    start_us: int | None
    """Median time of a start; None if the bot never started."""

    @classmethod
    def of(cls, games: Iterable[tuple[int, GameTimes]]) -> "BotTimes":
        """Return the times of a bot from its games, each with the bot's index in it."""
        charged: list[int] = []
        off_turn: list[int] = []
        start: list[int] = []
        for player, times in games:
            charged += times.charged_us[player]
            off_turn += [us for us in (times.off_turn_us[player],) if us is not None]
            start += [us for us in (times.start_us[player],) if us is not None]
        mean = round(sum(off_turn) / len(off_turn)) if off_turn else None
        return cls(sorted(charged), mean, quantile(sorted(start), 0.5))

    @property
    def median_us(self) -> int | None:
        """Median time of a move; None without a move."""
        return quantile(self.charged_us, 0.5)

    @property
    def high_us(self) -> int | None:
        """Time that 95 of 100 moves do not exceed; None without a move."""
        return quantile(self.charged_us, 0.95)

    @property
    def longest_us(self) -> int | None:
        """Time of the longest move; None without a move."""
        return self.charged_us[-1] if self.charged_us else None


def quantile(ordered: Sequence[int], share: float) -> int | None:
    """Return the nearest-rank quantile of ascending values; None if there are none."""
    return ordered[max(ceil(share * len(ordered)), 1) - 1] if ordered else None
