"""Comparison of the charged times of a tournament's moves, with and without people who play beside it."""

import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from referee.judge.results import GameRecord

LEAST_MOVES = 100
"""Minimum number of a bot's moves in each kind of period: a mean of fewer moves varies too much."""
LEAST_MEAN_US = 200.0
"""Minimum mean charged time of a bot's moves: the referee's own reading is much of a shorter move."""


@dataclass(frozen=True, slots=True)
class Period:
    """Part of the load during which people play all the time, or not at all."""

    begin: datetime
    end: datetime
    with_people: bool

    def contains(self, record: GameRecord) -> bool:
        """Return True if a game was begun and ended in this period."""
        begin = datetime.fromisoformat(record.started_at)
        return self.begin <= begin and begin + timedelta(microseconds=record.duration_us) <= self.end


@dataclass(frozen=True, slots=True)
class Charges:
    """Mean charged time of a bot's moves, in microseconds, and their numbers; people's periods are second."""

    bot: str
    moves: tuple[int, int]
    mean_us: tuple[float, float]

    @property
    def ratio(self) -> float:
        """Charged time with people, in relation to that without."""
        return self.mean_us[1] / self.mean_us[0]


def compare_charges(records: Iterable[GameRecord], periods: Sequence[Period]) -> list[Charges]:
    """Return the charges of each bot with enough moves in both kinds of periods, by the bots' names."""
    charged: defaultdict[str, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for record in records:
        period = next((one for one in periods if one.contains(record)), None)
        if period is None:
            continue
        for move in record.moves:
            charged[record.players[move.player].name][period.with_people].append(move.charged_us)
    return [
        Charges(name, (len(without), len(beside)), (statistics.fmean(without), statistics.fmean(beside)))
        for name, (without, beside) in sorted(charged.items())
        if min(len(without), len(beside)) >= LEAST_MOVES and statistics.fmean(without) >= LEAST_MEAN_US
    ]


def median_ratio(charges: Sequence[Charges]) -> float | None:
    """Return the median of the bots' ratios; None if no bot has enough moves."""
    return statistics.median(one.ratio for one in charges) if charges else None
