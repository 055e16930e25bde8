"""Ratings and their intervals: properties of all results, and simple cases."""

import math
from functools import partial
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import stdtrit

from tests.analysis.games import game, pair_of
from tests.support.ratings import recorded_intervals
from tournaments.analysis.evidence import Evidence, evidence_of
from tournaments.analysis.ratings import ratings
from tournaments.analysis.ratings.normal import (
    LARGE_FREEDOM,
    LEVEL,
    NORMAL_QUANTILE,
    normal_share,
    student_quantile,
)
from tournaments.analysis.ratings.ratings import ELO, quantile, rate
from tournaments.results.game_summary import GameSummary

NAMES = ("one", "two", "three", "four")
RESULTS = st.sampled_from([0, 1, None])
PAIRINGS = list(permutations(NAMES, 2))
GAMES = st.lists(st.tuples(st.sampled_from(PAIRINGS), RESULTS, st.integers(0, 5)), max_size=25)
"""Of four bots, some of which may have none; the number is that of the pair, 0 for no pair."""

Played = list[tuple[tuple[str, str], int | None, int]]


def games_of(played: Played) -> list[GameSummary]:
    return [game(*bots, winner, pair=f"p{pair}" if pair else "") for bots, winner, pair in played]


def match(wins: int, draws: int, losses: int) -> Evidence:
    """The first bot's results against the second, sides in turn."""
    results = [0] * wins + [None] * draws + [1] * losses
    games = [
        game("one", "two", winner)
        if index % 2 == 0
        else game("two", "one", None if winner is None else 1 - winner)
        for index, winner in enumerate(results)
    ]
    return evidence_of(("one", "two"), games)


close = partial(np.allclose, atol=1e-5, rtol=0.0)


@settings(max_examples=40)
@given(GAMES, st.permutations(range(4)), st.none() | st.integers(0, 3), st.randoms(use_true_random=False))
def test_the_order_of_bots_and_games_changes_nothing(
    played: Played, order: list[int], anchor: int | None, random: "np.random.Generator"
) -> None:
    games = games_of(played)
    found = rate(evidence_of(NAMES, games), anchor)
    moved_names = [NAMES[index] for index in order]
    random.shuffle(games)
    moved = rate(evidence_of(moved_names, games), None if anchor is None else order.index(anchor))
    for name in ("rating", "low", "high"):
        assert close(getattr(moved, name), getattr(found, name)[order])
    assert close(moved.superiority, found.superiority[np.ix_(order, order)])


@settings(max_examples=40)
@given(GAMES)
def test_exchanging_winners_mirrors(played: Played) -> None:
    other = {0: 1, 1: 0, None: None}
    found = rate(evidence_of(NAMES, games_of(played)))
    mirror = rate(evidence_of(NAMES, games_of([(bots, other[won], pair) for bots, won, pair in played])))
    assert close(mirror.rating, -found.rating)
    assert close(mirror.low, -found.high)
    assert close(mirror.superiority, found.superiority.T)
    assert mirror.advantage.low == pytest.approx(-found.advantage.high, abs=1e-5)


def test_the_superiority_among_many_bots_is_nearly_that_among_few(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(7)
    names = [f"bot{number}" for number in range(20)]
    strengths = dict(zip(names, random.normal(0, 1, len(names)), strict=True))
    games = []
    for one, other in permutations(names, 2):
        is_won = random.random() < 1 / (1 + np.exp(strengths[other] - strengths[one]))
        games.append(game(one, other, 0 if is_won else 1, pair="-".join(sorted([one, other]))))
    evidence = evidence_of(names, games)
    of_few = rate(evidence).superiority
    monkeypatch.setattr(ratings, "MOST_PROFILED", len(names) - 1)
    found = rate(evidence)
    of_many = found.superiority
    assert np.abs(of_many - of_few).max() < 0.02
    assert close(of_many, 1 - of_many.T)
    for pair in ((0, 1), (5, 3), (19, 0)):
        assert found.likelihood_of_superiority(*pair) == pytest.approx(of_few[pair], abs=1e-2)


@settings(max_examples=40)
@given(GAMES, st.none() | st.integers(0, 3))
def test_intervals_are_finite_and_hold_the_estimate(played: Played, anchor: int | None) -> None:
    found = rate(evidence_of(NAMES, games_of(played)), anchor, 1500.0)
    for values in (found.rating, found.low, found.high, found.covariance, found.superiority):
        assert np.isfinite(values).all()
    inside = (found.low < found.rating) & (found.rating < found.high)
    assert inside.tolist() == [index != anchor for index in range(4)]
    assert found.advantage.low <= found.advantage.value <= found.advantage.high
    if anchor is not None:
        assert found.low[anchor] == found.rating[anchor] == found.high[anchor] == 1500.0


@settings(max_examples=40)
@given(st.lists(RESULTS, min_size=24, max_size=24))
def test_points_decide_in_a_balanced_round_robin(results: list[int | None]) -> None:
    # Besides, every bot wins and loses once against every other as first; so plain likelihood has a peak.
    base = [game(one, other, winner) for one, other in PAIRINGS for winner in (0, 1)]
    games = base + [game(*bots, won) for bots, won in zip(PAIRINGS * 2, results, strict=True)]
    points = dict.fromkeys(NAMES, 0.0)
    for each in games:
        for name, gained in zip((each.first, each.second), each.points, strict=True):
            points[name] += gained
    found = rate(evidence_of(NAMES, games), ghosts=0.0)
    for one, other in PAIRINGS:
        difference = found.rating[NAMES.index(one)] - found.rating[NAMES.index(other)]
        # Games of bots that are far apart tell a little less where draws or sides matter, too.
        if points[one] == points[other]:
            assert abs(difference) < 5
        else:
            assert np.sign(difference) == np.sign(points[one] - points[other])


@pytest.mark.parametrize(("wins", "losses"), [(6, 0), (0, 6), (100, 0), (1, 0), (3, 3)])
def test_one_sided_matches(wins: int, losses: int) -> None:
    found = rate(match(wins, 0, losses), anchor=1)
    better = found.likelihood_of_superiority(0, 1)
    if wins == losses:
        assert (found.rating[0], better) == pytest.approx((0.0, 0.5), abs=1e-6)
    else:
        assert (found.rating[0] > 0) == (better > 0.5) == (wins > losses)
    assert found.likelihood_of_superiority(1, 0) == pytest.approx(1 - better)


def test_a_bot_without_games_changes_no_other_rating() -> None:
    games = [game("one", "two", 0), game("two", "one", 0), game("one", "two", None)] * 5
    alone = rate(evidence_of(("one", "two"), games))
    more = rate(evidence_of(("one", "two", "idle"), games))
    assert close(more.rating[:2], alone.rating)
    # The imaginary results of the third one move the others' average by very little.
    assert more.low[:2] == pytest.approx(alone.low, abs=2.0)
    assert more.high[2] - more.low[2] > 1000


def test_groups_that_never_met() -> None:
    games = [game("one", "two", 0), game("two", "one", 0), game("three", "four", 0), game("four", "three", 0)]
    found = rate(evidence_of(NAMES, games * 10))
    assert np.isfinite(found.high).all()
    assert found.likelihood_of_superiority(0, 2) == pytest.approx(0.5)


def test_the_advantage_is_found() -> None:
    games = [game(one, other, 0 if turn % 4 else 1) for turn in range(40) for one, other in PAIRINGS]
    found = rate(evidence_of(NAMES, games))
    # Three of four games are won by the first bot: 400 log10(3) Elo.
    assert found.advantage.value == pytest.approx(190.8, abs=2.0)
    assert found.advantage.low > 100
    assert close(found.rating, np.zeros(4))


def test_the_width_of_an_interval() -> None:
    widths = [float(found.high[0] - found.low[0]) for found in (rate(match(n, n, n)) for n in (2, 8, 32))]
    # Four times the games, half the width.
    assert widths[0] > 1.6 * widths[1] > 1.6 * 1.6 * widths[2]
    # The same results in two arrangements: each bot wins one of a pair, or one of them both.
    split = [each for n in range(40) for each in pair_of(n, ("", ""), (0, 0) if n < 20 else (1, 1))]
    swept = [each for n in range(40) for each in pair_of(n, ("", ""), (0, 1) if n < 20 else (1, 0))]
    loose = [each._replace(pair="") for each in split]
    widths = [
        float(found.high[0] - found.low[0])
        for found in (rate(evidence_of(("one", "two"), games)) for games in (split, loose, swept))
    ]
    assert widths[0] < 0.5 * widths[1]
    # Perfect likeness of both games halves the evidence.
    assert widths[2] == pytest.approx(widths[1] * 2**0.5, rel=0.06)


def test_superiority_and_covariance_agree_with_the_interval() -> None:
    evidence = match(60, 0, 40)
    found = rate(evidence, anchor=1)
    # Above zero by two standard deviations: the interval just leaves out 0, and 2.5% lie beyond.
    assert (found.low[0] > 0) == (found.likelihood_of_superiority(0, 1) > 0.975)
    assert found.likelihood_of_superiority(0, 1) == pytest.approx(0.977, abs=0.004)
    free = rate(evidence)
    deviation = np.sqrt(free.covariance[0, 0] + free.covariance[1, 1] - 2 * free.covariance[0, 1])
    width = 2 * (free.high[0] - free.low[0])
    assert 2 * NORMAL_QUANTILE * deviation == pytest.approx(width, rel=0.02)


def test_only_the_intervals_that_are_needed_are_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    games = games_of([(bots, (0, 1, None)[number % 3], number // 2) for number, bots in enumerate(PAIRINGS)])
    evidence = evidence_of(NAMES, games)
    whole = rate(evidence, anchor=3)
    computed = recorded_intervals(monkeypatch)
    for needed in ((), (1,), (2, 0, 2), range(4)):
        computed.clear()
        found = rate(evidence, anchor=3, intervals=needed)
        assert computed == [1, len(set(needed))]
        assert found.rating.tolist() == whole.rating.tolist()
        assert found.covariance.tolist() == whole.covariance.tolist()
        for bot in range(4):
            is_needed = bot in needed
            assert found.low[bot] == pytest.approx(whole.low[bot] if is_needed else -np.inf, abs=1e-9)
            assert found.high[bot] == pytest.approx(whole.high[bot] if is_needed else np.inf, abs=1e-9)


@pytest.mark.parametrize(
    # From the table of Student's t in Abramowitz and Stegun 1964, 26.10, for 0.95 between both ends.
    ("freedom", "printed"),
    [(4, 2.776), (6, 2.447), (10, 2.228), (30, 2.042), (120, 1.980)],
)
def test_student_quantile(freedom: float, printed: float) -> None:
    assert student_quantile(freedom) == pytest.approx(printed, abs=5e-4)
    assert normal_share(np.array([0.0, NORMAL_QUANTILE])).tolist() == pytest.approx([0.5, 0.975])


@pytest.mark.parametrize(
    ("freedom", "error"),
    [
        *((freedom, 1e-11) for freedom in (4.0, 4.7, 17.3, 250.0, 0.999 * LARGE_FREEDOM)),
        *((freedom, 1e-14) for freedom in (LARGE_FREEDOM, 3e3, 1e5, 1e7)),
    ],
)
def test_the_student_quantile_is_that_of_scipy(freedom: float, error: float) -> None:
    assert student_quantile(freedom) == pytest.approx(float(stdtrit(freedom, LEVEL)), rel=error)


def test_the_student_quantile_of_one_degree_of_freedom() -> None:
    # Cauchy's distribution, whose quantile is a tangent (Abramowitz and Stegun 1964, 26.7.3); SciPy 1.14
    # has it to 10 digits only.
    assert student_quantile(1.0) == pytest.approx(math.tan(math.pi * (LEVEL - 0.5)), rel=1e-11)


def test_an_anchor_of_its_own_rating() -> None:
    evidence = match(12, 3, 5)
    free, fixed = rate(evidence), rate(evidence, anchor=1, anchor_rating=2000.0)
    assert fixed.rating[0] - 2000.0 == pytest.approx(free.rating[0] - free.rating[1])
    # Twice the interval of the distance to the middle of two.
    assert fixed.high[0] - 2000.0 == pytest.approx(2 * free.high[0])


@pytest.mark.parametrize(("wins", "losses"), [(7, 3), (6, 0), (1, 40), (500, 499)])
def test_interval_ends_are_where_the_likelihood_says(wins: int, losses: int) -> None:
    # One bot always begins, so that there is no advantage to be told, and one number in all.
    evidence = evidence_of(("one", "two"), [game(winner=0)] * wins + [game(winner=1)] * losses)
    found = rate(evidence, anchor=1)

    def height(elo: float) -> float:
        """The log-likelihood, and half a win and half a loss of each against the average of both."""
        lead = elo / ELO
        ghosts = np.logaddexp(0, lead / 2) + np.logaddexp(0, -lead / 2)
        return float(-wins * np.logaddexp(0, -lead) - losses * np.logaddexp(0, lead) - ghosts)

    peak = height(float(found.rating[0]))
    for end in (found.low[0], found.high[0]):
        assert 2 * (peak - height(float(end))) == pytest.approx(quantile(evidence), rel=1e-6)
    for aside in (-1.0, 1.0):
        assert height(float(found.rating[0]) + aside) < peak


def test_a_strict_order_of_many_bots() -> None:
    names = [f"bot {number:02d}" for number in range(12)]
    games = [
        game(names[one], names[other], 0 if one < other else 1)
        for one in range(12)
        for other in range(12)
        if one != other
        for _ in range(20)
    ]
    found = rate(evidence_of(names, games))
    assert np.isfinite(found.low).all()
    assert np.isfinite(found.high).all()
    assert (np.diff(found.rating) < 0).all()
    assert found.likelihood_of_superiority(0, 1) > 0.99
