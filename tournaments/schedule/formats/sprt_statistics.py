"""Sequential probability ratio test of two hypotheses about the difference between two bots.

This is the generalised test that fishtest and fastchess use for chess engines.  Sources: Michel Van den
Bergh, "A practical introduction to the GSPRT" (cantate.be/Fishtest), and the classic, Wald 1945, "Sequential
tests of statistical hypotheses".  Pure arithmetic without arrays: there are five counts only.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import copysign, isfinite, log

from tournaments.schedule.pairing import Result

ZERO_COUNT = 1e-3
"""Replaces a count of zero, as in fishtest and fastchess, so that every expected score is possible."""

NEWTON_STEPS = 200
"""Far more than are needed (under 70)."""

PRECISION = 1e-15
"""Relative precision of Newton's method, a few units in the last place of 1.0."""


def bounds(alpha: float, beta: float) -> tuple[float, float]:
    """Return the lower and the upper bound of the log-likelihood ratio (Wald 1945).

    At or below the lower one the test ends with ``elo0``, at or above the upper one with ``elo1``.  ``alpha``
    is the chance of ending with ``elo1`` although ``elo0`` is true, ``beta`` that of the opposite error.
    Raises ValueError unless both lie between 0 and 1 and together below 1.
    """
    if not (0 < alpha < 1 and 0 < beta < 1 and alpha + beta < 1):
        raise ValueError(f"alpha {alpha} and beta {beta} must be above 0 and together below 1")
    return log(beta / (1 - alpha)), log((1 - beta) / alpha)


def log_likelihood_ratio(pairs: Sequence[float], elo0: float, elo1: float) -> float:
    """Return the natural logarithm of the likelihood ratio of ``elo1`` to ``elo0``, given pairs of games.

    ``pairs`` are five counts: how many pairs of games gave the player 0, 0.5, 1, 1.5 and 2 points; they need
    not be whole numbers.  Under each claim the five probabilities are the most likely ones that have the
    claimed strength, so that draws, and openings that favour a side, need no model.  The result is 0.0
    without evidence.  Raises ValueError for counts that are negative, not finite, or not five.
    """
    if len(pairs) != 5:
        raise ValueError(f"five counts are needed, not {len(pairs)}")
    total, shares = _shares(pairs)
    if not total:
        return 0.0
    # Each claimed probability is a share divided by a tilt.
    before, after = (_tilt_to_mean(shares, expected_score(elo)) for elo in (elo0, elo1))
    return total * sum(
        share * log(tilt0 / tilt1) for share, tilt0, tilt1 in zip(shares, before, after, strict=True)
    )


def expected_score(elo: float) -> float:
    """Return the expected share of points of a player that is stronger by ``elo`` (logistic Elo)."""
    share: float = 1 / (1 + 10.0 ** (-elo / 400))
    return share


def _shares(counts: Sequence[float]) -> tuple[float, list[float]]:
    """Return the number of results and the share of each, none of them zero; (0, []) without results."""
    if any(count < 0 or not isfinite(count) for count in counts):
        raise ValueError(f"counts must be finite and not negative: {list(counts)}")
    if not any(counts):
        return 0.0, []
    filled = [float(count) or ZERO_COUNT for count in counts]
    total = sum(filled)
    return total, [count / total for count in filled]


def _tilt_to_mean(shares: Sequence[float], mean: float) -> list[float]:
    """Return the divisors of the shares that give the most likely probabilities with this mean.

    Van den Bergh, "A practical introduction to the GSPRT", proposition 1.1: 1 + x (score - mean).
    """
    excess = [index / 4 - mean for index in range(5)]
    multiplier = _multiplier(excess, shares)
    return [1 + multiplier * value for value in excess]


def _multiplier(excess: Sequence[float], shares: Sequence[float]) -> float:
    """Return the x with sum(share * excess / (1 + x * excess)) = 0 that leaves every divisor positive.

    The sum falls from plus to minus infinity between -1 / max(excess) and -1 / min(excess).  Newton's method,
    until the interval that contains the root is short; a step out of the interval halves it instead.
    """
    low, high = -1 / max(excess), -1 / min(excess)
    x = 0.0
    for _ in range(NEWTON_STEPS):
        terms = [value / (1 + x * value) for value in excess]
        height = sum(share * term for share, term in zip(shares, terms, strict=True))
        if height > 0:
            low = x
        else:
            high = x
        precision = PRECISION * (1 + abs(x))
        if height == 0 or high - low <= 4 * precision:
            break
        slope = sum(share * term * term for share, term in zip(shares, terms, strict=True))
        # Steps are short beside the poles, too: only the interval's length shows that the root is near.  Each
        # step goes a little too far, to bring both ends of the interval close to the root.
        step = height / slope
        nearer = x + step + copysign(precision, step)
        x = nearer if low < nearer < high else (low + high) / 2
    return x


# Evidence of pairs, near-copies counted once.

DIGITS = 9
"""Decimals of the counts: rounding keeps the errors of their sums from adding up."""


@dataclass(frozen=True)
class Hypotheses:
    """The two hypotheses of a sequential probability ratio test, in Elo, and its error probabilities."""

    elo0: float
    elo1: float
    alpha: float
    beta: float

    def ratio(self, counts: tuple[float, ...]) -> float:
        """The log-likelihood ratio of H1 to H0 for five counts of pairs."""
        return _cached_ratio(counts, self.elo0, self.elo1)

    @property
    def bounds(self) -> tuple[float, float]:
        """The ratios at which H0 and H1 are accepted."""
        return bounds(self.alpha, self.beta)


class _Start:
    """The pairs of games from one start."""

    def __init__(self) -> None:
        self.scores = [0, 0, 0, 0, 0]
        self.combinations: Counter[tuple[str, str]] = Counter()
        self._squares = 0
        """Sum of the squares of the numbers in ``combinations``."""

    def add(self, combination: tuple[str, str], half_points: int) -> None:
        """Add a pair with the moves of its two games, and the half points of the tested bot."""
        often = self.combinations[combination]
        self.combinations[combination] = often + 1
        self._squares += 2 * often + 1  # a running sum: all pairs may have one start
        self.scores[half_points] += 1

    @property
    def counts(self) -> list[float]:
        """Scores, weighted so that they sum to the effective number of different pairs (evidence.py)."""
        pairs = sum(self.scores)
        return [score * pairs / self._squares for score in self.scores] if pairs else [0.0] * 5


@dataclass
class PairEvidence:
    """Evidence from pairs of games, added one by one until one of two hypotheses is accepted.

    Pairs from one start that are near-copies of each other, both games alike until they are half over, are
    no more evidence than one of them: they are weighted as in tournaments/analysis/evidence.py.
    """

    hypotheses: Hypotheses
    pairs: int = 0
    """Number of pairs, including void ones."""
    unique: int = 0
    """Number of different pairs that counted."""
    void: int = 0
    """Number of pairs left out because one of their games does not count."""
    ratio: float = 0.0
    """The log-likelihood ratio of H1 to H0."""
    accepted: int | None = None
    """0 or 1: the accepted hypothesis; later pairs are ignored."""
    counts: list[float] = field(default_factory=lambda: [0.0] * 5)
    """Pairs in which the first bot got 0, 0.5, 1, 1.5 and 2 points, weighted."""
    _starts: dict[int, _Start] = field(default_factory=dict)

    @property
    def counted(self) -> int:
        """Pairs that were not void."""
        return self.pairs - self.void

    def add(self, start: int, there: Result, back: Result) -> None:
        """Add a pair from the start of this number; the tested bot moves first in ``there``."""
        if self.accepted is not None:
            return
        self.pairs += 1
        if not (there.counts and back.counts):
            self.void += 1
            return
        known = there.line and back.line
        # A game with unknown moves is different from all others.
        combination = (there.line, back.line) if known else ("", str(self.pairs))
        group = self._starts.setdefault(start, _Start())
        self.unique += combination not in group.combinations
        old = group.counts
        group.add(combination, _half_points(there.winner, 0) + _half_points(back.winner, 1))
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


# A schedule walks through the same pairs again after every game.  For tests with more pairs than this, the
# cache is of no use: each ratio is dropped before it is needed again.
@lru_cache(maxsize=1 << 16)
def _cached_ratio(counts: tuple[float, ...], elo0: float, elo1: float) -> float:
    return log_likelihood_ratio(counts, elo0, elo1)
