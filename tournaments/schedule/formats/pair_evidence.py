"""The evidence of pairs of games between two bots, without copies of the same games."""

from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache

from tournaments.schedule.formats.sequential_test import bounds, log_likelihood_ratio
from tournaments.schedule.pairing import Result

DIGITS = 9
"""Counts are rounded to this many decimals: what their sums lose to floating point must not add up."""


@dataclass(frozen=True)
class Hypotheses:
    """The two hypotheses of a sequential probability ratio test, in Elo, and its error probabilities."""

    elo0: float
    elo1: float
    alpha: float
    beta: float

    def ratio(self, counts: tuple[float, ...]) -> float:
        """The log-likelihood ratio of H1 to H0 for five counts of pairs."""
        return _ratio(counts, self.elo0, self.elo1)

    @property
    def bounds(self) -> tuple[float, float]:
        """The ratios at which H0 and H1 are accepted."""
        return bounds(self.alpha, self.beta)


class _Start:
    """The pairs of games from one start."""

    def __init__(self) -> None:
        self.scores = [0, 0, 0, 0, 0]
        self.combinations: Counter[tuple[str, str]] = Counter()

    @property
    def counts(self) -> list[float]:
        """Its scores, weighted so that they sum to the effective number of different pairs (evidence.py)."""
        pairs = sum(self.scores)
        squares = sum(often * often for often in self.combinations.values())
        return [score * pairs / squares for score in self.scores] if pairs else [0.0] * 5


@dataclass
class PairEvidence:
    """Takes one pair of games after another, until one of two hypotheses is accepted.

    Pairs from one start that are near-copies of each other, both games alike until they are half over, are
    no more evidence than one of them: they are weighted as in tournaments/analysis/evidence.py.
    """

    hypotheses: Hypotheses
    pairs: int = 0
    """Pairs taken, void ones among them."""
    unique: int = 0
    """Different ones that counted."""
    void: int = 0
    """Pairs left out because one of their games does not count."""
    ratio: float = 0.0
    """The log-likelihood ratio of H1 to H0."""
    accepted: int | None = None
    """0 or 1: the hypothesis that was accepted; nothing is taken after that."""
    counts: list[float] = field(default_factory=lambda: [0.0] * 5)
    """Pairs in which the first bot got 0, 0.5, 1, 1.5 and 2 points, weighted."""
    _starts: dict[int, _Start] = field(default_factory=dict)

    @property
    def counted(self) -> int:
        """Pairs that were not void."""
        return self.pairs - self.void

    def add(self, start: int, there: Result, back: Result) -> None:
        """Take a pair from the start of this number; the bot judged moves first in ``there``."""
        if self.accepted is not None:
            return
        self.pairs += 1
        if not (there.counts and back.counts):
            self.void += 1
            return
        known = there.line and back.line
        # A game whose moves are not known is taken to be like no other.
        combination = (there.line, back.line) if known else ("", str(self.pairs))
        group = self._starts.setdefault(start, _Start())
        self.unique += combination not in group.combinations
        old = group.counts
        group.combinations[combination] += 1
        group.scores[_half_points(there.winner, 0) + _half_points(back.winner, 1)] += 1
        changed = zip(self.counts, group.counts, old, strict=True)
        self.counts = [round(max(count + new - was, 0.0), DIGITS) for count, new, was in changed]
        self.ratio = self.hypotheses.ratio(tuple(self.counts))
        lower, upper = self.hypotheses.bounds
        if self.ratio <= lower:
            self.accepted = 0
        elif self.ratio >= upper:
            self.accepted = 1


def _half_points(winner: int | None, side: int) -> int:
    return 1 if winner is None else 2 * (winner == side)


@lru_cache(maxsize=1 << 14)  # a schedule walks through the same pairs again after every game
def _ratio(counts: tuple[float, ...], elo0: float, elo1: float) -> float:
    return log_likelihood_ratio(counts, elo0, elo1)
