"""Whether intervals hold the truth where who meets whom depends on results."""

import numpy as np
import pytest

from tests.test_ratings_coverage import SPREAD_ELO, points_of
from tournaments.evidence import Evidence
from tournaments.formats.swiss import Swiss
from tournaments.ratings.bradley_terry import GHOST_RESULTS, GHOST_RESULTS_OF_ADAPTIVE
from tournaments.ratings.ratings import ELO, rate
from tournaments.schedule import Entrant, History, Result

BOTS, ROUNDS, RUNS = 20, 5, 150
ADVANTAGE_ELO, DRAWS = 30.0, 0.3
"""Of moving first, and the draws' nu."""


def swiss(random: np.random.Generator) -> tuple[list[float], Evidence]:
    """True strengths in Elo, and the evidence of a Swiss tournament; every game is different."""
    strengths = random.normal(0.0, SPREAD_ELO, BOTS)
    schedule = Swiss(
        tuple(Entrant() for _ in range(BOTS)), ROUNDS, seed=int(random.integers(1 << 30)), width=2
    )
    results: dict[str, Result] = {}
    rows = []
    while due := schedule.due(History(results)):
        for game in due:
            lead = (strengths[game.first] - strengths[game.second] + ADVANTAGE_ELO) / ELO
            points = float(points_of(random.random(1), np.array([lead]), DRAWS)[0])
            results[game.key] = Result({1.0: 0, 0.5: None, 0.0: 1}[points])
            rows.append((game.first, game.second, points, game.pair))
    pairs = {pair: number for number, pair in enumerate(dict.fromkeys(row[3] for row in rows))}
    games = np.bincount([bot for row in rows for bot in row[:2]], minlength=BOTS)
    return strengths.tolist(), Evidence(
        names=tuple(map(str, range(BOTS))),
        first=np.array([row[0] for row in rows]),
        second=np.array([row[1] for row in rows]),
        points=np.array([row[2] for row in rows]),
        weight=np.ones(len(rows)),
        cluster=np.array([pairs[row[3]] for row in rows]),
        cluster_weight=np.ones(len(pairs)),
        played=games,
        unique=games,
    )


def share_covered(strengths: list[float], evidence: Evidence, ghosts: float) -> float:
    rated = rate(evidence, ghosts=ghosts)
    truth = np.array(strengths) - np.mean(strengths)
    return float(np.mean((rated.low <= truth) & (truth <= rated.high)))


@pytest.mark.slow
def test_intervals_after_a_swiss_hold_the_truth() -> None:
    random = np.random.default_rng(7)
    tournaments = [swiss(random) for _ in range(RUNS)]
    usual, adaptive = (
        np.mean([share_covered(*one, ghosts) for one in tournaments])
        for ghosts in (GHOST_RESULTS, GHOST_RESULTS_OF_ADAPTIVE)
    )
    # Three standard errors of the mean of 150 tournaments are 2.5 %.
    assert adaptive > 0.935
    assert usual < adaptive  # which is why there are two numbers
