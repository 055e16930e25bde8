"""Ratings of all bots from all games, with intervals.

One Bradley-Terry model (bradley_terry.py) for the whole tournament; intervals from its profile (profile.py),
widened or narrowed by the correlation of the games of a pair (dispersion.py).  docs/statistics.md explains
all of it and contains the measured coverage.
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from tournaments.analysis.evidence import Evidence
from tournaments.analysis.ratings.bradley_terry import GHOST_RESULTS, Array, BradleyTerry, Results, solve
from tournaments.analysis.ratings.dispersion import PAIRS_FOR_INDEPENDENCE, variance_factors
from tournaments.analysis.ratings.normal import normal_share, student_quantile
from tournaments.analysis.ratings.profile import Indices, ends, signed_roots
from tournaments.analysis.ratings.score_scale import ScoreScale
from tournaments.analysis.standing import Estimate

ELO = 400 / np.log(10)
"""Elo per unit of strength: 400 Elo are odds of ten to one (Elo 1978)."""

MOST_PROFILED = 50
"""Maximum number of bots for which all pairs are compared by their likelihoods.  For 50 bots this takes two
seconds; the time grows with the fourth power of their number."""


@dataclass(frozen=True)
class Ratings:
    """Ratings of all bots and their uncertainty, in Elo; arrays are in the order of ``evidence.names``."""

    evidence: Evidence
    rating: Array
    low: Array
    """Lower end of the 95% interval; minus infinity if the interval was not computed."""
    high: Array
    """Upper end; infinity if the interval was not computed."""
    games: Array
    """Different games that each rating rests on."""
    covariance: Array
    """Of the ratings, (bots, bots): the variance of a difference is cov[i, i] + cov[j, j] - 2 cov[i, j].  An
    approximation that is good for balanced results; to compare two bots use ``likelihood_of_superiority``."""
    advantage: Estimate
    """Advantage of moving first, from the expected score of equal bots; zeros if it is not identifiable."""
    model: ScoreScale = field(repr=False)
    point: Array = field(repr=False)
    """The most likely strengths."""

    def likelihood_of_superiority(self, one: int, other: int) -> float:
        """Return the probability that bot ``one`` is stronger than bot ``other``, given these games.

        It is computed from the likelihood that is lost if both are assumed to be equal.
        """
        if one == other or len(self.rating) <= MOST_PROFILED:
            return float(self.superiority[one, other])
        others = np.delete(np.arange(len(self.rating)), one)
        is_other = others == other
        contrasts = self._differences(np.full(len(others), one), others)
        # With all contrasts of ``one``: the dispersion of a single pair is uncertain, and shrunk to theirs.
        factors = variance_factors(self.model, self.point, self.evidence, contrasts)[is_other]
        return float(self._chances(contrasts[is_other], factors)[0])

    @cached_property
    def superiority(self) -> Array:
        """All likelihoods of superiority: [i, j] that i is stronger than j; (bots, bots).

        The diagonal is 0.5.  With more bots than ``MOST_PROFILED`` they come from the covariance, which
        differs by some percent where there are few games.
        """
        players = len(self.rating)
        if players > MOST_PROFILED:
            variance = np.diag(self.covariance)
            spread = np.sqrt(np.maximum(variance[:, None] + variance - 2 * self.covariance, 0.0))
            lead = self.rating[:, None] - self.rating
            return normal_share(np.divide(lead, spread, out=np.zeros_like(lead), where=spread > 0))
        one, other = np.triu_indices(players, 1)
        table = np.full((players, players), 0.5)
        if len(one):
            contrasts = self._differences(one, other)
            factors = variance_factors(self.model, self.point, self.evidence, contrasts)
            chance = self._chances(contrasts, factors)
            table[one, other] = chance
            table[other, one] = 1 - chance
        return table

    def _differences(self, one: Indices, other: Indices) -> Array:
        """Return the contrasts of pairs of different bots: the strength of one minus the other's."""
        contrasts = np.zeros((len(one), self.model.parameters))
        contrasts[np.arange(len(one)), one] = 1.0
        contrasts[np.arange(len(one)), other] = -1.0
        return contrasts

    def _chances(self, contrasts: Array, factors: Array) -> Array:
        """Return the probability that each contrast is above zero, from the likelihood."""
        return normal_share(signed_roots(self.model, self.point, contrasts) / np.sqrt(factors))


def results_of(evidence: Evidence) -> Results:
    """Return the evidence as sums."""
    players = len(evidence.names)
    sums = []
    for points in (1.0, 0.5, 0.0):
        rows = evidence.points == points
        place = evidence.first[rows] * players + evidence.second[rows]
        sums.append(np.bincount(place, evidence.weight[rows], players * players).astype(np.float64))
    return Results(*(sum_.reshape(players, players) for sum_ in sums))


def rate(
    evidence: Evidence,
    anchor: int | None = None,
    anchor_rating: float = 0.0,
    *,
    ghosts: float = GHOST_RESULTS,
    widening: float = 1.0,
    intervals: Collection[int] | None = None,
) -> Ratings:
    """Rate all bots.

    Args:
        evidence: The games.
        anchor: Index of a bot with a fixed rating.  All ratings and intervals are then of the difference to
            it, and its own interval has no width.  None: the average over the bots that have games is 0.
        anchor_rating: Rating of the anchor, in Elo.
        ghosts: Imaginary wins, and as many losses, of each bot; 0 gives plain maximum likelihood.
        widening: Factor by which the intervals of the ratings become wider.
        intervals: Indices of the bots whose intervals are computed, which takes nearly all of the time; None
            is all.  An interval is the same for every choice, up to rounding (1e-11 Elo).

    Raises:
        ValueError: ``ghosts`` is 0, and the likelihood has no peak.

    """
    players = len(evidence.names)
    chances = BradleyTerry(results_of(evidence), ghosts)
    fitted = chances.peak()
    of_advantage = np.eye(chances.parameters)[players : players + (chances.advantage is not None)]
    factors = variance_factors(chances, fitted, evidence, of_advantage)
    least, most = ends(chances, fitted, of_advantage, factors * quantile(evidence) / 2)
    model = ScoreScale(chances, fitted)
    peak = model.peak()
    contrasts = _contrasts(evidence, anchor)
    factors = variance_factors(model, peak, evidence, contrasts)
    needed = np.arange(players) if intervals is None else np.array(sorted(set(intervals)), dtype=np.intp)
    drops = factors * widening**2 * quantile(evidence) / 2
    low, high = np.full(players, -np.inf), np.full(players, np.inf)
    low[needed], high[needed] = ends(model, peak, contrasts[needed], drops[needed])
    shift = anchor_rating if anchor is not None else 0.0
    spread = np.sqrt(factors)
    covariance = contrasts @ solve(model.at(peak[None]).curvature[0], contrasts.T)
    rating = contrasts @ peak
    advantage = Estimate(0.0, 0.0, 0.0)
    if chances.advantage is not None:
        shares = (chances.first_share(x, fitted) for x in (fitted[players], least[0], most[0]))
        advantage = Estimate(*(float(ELO * np.log(share / (1 - share))) for share in shares))
    return Ratings(
        evidence=evidence,
        rating=ELO * rating + shift,
        low=ELO * low + shift,
        high=ELO * high + shift,
        games=evidence.unique.astype(np.float64),
        covariance=ELO**2 * covariance * np.outer(spread, spread),
        advantage=advantage,
        model=model,
        point=peak,
    )


def quantile(evidence: Evidence) -> float:
    """Return twice the drop of the log-likelihood that is allowed at the ends of a 95% interval.

    The square of Student's quantile, because the variance is known from the games themselves.
    """
    clusters = float(evidence.cluster_weight.sum())
    return float(student_quantile(2 * (clusters + PAIRS_FOR_INDEPENDENCE)) ** 2)


def _contrasts(evidence: Evidence, anchor: int | None) -> Array:
    """Return ratings as sums of strengths, (bots, bots): minus the anchor's strength, or the average."""
    players = len(evidence.names)
    contrasts = np.eye(players)
    if anchor is not None:
        contrasts[:, anchor] -= 1.0
    else:
        known = evidence.unique > 0 if evidence.unique.any() else np.ones(players, dtype=bool)
        contrasts -= known / max(int(known.sum()), 1)
    return contrasts
