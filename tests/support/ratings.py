"""Recorder of the intervals that are computed."""

import pytest

from tournaments.analysis.ratings import profile, ratings
from tournaments.analysis.ratings.bradley_terry import Array, Likelihood


def recorded_intervals(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that receives, for each rating, the numbers of intervals that are computed.

    These are two numbers: of the advantage, and of bots.
    """
    computed: list[int] = []

    def ends(model: Likelihood, peak: Array, contrasts: Array, drops: Array) -> tuple[Array, Array]:
        computed.append(len(contrasts))
        return profile.ends(model, peak, contrasts, drops)

    monkeypatch.setattr(ratings, "ends", ends)
    return computed
