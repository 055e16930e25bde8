"""The sequential probability ratio test: playing on until one of two claims about a bot is decided.

This is the generalised test that fishtest and fastchess use for chess engines.  Sources: Michel Van den
Bergh, "A practical introduction to the GSPRT" and "Comments on normalized Elo" (cantate.be/Fishtest), and the
classic, Wald 1945, "Sequential tests of statistical hypotheses".  Pure arithmetic without arrays: there are
five counts only.
"""

from collections.abc import Sequence
from math import isfinite, log, sqrt
from typing import Literal

Model = Literal["logistic", "normalized"]
"""The meaning of an Elo number: ``logistic`` fixes the expected score, 1 / (1 + 10 ** (-elo / 400));
``normalized`` fixes the expected score's distance from one half in standard deviations of one game's
score."""

NORMALIZED_ELO_PER_DEVIATION = 800 / log(10)
"""Normalized Elo of a score that lies one standard deviation of a game above one half.  Chosen by Van den
Bergh so that both kinds of Elo agree for small differences without draws: one game's deviation is then 1/2,
and half of 800 / ln 10 is the slope of logistic Elo."""

ZERO_COUNT = 1e-3
"""Replaces a count of zero, as in fishtest and fastchess, so that every expected score is possible."""

NEWTON_STEPS = 200
"""Far more than are needed (under 20); each halves the interval at least."""

REWEIGHTINGS = 200
"""For normalized Elo; about 10 are needed."""


def bounds(alpha: float, beta: float) -> tuple[float, float]:
    """Lower and upper bound of the log-likelihood ratio (Wald 1945).

    At or below the lower one the test ends with ``elo0``, at or above the upper one with ``elo1``.  ``alpha``
    is the chance of ending with ``elo1`` although ``elo0`` is true, ``beta`` that of the opposite error.
    Raises ValueError unless both lie between 0 and 1 and together below 1.
    """
    if not (0 < alpha < 1 and 0 < beta < 1 and alpha + beta < 1):
        raise ValueError(f"alpha {alpha} and beta {beta} must be above 0 and together below 1")
    return log(beta / (1 - alpha)), log((1 - beta) / alpha)


def log_likelihood_ratio(
    pairs: Sequence[float], elo0: float, elo1: float, *, model: Model = "logistic"
) -> float:
    """Return the natural logarithm of the likelihood ratio of ``elo1`` to ``elo0``, given pairs of games.

    ``pairs`` are five counts: how many pairs of games gave the player 0, 0.5, 1, 1.5 and 2 points; they need
    not be whole numbers.  Under each claim the five probabilities are the most likely ones that have the
    claimed strength, so that nothing need be known of draws, or of openings that favour a side.  0.0 without
    any evidence.  Raises ValueError for counts that are negative, not finite, or not five.
    """
    if len(pairs) != 5:
        raise ValueError(f"five counts are needed, not {len(pairs)}")
    return _ratio(pairs, 2, elo0, elo1, model)


def log_likelihood_ratio_of_games(
    games: Sequence[float], elo0: float, elo1: float, *, model: Model = "logistic"
) -> float:
    """Return the ratio from single games; ``games`` are the counts of 0, 0.5 and 1 point (lost, drawn, won).

    Only right if games are independent; two games from one opening are not.
    """
    if len(games) != 3:
        raise ValueError(f"three counts are needed, not {len(games)}")
    return _ratio(games, 1, elo0, elo1, model)


def approximate_log_likelihood_ratio(pairs: Sequence[float], elo0: float, elo1: float) -> float:
    """The ratio if the mean score were normally distributed: simpler, and close after a few hundred pairs.

    With mean m and variance v of a pair's score (from 0 to 1), and expected scores s0 and s1:
    n (s1 - s0) (2 m - s0 - s1) / 2 v.  Logistic Elo.  Arguments and errors as in ``log_likelihood_ratio``.
    """
    if len(pairs) != 5:
        raise ValueError(f"five counts are needed, not {len(pairs)}")
    total, shares = _shares(pairs)
    if not total:
        return 0.0
    scores = [index / 4 for index in range(5)]
    mean, variance = _moments(scores, shares)
    score0, score1 = expected_score(elo0), expected_score(elo1)
    ratio: float = total * (score1 - score0) * (2 * mean - score0 - score1) / (2 * variance)
    return ratio


def expected_score(elo: float) -> float:
    """The share of points that a player this much stronger (logistic Elo) is expected to get."""
    share: float = 1 / (1 + 10.0 ** (-elo / 400))
    return share


def _ratio(counts: Sequence[float], games: int, elo0: float, elo1: float, model: Model) -> float:
    """The ratio from counts of equally spaced scores, each of ``games`` games."""
    total, shares = _shares(counts)
    if not total:
        return 0.0
    scores = [index / (len(counts) - 1) for index in range(len(counts))]
    if model == "logistic":
        claimed = [_tilt_to_mean(scores, shares, expected_score(elo)) for elo in (elo0, elo1)]
    elif model == "normalized":
        # The deviation of the mean of two games is smaller by the square root of two.
        deviations = [sqrt(games) * elo / NORMALIZED_ELO_PER_DEVIATION for elo in (elo0, elo1)]
        claimed = [_tilt_to_deviation(scores, shares, deviation) for deviation in deviations]
    else:
        raise ValueError(f"no model {model!r}; there are logistic, normalized")
    # Each claimed probability is a share divided by a tilt.
    before, after = claimed
    return total * sum(
        share * log(tilt0 / tilt1) for share, tilt0, tilt1 in zip(shares, before, after, strict=True)
    )


def _shares(counts: Sequence[float]) -> tuple[float, list[float]]:
    """Number of results and the share of each, none of them zero; (0, []) if there are none at all."""
    if any(count < 0 or not isfinite(count) for count in counts):
        raise ValueError(f"counts must be finite and not negative: {list(counts)}")
    if not any(counts):
        return 0.0, []
    filled = [float(count) or ZERO_COUNT for count in counts]
    total = sum(filled)
    return total, [count / total for count in filled]


def _moments(scores: Sequence[float], shares: Sequence[float]) -> tuple[float, float]:
    """Mean and variance."""
    mean = sum(score * share for score, share in zip(scores, shares, strict=True))
    return mean, sum(share * (score - mean) ** 2 for score, share in zip(scores, shares, strict=True))


def _tilt_to_mean(scores: Sequence[float], shares: Sequence[float], mean: float) -> list[float]:
    """Return the divisors of the shares that give the most likely probabilities with this mean.

    Van den Bergh, "A practical introduction to the GSPRT", proposition 1.1: 1 + x (score - mean).
    """
    excess = [score - mean for score in scores]
    multiplier = _multiplier(excess, shares)
    return [1 + multiplier * value for value in excess]


def _tilt_to_deviation(scores: Sequence[float], shares: Sequence[float], deviation: float) -> list[float]:
    """Return the divisors for a given (mean - 1/2) / standard deviation, instead of a given mean.

    "Comments on normalized Elo", section 4.1: the condition is made linear around the last answer, starting
    from equal probabilities, until that changes nothing.
    """
    probabilities = [1 / len(scores)] * len(scores)
    tilts = [1.0] * len(scores)
    for _ in range(REWEIGHTINGS):
        mean, variance = _moments(scores, probabilities)
        spread = sqrt(variance)
        excess = [
            score - 0.5 - deviation * spread * (1 + ((score - mean) / spread) ** 2) / 2 for score in scores
        ]
        multiplier = _multiplier(excess, shares)
        tilts = [1 + multiplier * value for value in excess]
        wanted = [share / tilt for share, tilt in zip(shares, tilts, strict=True)]
        change = max(abs(new - old) for new, old in zip(wanted, probabilities, strict=True))
        if change < 1e-12:
            break
        probabilities = wanted
    return tilts


def _multiplier(excess: Sequence[float], shares: Sequence[float]) -> float:
    """The x with sum(share * excess / (1 + x * excess)) = 0 that leaves every divisor positive.

    The sum falls from plus to minus infinity between -1 / max(excess) and -1 / min(excess).  Newton's method;
    whenever it would leave the interval that is known to hold the answer, that is halved instead.
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
        slope = sum(share * term * term for share, term in zip(shares, terms, strict=True))
        step = height / slope
        nearer = x + step
        if not low < nearer < high:
            nearer = (low + high) / 2
        if nearer == x or abs(nearer - x) <= 1e-15 * (abs(x) + 1e-3):
            break
        x = nearer
    return x
