"""Values of the normal, Student's and the beta distribution that intervals need.

Most come from ``scipy.special``, which takes half a second to import: only when a value is needed.  Student's
quantile, which each table of ratings needs, does without it.  (``scipy.stats`` has all of them under nicer
names, and takes a second.)
"""

import math
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

LEVEL = 0.975
"""The share below the upper end of a 95% interval: all but the upper 2.5%."""

NORMAL_QUANTILE = NormalDist().inv_cdf(LEVEL)
"""The half width of a 95% interval in standard deviations, 1.96."""

LARGE_FREEDOM = 1000.0
"""Minimum degrees of freedom for which the expansion at infinity gives Student's quantile to 15 digits."""

QUADRATURE_POINTS = 40
"""They give the integral below Student's quantile to 11 digits for 1 to 1000 degrees of freedom."""


def normal_share(deviations: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the share of a standard normal distribution that lies below each number; the same shape."""
    from scipy.special import ndtr

    return np.asarray(ndtr(deviations), dtype=np.float64)


def student_quantile(freedom: float) -> float:
    """Return the 97.5% quantile of Student's t distribution with ``freedom`` (at least 1) degrees of freedom.

    Below ``LARGE_FREEDOM`` it is found by Newton's method from the density and its integral by Gauss and
    Legendre: Abramowitz and Stegun 1964, 26.7.1 and 25.4.29.
    """
    if freedom >= LARGE_FREEDOM:
        return _student_quantile_of_large(freedom)
    points, weights = np.polynomial.legendre.leggauss(QUADRATURE_POINTS)
    log_peak = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2) - math.log(freedom * math.pi) / 2

    def density(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return np.exp(log_peak - (freedom + 1) / 2 * np.log1p(x * x / freedom))

    # From below, where the integral is concave, each step is too short and none is too long.
    quantile, step = NORMAL_QUANTILE, 1.0
    while step > 1e-13 * quantile:
        share = 0.5 + quantile / 2 * float(weights @ density(quantile / 2 * (points + 1)))
        step = (LEVEL - share) / float(density(np.array(quantile)))
        quantile += step
    return quantile


def _student_quantile_of_large(freedom: float) -> float:
    """Return the quantile by its expansion at infinity: Abramowitz and Stegun 1964, 26.7.5."""
    x = NORMAL_QUANTILE
    terms = (
        x,
        (x**3 + x) / 4,
        (5 * x**5 + 16 * x**3 + 3 * x) / 96,
        (3 * x**7 + 19 * x**5 + 17 * x**3 - 15 * x) / 384,
        (79 * x**9 + 776 * x**7 + 1482 * x**5 - 1920 * x**3 - 945 * x) / 92160,
    )
    return sum(term / freedom**power for power, term in enumerate(terms))


def beta_quantiles(one: float, other: float, level: float = LEVEL) -> tuple[float, float]:
    """Return where 1 - ``level`` and ``level`` of a beta distribution with these shape parameters lie."""
    from scipy.special import betaincinv

    low, high = betaincinv(one, other, [1 - level, level])
    return float(low), float(high)


def beta_share(one: float, other: float, value: float) -> float:
    """Return the share of a beta distribution that lies below a value."""
    from scipy.special import betainc

    return float(betainc(one, other, value))
