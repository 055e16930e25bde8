"""Shares of simulated tournaments whose 95 % intervals hold the truth.

``python -m benchmarks.coverage`` measures the whole grid; here are designs of each kind.  With so many runs a
share has a standard error of 1.5 percent at most; intervals that are too narrow by a quarter are off by four.
"""

import numpy as np
import pytest

from benchmarks.coverage.designs import (
    WORLDS,
    Design,
    ShortMatch,
    compared,
    copies,
    field,
    gauntlet,
    match,
    sequential_test,
)
from benchmarks.coverage.worlds import World, half_points, pair_chances
from tests.support.tiers import slow

RUNS = {"match": 300, "sequential test": 300, "compare": 200}
"""Kind -> simulated tournaments: a match has one interval, a comparison has two."""
RUNS_OF_FIELDS = 100
"""Runs of all other kinds, which have four intervals or more: with these their shares are as certain."""
EVEN, FIRST, BOT = World(0.3, 100.0), World(0.1, 100.0, -0.5), World(0.1, 100.0, 0.5)
DESIGNS = [
    *(match(world, pairs) for world in (World(), EVEN, FIRST, BOT) for pairs in (25, 50)),
    sequential_test(EVEN),
    compared(BOT, 10),
    gauntlet(EVEN, 6, 10),
    *(field(world, 5, 10) for world in (World(), EVEN, FIRST, BOT)),
    copies(FIRST, 6, 10, varied=True),
]


@pytest.mark.parametrize("world", WORLDS, ids=str)
@pytest.mark.parametrize(
    ("pairs", "most"), [(3, 0.98), *slow((2, 0.97), (4, 0.981), (5, 0.971), (7, 0.972), (10, 0.971))]
)
def test_intervals_of_short_matches_hold_the_truth(world: World, pairs: int, most: float) -> None:
    """Three and four pairs have no level between one that is too narrow in some worlds and this one."""
    assert 0.935 <= ShortMatch(pairs, world).coverage() <= most


@pytest.mark.parametrize("world", [World(), World(0.3, 100.0, 0.5), World(0.1, 300.0, -0.5)], ids=str)
def test_the_coverage_that_is_computed_is_the_one_that_is_simulated(world: World) -> None:
    random = np.random.default_rng(3)
    for elo in (0.0, 200.0):
        points = half_points(random, world, elo, 40_000).sum(axis=1)
        shares = np.bincount(points, minlength=5) / len(points)
        assert shares == pytest.approx(pair_chances(world, elo), abs=0.01)


@pytest.mark.slow
@pytest.mark.parametrize(
    "design", DESIGNS, ids=lambda design: f"{design.kind}, {design.size}, {design.world}"
)
def test_intervals_hold_the_truth(design: Design | ShortMatch) -> None:
    assert 0.92 <= design.coverage(RUNS.get(design.kind, RUNS_OF_FIELDS), seed=1) <= 0.99


@pytest.mark.slow
def test_near_copies_change_no_coverage() -> None:
    """One bot that plays at random once its games are decided changes nobody's interval."""
    plain, varied = (copies(FIRST, 6, 10, varied=varied).coverage(20) for varied in (False, True))
    assert plain == varied
