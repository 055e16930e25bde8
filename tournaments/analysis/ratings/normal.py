"""Values of the normal, Student's and the beta distribution that intervals need.

They come from ``scipy.special``: ``scipy.stats`` has the same under nicer names, but takes a second to
import.  ``scipy.special`` takes a quarter of one and is imported only when a value is needed.
"""

from statistics import NormalDist

import numpy as np
import numpy.typing as npt

LEVEL = 0.975
"""The share below the upper end of a 95% interval: all but the upper 2.5%."""

NORMAL_QUANTILE = NormalDist().inv_cdf(LEVEL)
"""The half width of a 95% interval in standard deviations, 1.96."""

LARGE_FREEDOM = 1000.0
"""Minimum degrees of freedom for which the expansion at infinity gives Student's quantile to 15 digits."""


def normal_share(deviations: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the share of a standard normal distribution that lies below each number; the same shape."""
    from scipy.special import ndtr

    return np.asarray(ndtr(deviations), dtype=np.float64)


def student_quantile(freedom: float) -> float:
    """Return the 97.5% quantile of Student's t distribution with ``freedom`` degrees of freedom."""
    if freedom >= LARGE_FREEDOM:
        return _student_quantile_of_large(freedom)
    from scipy.special import stdtrit

    return float(stdtrit(freedom, LEVEL))


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
