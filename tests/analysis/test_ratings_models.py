"""The likelihoods of ratings: published fits, derivatives, peaks, and the scale of expected scores."""

import tomllib
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from tests.analysis.games import game
from tests.support.paths import TEST_DATA
from tournaments.analysis.evidence import evidence_of
from tournaments.analysis.ratings.bradley_terry import Array, BradleyTerry, Likelihood, Results
from tournaments.analysis.ratings.ratings import ELO, rate
from tournaments.analysis.ratings.score_scale import ScoreScale, leads

DATA = TEST_DATA / "ratings"


def published(name: str) -> dict[str, Any]:
    return tomllib.loads((DATA / f"{name}.toml").read_text())


def covariance(model: BradleyTerry, point: Array) -> Array:
    found: Array = np.linalg.inv(model.at(point[None]).curvature[0])
    return found


def error_of_difference(model: BradleyTerry, point: Array, one: int, other: int) -> float:
    table = covariance(model, point)
    return float(np.sqrt(table[one, one] + table[other, other] - 2 * table[one, other]))


def baseball() -> tuple[dict[str, Any], Results]:
    data = published("baseball")
    teams = data["teams"]
    wins, losses = np.zeros((2, len(teams), len(teams)))
    for home, away, won, lost in data["games"]:
        wins[teams.index(home), teams.index(away)] = won
        losses[teams.index(home), teams.index(away)] = lost
    return data, Results(wins, np.zeros_like(wins), losses)


def test_baseball_without_home_advantage() -> None:
    data, results = baseball()
    model = BradleyTerry(results, ghosts=0.0, advantage=False)
    point = model.peak()
    last = data["teams"].index("Baltimore")
    others = [team for team in range(len(data["teams"])) if team != last]
    abilities = sorted((point[others] - point[last]).round(2))
    assert abilities == data["without_advantage"]["abilities"]
    errors = {round(error_of_difference(model, point, team, last), 1) for team in others}
    assert errors == {data["without_advantage"]["standard_error"]}


def test_baseball_with_home_advantage() -> None:
    data, results = baseball()
    model = BradleyTerry(results, ghosts=0.0)
    point = model.peak()
    worths = np.exp(point[: results.players])
    assert sorted((worths / worths.sum()).round(3)) == data["with_advantage"]["worths"]
    assert model.advantage is not None
    assert round(float(point[model.advantage]), 4) == data["with_advantage"]["advantage"]


def test_pudding() -> None:
    data = published("pudding")
    wins, draws, losses = np.zeros((3, 6, 6))
    for one, other, won, lost, tied in data["comparisons"]:
        wins[one - 1, other - 1], losses[one - 1, other - 1], draws[one - 1, other - 1] = won, lost, tied
    model = BradleyTerry(Results(wins, draws, losses), ghosts=0.0, advantage=False)
    point = model.peak()
    worths = np.exp(point[:6])
    assert worths / worths.sum() == pytest.approx(data["worths"], abs=data["worths_tolerance"])
    assert model.nu(point) == pytest.approx(data["nu"], abs=data["nu_tolerance"])
    errors = [round(error_of_difference(model, point, brand, 0), 4) for brand in range(1, 6)]
    assert errors == data["standard_errors"]
    assert model.log_nu is not None
    assert round(float(point[model.log_nu]), 4) == data["log_nu"]
    assert round(float(np.sqrt(covariance(model, point)[6, 6])), 4) == data["log_nu_standard_error"]


def random_table(*, draws: bool = True) -> Results:
    wins, drawn, losses = np.random.default_rng(5).integers(0, 5, (3, 4, 4)) * (1.0 - np.eye(4))
    return Results(wins, drawn * draws, losses)


def score_scale() -> ScoreScale:
    model = BradleyTerry(random_table())
    return ScoreScale(model, model.peak())


@pytest.mark.parametrize(
    ("model", "has_exact_curvature"),
    [
        *(
            (BradleyTerry(random_table(draws=draws), ghosts), True)
            for ghosts in (0.0, 0.5, 2.0)
            for draws in (True, False)
        ),
        (score_scale(), False),  # its curvature is an expected one far from the peak
    ],
)
def test_slope_and_curvature_are_differences(model: Likelihood, has_exact_curvature: bool) -> None:
    point = np.random.default_rng(7).normal(0.0, 1.0, model.parameters)
    around, small = model.at(point[None]), 1e-5
    for index, aside in enumerate(small * np.eye(model.parameters)):
        up, down = model.at((point + aside)[None]), model.at((point - aside)[None])
        slope = (up.height[0] - down.height[0]) / (2 * small)
        assert around.slope[0, index] == pytest.approx(slope, abs=1e-6)
        if has_exact_curvature:
            bend = (up.slope[0] - down.slope[0]) / (2 * small)
            assert -around.curvature[0, index] == pytest.approx(bend, abs=1e-6)


def test_probabilities_are_the_model() -> None:
    # P(win) - P(loss), and P(draw), written out for strengths 0.7 and -0.2, advantage 0.3 and nu 0.5.
    once = np.array([[0.0, 1.0], [1.0, 0.0]])
    model = BradleyTerry(Results(once, once, once))
    point = np.array([0.7, -0.2, 0.3, np.log(0.5)])
    lead = 0.7 - -0.2 + 0.3
    win, loss = np.exp(lead / 2), np.exp(-lead / 2)
    by_lead, by_nu = model.residuals(point)
    total = win + loss + 0.5
    expected = (win - loss) / total / 2
    assert by_lead[:, 0, 1] == pytest.approx([-0.5 - expected, -expected, 0.5 - expected])
    assert by_nu[:, 0, 1] == pytest.approx([-0.5 / total, 1 - 0.5 / total, -0.5 / total])
    assert model.nu(point) == pytest.approx(0.5)


def test_no_peak_without_ghosts() -> None:
    wins = np.array([[0.0, 3.0], [3.0, 0.0]])
    losses = np.zeros((2, 2))
    wins[1, 0], losses[1, 0] = 0.0, 3.0
    with pytest.raises(ValueError, match="no peak"):
        BradleyTerry(Results(wins, np.zeros((2, 2)), losses), ghosts=0.0).peak()


@pytest.mark.parametrize(
    ("games", "known"),
    [
        ([], False),
        ([(0, 1), (1, 0)], True),
        # The first bot could be the better one.
        ([(0, 1)], False),
        ([(0, 1), (1, 2)], False),
        # In a circle not every bot can be better than the next.
        ([(0, 1), (1, 2), (2, 0)], True),
        ([(0, 1), (1, 2), (0, 2)], True),
    ],
)
def test_identifiable_parameters(games: list[tuple[int, int]], known: bool) -> None:
    wins = np.zeros((3, 3))
    for pairing in games:
        wins[pairing] = 1.0
    assert (BradleyTerry(Results(wins, wins, wins)).advantage is not None) == known
    without_draws = BradleyTerry(Results(wins, np.zeros((3, 3)), wins))
    assert without_draws.log_nu is None
    assert without_draws.nu(without_draws.peak()) == 0.0


def test_steps_that_are_too_long_are_shortened() -> None:
    # Found by chance, one in 6,000 tables: the first whole steps lead downhill.
    wins = np.array([[0.0, 88.0, 0.0], [0.0, 0.0, 10163.0], [6.0, 0.0, 0.0]])
    draws = np.array([[0.0, 267256.0, 0.0], [342.0, 0.0, 59574.0], [0.0, 391.0, 0.0]])
    model = BradleyTerry(Results(wins, draws, np.zeros((3, 3))))
    around = model.at(model.peak()[None])
    assert around.slope[0] == pytest.approx(np.zeros(model.parameters), abs=1e-6)


def test_millions_of_games_have_a_peak() -> None:
    wins = np.array([[0.0, 1e6], [1e6, 0.0]])
    model = BradleyTerry(Results(wins, np.zeros((2, 2)), np.zeros((2, 2))))
    point = model.peak()
    assert point[:2] == pytest.approx([0.0, 0.0], abs=1e-6)
    # All games won by who began, but for half an imaginary one: the log of their ratio.
    assert model.advantage is not None
    assert point[model.advantage] == pytest.approx(np.log((2e6 + 0.5) / 0.5), rel=1e-6)


# The scale of expected scores


@pytest.mark.parametrize("advantage", [0.0, 0.3, -2.0, 12.0])
@pytest.mark.parametrize("nu", [0.01, 0.5, 2.0, 40.0])
@pytest.mark.parametrize("difference", [0.0, 0.2, -1.5, 9.0])
def test_a_lead_gives_the_expected_score(difference: float, nu: float, advantage: float) -> None:
    lead = leads(np.array([difference]), advantage, nu)[0].item()
    scores = []
    for ahead in (lead + advantage, lead - advantage):
        win, loss = np.exp(ahead / 2), np.exp(-ahead / 2)
        scores.append((win + nu / 2) / (win + loss + nu))
    assert sum(scores) / 2 == pytest.approx(1 / (1 + np.exp(-difference)), rel=1e-12)


def test_a_rating_agrees_with_the_score() -> None:
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
    """Return a complete round robin without draws, with a strong advantage of the first move."""
    strengths = random.normal(0.0, spread, players)
    ahead = strengths[:, None] - strengths[None] + random.choice([0.0, 2.0, 5.0, 10.0])
    played = games * (1 - np.eye(players))
    wins = random.binomial(played.astype(int), 1 / (1 + np.exp(-ahead))).astype(np.float64)
    return Results(wins, np.zeros_like(wins), played - wins)


@pytest.mark.slow
@pytest.mark.parametrize("spread", [1.0, 6.0])
def test_every_search_arrives(spread: float) -> None:
    """Also where bots are far apart and the first bot always wins: one field in fifty once had no peak."""
    random = np.random.default_rng(9)
    for _ in range(150):
        model = BradleyTerry(
            random_results(random, int(random.integers(2, 8)), int(random.integers(1, 60)), spread)
        )
        scale = ScoreScale(model, model.peak())
        point = scale.peak()
        around = scale.at(point[None])
        assert np.abs(around.slope[0]).max() < 1e-3
        for one, other in combinations(range(len(point)), 2):
            aside = point.copy()
            aside[[one, other]] += 0.01, -0.01
            assert scale.at(aside[None]).height[0] < around.height[0] + 1e-9
