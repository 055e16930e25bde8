"""The values of the normal distribution and of Student's that intervals need.

From ``scipy.special``: ``scipy.stats`` has the same under nicer names, and takes a second to import.  This
takes a quarter of one, which only what rates has to wait for.
"""

from statistics import NormalDist

import numpy as np
import numpy.typing as npt

LEVEL = 0.975
"""Below it lies all but the upper 2.5% that a 95% interval leaves out."""

NORMAL_QUANTILE = NormalDist().inv_cdf(LEVEL)
"""The half width of a 95% interval in standard deviations, 1.96."""


def normal_share(deviations: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Which share of a standard normal distribution lies below each number; the same shape."""
    from scipy.special import ndtr

    return np.asarray(ndtr(deviations), dtype=np.float64)


def student_quantile(freedom: float) -> float:
    """97.5% of Student's t distribution lie below; ``freedom`` are its degrees of freedom."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, LEVEL))
