"""Score, Elo difference and uncertainty of one match of two players.

Two games of a pair, from one opening with sides exchanged, are not independent.  So the unit is the pair,
with one of five scores ("pentanomial"); single games, with three ("trinomial"), are right only if they have
nothing in common.  Score, Elo and normalized Elo are those of fishtest and fastchess.  Their intervals, plus
or minus 1.96 standard errors, hold the truth in 73 to 94 of 100 short or one-sided matches; those here are
explained at ``_summary``, and docs/statistics.md has the measured coverage.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, log, log10, nan, sqrt

import numpy as np

from tournaments.analysis.evidence import Evidence
from tournaments.analysis.ratings.normal import LEVEL, beta_quantiles, beta_share

NORMALIZED_ELO_PER_DEVIATION = 800 / log(10)
"""Normalized Elo of a score that lies one standard deviation of a game above one half.  Chosen by Van den
Bergh ("Comments on normalized Elo", cantate.be/Fishtest) so that both kinds of Elo agree for small
differences without draws: one game's deviation is then 1/2, and half of 800 / ln 10 is the slope of logistic
Elo."""


@dataclass(frozen=True)
class MatchScore:
    """Score and strength of the first of two players; ``low`` and ``high`` are ends of 95% intervals."""

    units: float
    """Pairs, or games, that this is computed from."""
    score: float
    """Share of the points, 0 to 1; nan without any result, as is all that follows but superiority."""
    standard_error: float
    """Of the score."""
    elo: float
    """Logistic: expected score = 1 / (1 + 10 ** (-elo / 400))."""
    elo_low: float
    elo_high: float
    normalized_elo: float
    """(score - 1/2) in standard deviations of one game, times 800 / ln 10: how easily a match shows the
    difference."""
    normalized_low: float
    normalized_high: float
    superiority: float
    """Likelihood of superiority: probability that the first player is the stronger one; 0.5 without
    results."""


def of_pairs(pairs: Sequence[float], *, was_stopped: bool = False) -> MatchScore:
    """Sum up five counts: pairs of games that gave 0, 0.5, 1, 1.5 and 2 points.

    Args:
        pairs: The counts, which need not be whole.
        was_stopped: Whether a sequential test ended the match, at a favourable moment; intervals are wider
            then.

    Raises:
        ValueError: Counts are negative or infinite, or not five.
    """
    if len(pairs) != 5:
        raise ValueError(f"five counts are needed, not {len(pairs)}")
    few = next((level for most, level in FEW_PAIRS if sum(pairs) <= most), LEVEL)
    return _summary(pairs, 2, STOPPED_LEVEL if was_stopped else few)


def of_games(games: Sequence[float]) -> MatchScore:
    """Sum up three counts: games lost, drawn and won.  Raises ValueError as ``of_pairs`` does."""
    if len(games) != 3:
        raise ValueError(f"three counts are needed, not {len(games)}")
    return _summary(games, 1)


def pair_counts(evidence: Evidence, one: int, other: int) -> tuple[float, float, float, float, float]:
    """Return the different pairs of games between two bots by the points of ``one``: 0, 0.5, 1, 1.5, 2.

    Only whole pairs: two games, each bot having moved first once.
    """
    forth = (evidence.first == one) & (evidence.second == other)
    back = (evidence.first == other) & (evidence.second == one)
    clusters = len(evidence.cluster_weight)
    points = np.zeros(clusters)
    for rows, won in ((forth, evidence.points), (back, 1 - evidence.points)):
        points += np.bincount(evidence.cluster[rows], won[rows], clusters)
    whole = np.ones(clusters, dtype=bool)
    for rows in (forth, back):
        whole &= np.bincount(evidence.cluster[rows], minlength=clusters) == 1
    halves = np.rint(2 * points[whole]).astype(np.int64)
    counts = np.bincount(halves, evidence.cluster_weight[whole], 5).tolist()
    return counts[0], counts[1], counts[2], counts[3], counts[4]


def game_counts(evidence: Evidence, one: int, other: int) -> tuple[float, float, float]:
    """Return the numbers of different games that ``one`` lost, drew and won against ``other``."""
    forth = (evidence.first == one) & (evidence.second == other)
    back = (evidence.first == other) & (evidence.second == one)
    counts = np.zeros(3)
    for rows, won in ((forth, evidence.points), (back, 1 - evidence.points)):
        counts += np.bincount(np.rint(2 * won[rows]).astype(np.int64), evidence.weight[rows], 3)
    lost, drawn, won_games = counts.tolist()
    return lost, drawn, won_games


IMAGINARY_UNITS = 0.5
"""Imaginary pairs that were won, and as many that were lost, as in Jeffreys' prior for a share (Brown, Cai
and DasGupta 2001): the same half results as in the ratings (bradley_terry.py)."""

FEW_PAIRS = ((2, 0.96), (4, 0.9675), (5, 0.9653), (15, 0.97))
"""(pairs, level): up to so many pairs, this level takes the place of LEVEL.  The imaginary pairs make short
matches' intervals wider than necessary: they would hold the truth in 97 to 98 of 100 matches.  With these
levels it is 94 to 98, on average 95 to 97 (``python -m benchmarks.coverage`` computes it up to 10 pairs)."""
STOPPED_LEVEL = 0.9875
"""Takes the place of LEVEL after a sequential test, where 95 % intervals held the truth in 91 to 93 of 100
tests whose claims are as far from the truth as each other; with this level in 94 to 96
(``python -m benchmarks.coverage``)."""


def _summary(counts: Sequence[float], games: int, level: float = LEVEL) -> MatchScore:
    """Sum up counts of equally spaced scores of ``games`` games each.

    The interval's ends are quantiles of the posterior of the expected score; ``level`` is that of the upper
    end.  The prior is a Dirichlet process on the imaginary results (Ferguson 1973; without these it is the
    Bayesian bootstrap, Rubin 1981); the posterior is taken as a beta distribution of the same mean and
    variance.  This needs no assumption on draws, sides or what the games of a pair have in common.  The
    interval lies between 0 and 1, also if all results are alike.
    """
    if any(count < 0 or not isfinite(count) for count in counts):
        raise ValueError(f"counts must be finite and not negative: {list(counts)}")
    units = float(sum(counts))
    if units == 0:
        return MatchScore(0.0, nan, nan, nan, nan, nan, nan, nan, nan, 0.5)
    scores = [index / (len(counts) - 1) for index in range(len(counts))]
    score, variance = _moments(counts, scores)
    imagined = [float(count) for count in counts]
    imagined[0] += IMAGINARY_UNITS
    imagined[-1] += IMAGINARY_UNITS
    mean, spread = _moments(imagined, scores)
    belief = spread / (sum(imagined) + 1)
    size = mean * (1 - mean) / belief - 1
    low, high = beta_quantiles(mean * size, (1 - mean) * size, level)
    if variance == 0:  # all results alike: only the imaginary ones vary
        variance = spread
    estimate = score if 0 < score < 1 else mean
    # The mean of two games varies half as much as one.
    per_score = NORMALIZED_ELO_PER_DEVIATION / sqrt(games * variance)
    return MatchScore(
        units=units,
        score=score,
        standard_error=sqrt(variance / units),
        elo=_elo(estimate),
        elo_low=_elo(low),
        elo_high=_elo(high),
        normalized_elo=(estimate - 0.5) * per_score,
        normalized_low=(low - 0.5) * per_score,
        normalized_high=(high - 0.5) * per_score,
        superiority=1 - beta_share(mean * size, (1 - mean) * size, 0.5),
    )


def _moments(counts: Sequence[float], scores: Sequence[float]) -> tuple[float, float]:
    """Return the mean of scores and their variance."""
    total = sum(counts)
    mean = sum(count * value for count, value in zip(counts, scores, strict=True)) / total
    return mean, sum(count * (value - mean) ** 2 for count, value in zip(counts, scores, strict=True)) / total


def _elo(score: float) -> float:
    """Return the logistic Elo difference of an expected score; at most ``MOST_ELO`` away from 0."""
    score = min(max(score, _LEAST_SHARE), 1 - _LEAST_SHARE)
    return 400 * log10(score / (1 - score))


MOST_ELO = 4800
"""Elo of odds of a million million to one, the limit at which floating point distinguishes a score from 1."""
_LEAST_SHARE = 1 / (1 + 10 ** (MOST_ELO / 400))
