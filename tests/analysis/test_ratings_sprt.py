"""The sequential test: the numbers of fastchess, and the promised share of errors."""

import tomllib
from collections.abc import Sequence
from math import isfinite, log, nextafter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from tests.support.paths import TEST_DATA
from tournaments.schedule.formats.sprt_statistics import (
    ZERO_COUNT,
    bounds,
    expected_score,
    log_likelihood_ratio,
)

CASES = tomllib.loads((TEST_DATA / "ratings" / "sprt.toml").read_text())


@pytest.mark.parametrize("case", CASES["pairs"], ids=lambda case: str(case["counts"]))
def test_pairs(case: dict[str, Any]) -> None:
    assert round(log_likelihood_ratio(case["counts"], *case["elo"]), 2) == case["ratio"]


@pytest.mark.parametrize("case", CASES["bounds"], ids=lambda case: str(case["errors"]))
def test_bounds(case: dict[str, Any]) -> None:
    assert [round(bound, 2) for bound in bounds(*case["errors"])] == case["bounds"]


@pytest.mark.parametrize("errors", [(0.0, 0.1), (0.1, 1.0), (0.5, 0.5), (-0.1, 0.1)])
def test_impossible_errors(errors: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="below 1"):
        bounds(*errors)


@given(st.lists(st.integers(0, 100), min_size=5, max_size=5), st.floats(-50, 50), st.floats(1, 50))
def test_exchanging_players_changes_the_sign(counts: list[int], elo: float, more: float) -> None:
    ratio = log_likelihood_ratio(counts, elo, elo + more)
    assert isfinite(ratio)
    mirrored = log_likelihood_ratio(counts[::-1], -elo - more, -elo)
    exchanged = log_likelihood_ratio(counts, elo + more, elo)
    assert ratio == pytest.approx(-mirrored, rel=1e-6, abs=1e-6) == pytest.approx(-exchanged, abs=1e-9)


@pytest.mark.parametrize(
    ("counts", "elo"),
    # In the first three, Newton's first step for 0 Elo ends beside a pole: pairs of 0.5 points are as many as
    # three times those of 1.5 points plus eight times those of 2 points, or the other way round.
    [
        ((0, 11, 4, 1, 1), 0),
        ((2, 2, 0, 22, 0), 0),
        ((0, 66, 1, 6, 6), -5),
        ((0, 0, 0, 0, 7), 20),
        ((3, 9, 8, 7, 5), -4),
    ],
)
def test_the_ratio_is_that_of_the_likeliest_probabilities(counts: tuple[int, ...], elo: float) -> None:
    likelihoods = [greatest_log_likelihood(counts, expected_score(bound)) for bound in (elo, elo + 5)]
    assert log_likelihood_ratio(counts, elo, elo + 5) == pytest.approx(
        likelihoods[1] - likelihoods[0], abs=1e-6
    )


def greatest_log_likelihood(counts: Sequence[int], mean: float) -> float:
    """Return the greatest log-likelihood of probabilities with this mean score, by SciPy's Brent's method."""
    filled = [count or ZERO_COUNT for count in counts]
    excess = [index / 4 - mean for index in range(5)]

    def error(multiplier: float) -> float:
        return sum(
            count * value / (1 + multiplier * value) for count, value in zip(filled, excess, strict=True)
        )

    ends = [-1 / max(excess), -1 / min(excess)]
    multiplier = brentq(error, nextafter(ends[0], 0), nextafter(ends[1], 0), xtol=1e-15)
    return -sum(count * log(1 + multiplier * value) for count, value in zip(filled, excess, strict=True))


def test_no_evidence_and_draws_alone() -> None:
    assert log_likelihood_ratio((0, 0, 0, 0, 0), 0, 5) == 0.0
    # Draws are never evidence against equality.
    assert log_likelihood_ratio((0, 0, 100, 0, 0), 0, 5) < 0


@pytest.mark.parametrize("counts", [(1, 1), (1, 1, 1, 1, -1), (1, 1, 1, 1, float("inf"))])
def test_wrong_counts(counts: Sequence[float]) -> None:
    with pytest.raises(ValueError, match="counts"):
        log_likelihood_ratio(counts, 0, 5)


MATCHES = 300
ERROR = 0.05


@pytest.mark.slow
@pytest.mark.parametrize("truth", [0.0, 40.0])
def test_errors_are_as_rare_as_promised(truth: float) -> None:
    random = np.random.default_rng(9)
    elo0, elo1 = 0.0, 40.0
    lower, upper = bounds(ERROR, ERROR)
    wrong = 0
    # Three of four pairs have two decided games, one has a draw; all have the true expected score.
    score = 1 / (1 + 10 ** (-truth / 400))
    chances = 0.75 * np.array([(1 - score) ** 2, 0.0, 2 * score * (1 - score), 0.0, score**2])
    chances[1] += 0.25 * (1.5 - 2 * score)
    chances[3] += 0.25 * (2 * score - 0.5)
    assert chances @ np.arange(5) / 4 == pytest.approx(score)
    for _ in range(MATCHES):
        counts = [0] * 5
        # No match comes near this many pairs.
        for outcome in random.choice(5, 5000, p=chances).tolist():
            counts[outcome] += 1
            ratio = log_likelihood_ratio(counts, elo0, elo1)
            if ratio <= lower or ratio >= upper:
                break
        else:
            pytest.fail("no decision")
        wrong += (ratio >= upper) if truth == elo0 else (ratio <= lower)
    # Three standard errors of the share that is allowed.
    assert wrong / MATCHES <= ERROR + 3 * (ERROR * (1 - ERROR) / MATCHES) ** 0.5
    assert wrong > 0
