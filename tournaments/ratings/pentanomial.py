"""One match of two players as a score, an Elo difference and their uncertainty.

Two games of a pair, from one opening with sides exchanged, are not independent.  So the unit is the pair,
with one of five scores ("pentanomial"); single games, with three ("trinomial"), are right only if they have
nothing in common.  The formulas are those of fishtest and fastchess; what they do not cover (all results
alike) is said at ``summary``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import erf, isfinite, log, log10, nan, sqrt

import numpy as np

from tournaments.evidence import Evidence
from tournaments.ratings.normal import NORMAL_QUANTILE
from tournaments.ratings.sprt import NORMALIZED_ELO_PER_DEVIATION

ELO = 400 / log(10)
"""Elo per unit of log odds (Elo 1978)."""


@dataclass(frozen=True)
class MatchScore:
    """What a match says of the first of two players; ``low`` and ``high`` are ends of 95% intervals."""

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


def of_pairs(pairs: Sequence[float]) -> MatchScore:
    """From five counts: pairs of games that gave 0, 0.5, 1, 1.5 and 2 points.

    Counts need not be whole.  Raises ValueError for negative or infinite counts, or another number of them.
    """
    if len(pairs) != 5:
        raise ValueError(f"five counts are needed, not {len(pairs)}")
    return _summary(pairs, 2)


def of_games(games: Sequence[float]) -> MatchScore:
    """From three counts: games lost, drawn and won.  Errors as in ``of_pairs``."""
    if len(games) != 3:
        raise ValueError(f"three counts are needed, not {len(games)}")
    return _summary(games, 1)


def likelihood_of_superiority(wins: float, losses: float) -> float:
    """The classic one: (1 + erf((W - L) / sqrt(2 (W + L)))) / 2; draws play no part.  0.5 without wins or
    losses.

    Source: Kai Laskos, 2014, now in the chess programming wiki's "Match Statistics".  Takes games for
    independent.
    """
    if wins + losses == 0:
        return 0.5
    return (1 + erf((wins - losses) / sqrt(2 * (wins + losses)))) / 2


def pair_counts(evidence: Evidence, one: int, other: int) -> tuple[float, float, float, float, float]:
    """Different pairs of games between two bots by the points of ``one``: 0, 0.5, 1, 1.5, 2.

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
    """Different games between two bots that ``one`` lost, drew and won."""
    forth = (evidence.first == one) & (evidence.second == other)
    back = (evidence.first == other) & (evidence.second == one)
    counts = np.zeros(3)
    for rows, won in ((forth, evidence.points), (back, 1 - evidence.points)):
        counts += np.bincount(np.rint(2 * won[rows]).astype(np.int64), evidence.weight[rows], 3)
    lost, drawn, won_games = counts.tolist()
    return lost, drawn, won_games


def _summary(counts: Sequence[float], games: int) -> MatchScore:
    """From counts of equally spaced scores of ``games`` games each.

    If all results are alike, they have no variance, and 6-0 would be an infinite difference with certainty.
    Then one imaginary result, spread evenly over all possible ones, is added.  Where an end of the score's
    interval lies outside 0 to 1, the interval is taken on the scale of log odds instead.
    """
    if any(count < 0 or not isfinite(count) for count in counts):
        raise ValueError(f"counts must be finite and not negative: {list(counts)}")
    units = float(sum(counts))
    if units == 0:
        return MatchScore(0.0, nan, nan, nan, nan, nan, nan, nan, nan, 0.5)
    used = [float(count) for count in counts]
    if sum(count > 0 for count in used) == 1:
        used = [count + 1 / len(used) for count in used]
    total = sum(used)
    scores = [index / (len(used) - 1) for index in range(len(used))]
    score = sum(count * value for count, value in zip(used, scores, strict=True)) / total
    variance = sum(count * (value - score) ** 2 for count, value in zip(used, scores, strict=True)) / total
    error = sqrt(variance / total)
    elo = _elo(score)
    reach = NORMAL_QUANTILE * error
    if score - reach > 0 and score + reach < 1:
        low, high = _elo(score - reach), _elo(score + reach)
    else:
        reach_elo = ELO * reach / (score * (1 - score))
        low, high = elo - reach_elo, elo + reach_elo
    # The mean of two games varies half as much as one.
    per_score = NORMALIZED_ELO_PER_DEVIATION / sqrt(games * variance)
    normalized = (score - 0.5) * per_score
    return MatchScore(
        units=units,
        score=score,
        standard_error=error,
        elo=elo,
        elo_low=low,
        elo_high=high,
        normalized_elo=normalized,
        normalized_low=normalized - reach * per_score,
        normalized_high=normalized + reach * per_score,
        superiority=(1 + erf((score - 0.5) / (error * sqrt(2)))) / 2,
    )


def _elo(score: float) -> float:
    """The logistic Elo difference of an expected score between 0 and 1."""
    return 400 * log10(score / (1 - score))
