"""Strengths whose differences are expected scores over both sides, whatever draws and advantage there are."""

from itertools import combinations

import numpy as np
import pytest

from tests.test_evidence import game
from tournaments.analysis.evidence import evidence_of
from tournaments.analysis.ratings.bradley_terry import Array, BradleyTerry, Results
from tournaments.analysis.ratings.ratings import ELO, rate
from tournaments.analysis.ratings.score_scale import ScoreScale


def scale_of(nu: float, advantage: float) -> ScoreScale:
    """A scale with these chances, whatever its games are."""
    once = np.array([[0.0, 1.0], [1.0, 0.0]])
    return ScoreScale(BradleyTerry(Results(once, once, once)), np.array([0.0, 0.0, advantage, np.log(nu)]))


@pytest.mark.parametrize("advantage", [0.0, 0.3, -2.0, 12.0])
@pytest.mark.parametrize("nu", [0.01, 0.5, 2.0, 40.0])
@pytest.mark.parametrize("difference", [0.0, 0.2, -1.5, 9.0])
def test_a_lead_gives_the_expected_score(difference: float, nu: float, advantage: float) -> None:
    lead = scale_of(nu, advantage).lead(difference)
    scores = []
    for ahead in (lead + advantage, lead - advantage):
        win, loss = np.exp(ahead / 2), np.exp(-ahead / 2)
        scores.append((win + nu / 2) / (win + loss + nu))
    assert sum(scores) / 2 == pytest.approx(1 / (1 + np.exp(-difference)), rel=1e-12)


def test_a_rating_is_what_the_score_says() -> None:
    """Of 80 games with draws and an advantage; without imaginary results, both are the same number."""
    results: list[tuple[str, str, int | None, int]] = [
        *(("one", "two", winner, count) for winner, count in ((0, 20), (None, 10), (1, 10))),
        *(("two", "one", winner, count) for winner, count in ((0, 14), (None, 6), (1, 20))),
    ]
    games = [game(one, other, winner) for one, other, winner, count in results for _ in range(count)]
    found = rate(evidence_of(("one", "two"), games), ghosts=0.0)
    score = (20 + 5 + 20 + 3) / 80
    assert found.rating[0] - found.rating[1] == pytest.approx(ELO * np.log(score / (1 - score)), abs=1e-6)


def random_results(random: np.random.Generator, players: int, games: int, spread: float) -> Results:
    """A complete round robin without draws, with a strong advantage of the first move."""
    strengths = random.normal(0.0, spread, players)
    ahead = strengths[:, None] - strengths[None] + random.choice([0.0, 2.0, 5.0, 10.0])
    played = games * (1 - np.eye(players))
    wins = random.binomial(played.astype(int), 1 / (1 + np.exp(-ahead))).astype(np.float64)
    return Results(wins, np.zeros_like(wins), played - wins)


def slope_at_peak(results: Results) -> tuple[Array, ScoreScale, Array]:
    model = BradleyTerry(results)
    scale = ScoreScale(model, model.peak())
    point = scale.peak()
    return scale.at(point[None]).slope[0], scale, point


@pytest.mark.parametrize("spread", [1.0, 6.0])
def test_every_search_arrives(spread: float) -> None:
    """Also where bots are far apart and whoever begins wins: one field in fifty was said to have no peak."""
    random = np.random.default_rng(9)
    for _ in range(150):
        results = random_results(random, int(random.integers(2, 8)), int(random.integers(1, 60)), spread)
        slope, scale, point = slope_at_peak(results)
        assert np.abs(slope).max() < 1e-3
        for one, other in combinations(range(len(point)), 2):
            aside = point.copy()
            aside[one] += 0.01
            aside[other] -= 0.01
            assert scale.at(aside[None]).height[0] < scale.at(point[None]).height[0] + 1e-9


def test_slopes_are_differences() -> None:
    random = np.random.default_rng(5)
    wins, drawn, losses = random.integers(0, 5, (3, 4, 4)) * (1.0 - np.eye(4))
    model = BradleyTerry(Results(wins, drawn, losses))
    scale = ScoreScale(model, model.peak())
    point = random.normal(0.0, 1.0, 4)
    around, small = scale.at(point[None]), 1e-5
    for index in range(4):
        aside = np.zeros(4)
        aside[index] = small
        up, down = scale.at((point + aside)[None]), scale.at((point - aside)[None])
        slope = (up.height[0] - down.height[0]) / (2 * small)
        assert around.slope[0, index] == pytest.approx(slope, abs=1e-6)
