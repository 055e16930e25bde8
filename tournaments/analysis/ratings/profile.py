"""Profile likelihoods: the range of a number within which it does not contradict the results.

A Wald interval (estimate plus or minus two standard errors) fails where results are one-sided, 6-0 for
example; the profile follows the likelihood itself.  Source of the search: Venzon and Moolgavkar 1988, "A
method for computing profile-likelihood-based confidence intervals".
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from tournaments.analysis.ratings.bradley_terry import (
    EXACT,
    LONGEST_STEP,
    STEPS,
    Array,
    Likelihood,
    Peak,
    solve,
)

Indices = npt.NDArray[np.intp]

CONTRASTS_AT_ONCE = 16
"""Number of contrasts computed together.  Each needs some arrays of (bots, bots); those of 16 stay in the
processor's caches.  For 200 bots this takes a third of the time of all together, and 1/15 of the memory."""
UNDAMPED_STEPS = 25
"""Steps after which, each time, the step length is halved: one search in 1,500 random tables went to and fro
between two points."""


def ends(model: Likelihood, peak: Array, contrasts: Array, drops: Array) -> tuple[Array, Array]:
    """Return the least and the greatest value of each contrast within a drop of the log-likelihood.

    In this range the log-likelihood is lower than at its peak by no more than the drop.

    ``contrasts`` is (contrasts, parameters); a contrast's value is its product with the parameters.
    ``drops`` is (contrasts,).  A contrast of zeros has both ends at 0.
    """
    count = len(contrasts)
    live = np.flatnonzero(np.abs(contrasts).max(axis=1, initial=0.0))
    low, high = np.zeros(count), np.zeros(count)
    if len(live):
        both = np.concatenate([-contrasts[live], contrasts[live]])
        farthest = _farthest(model, peak, both, np.concatenate([drops[live], drops[live]]))
        values = np.einsum("cp,cp->c", farthest, both)
        low[live], high[live] = -values[: len(live)], values[len(live) :]
    return low, high


def _farthest(model: Likelihood, peak: Array, contrasts: Array, drops: Array) -> Array:
    """Return the points at which each contrast is greatest within the allowed drop of the likelihood.

    At the answer, slope + multiplier * contrast = 0.  Each step takes the curve for a parabola and solves
    that; of its two solutions it takes the one towards greater values.
    """
    target = model.at(peak[None]).height[0] - drops

    def multiplier(active: Indices, _points: Array, around: Peak, to_peak: Array, reach: Array) -> Array:
        above = around.height - target[active] + np.einsum("cp,cp->c", around.slope, to_peak) / 2
        return np.asarray(np.sqrt(np.maximum(2 * above, 0.0) / reach))

    return _search(model, peak, contrasts, multiplier)


def _search(model: Likelihood, peak: Array, contrasts: Array, multiplier: Callable[..., Array]) -> Array:
    """Return the points, one for each contrast, at which Newton steps with a Lagrange multiplier end.

    ``multiplier`` is a function of the indices of the contrasts whose search goes on, of their points, the
    parabola around these, the steps to its peak, and the reach of a step along each contrast.
    """
    points = np.repeat(peak[None], len(contrasts), axis=0)
    for active in _parts(len(contrasts)):
        for number in range(STEPS):
            around = model.at(points[active])
            solved = solve(around.curvature, np.stack([around.slope, contrasts[active]], axis=2))
            to_peak, along = solved[:, :, 0], solved[:, :, 1]
            reach = np.einsum("cp,cp->c", contrasts[active], along)
            step = to_peak + multiplier(active, points[active], around, to_peak, reach)[:, None] * along
            length = np.abs(step).max(axis=1)
            step *= np.minimum(1.0, LONGEST_STEP / np.maximum(length, EXACT))[:, None]
            if number >= UNDAMPED_STEPS:
                step *= 0.5 ** (1 + (number - UNDAMPED_STEPS) // UNDAMPED_STEPS)
            points[active] += step
            active = active[length > 1e3 * EXACT]
            if not len(active):
                break
    return points


def _parts(count: int) -> list[Indices]:
    """Return the indices below ``count`` in parts that are computed at once."""
    return np.array_split(np.arange(count), -(-count // CONTRASTS_AT_ONCE) or 1)


def signed_roots(model: Likelihood, peak: Array, contrasts: Array) -> Array:
    """Return the strength of the evidence that each contrast is above zero, in standard deviations.

    The signed square root of twice the log-likelihood lost when the contrast is held at zero; (contrasts,).
    """

    def multiplier(active: Indices, points: Array, _around: Peak, to_peak: Array, reach: Array) -> Array:
        return np.asarray(-np.einsum("cp,cp->c", contrasts[active], points + to_peak) / reach)

    points = _search(model, peak, contrasts, multiplier)
    heights = np.concatenate([model.at(points[part]).height for part in _parts(len(points))])
    lost = model.at(peak[None]).height[0] - heights
    roots: Array = np.sign(contrasts @ peak) * np.sqrt(np.maximum(2 * lost, 0.0))
    return roots
