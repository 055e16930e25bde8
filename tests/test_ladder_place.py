"""Where a bot stands on a ladder: lines and crossings, one-sided results, intervals that hold the truth."""

import random
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import pairwise
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from tests.builders import make_summary
from tournaments.analysis.ladder_position import crossing, falling, ladder_position
from tournaments.results.game_summary import GameSummary

ALL = range(1, 11)


def names(levels: Iterable[int]) -> dict[int, str]:
    return {level: f"ladder:{level}" for level in levels}


def games_of(scores: Mapping[int, tuple[int, int, int]]) -> list[GameSummary]:
    """Level -> pairs that the bot won twice, shared, and lost twice; all games are different."""
    games = []
    for level, (won, shared, lost) in scores.items():
        points = [(1, 1)] * won + [(1, 0)] * shared + [(0, 0)] * lost
        for number, (there, back) in enumerate(points):
            for begins, point in ((True, there), (False, back)):
                players = ("bot", f"ladder:{level}") if begins else (f"ladder:{level}", "bot")
                winner = int(begins) if not point else int(not begins)
                game = make_summary(*players, winner, key=f"r{number:03d}-{level}-{begins}")
                opening = str(number)
                games.append(
                    replace(
                        game, pair=f"{level}-{number}", opening=opening, fingerprint=f"{level}/{game.key}"
                    )
                )
    return games


@pytest.mark.parametrize(
    ("levels", "values", "place"),
    [
        ([1, 2, 3], [100, 50, -50], 2.5),
        ([1, 2, 3], [100, 20, -80], 2.2),
        ([1, 4, 7], [90, -30, -60], 3.25),
        ([1, 2, 3], [100, 0, -50], 2.0),
        ([1, 2, 3, 4], [100, 0, 0, -50], 2.5),
        ([1, 2], [5, 1], inf),
        ([1, 2], [-1, -5], -inf),
        ([5], [3], inf),
        ([5], [0], 5.0),
        ([1, 2, 3], [10, 10, -inf], 2.0),
        ([1, 2, 3], [inf, -10, -20], 2.0),
    ],
)
def test_crossing(levels: list[int], values: list[float], place: float) -> None:
    assert crossing(levels, values) == pytest.approx(place)


@pytest.mark.parametrize(
    ("values", "weights", "fit"),
    [
        ([3, 2, 1], [1, 1, 1], [3, 2, 1]),
        ([1, 3], [1, 1], [2, 2]),
        ([1, 3], [3, 1], [1.5, 1.5]),
        ([4, 1, 2, 3, 0], [1, 1, 1, 1, 1], [4, 2, 2, 2, 0]),
        ([], [], []),
    ],
)
def test_falling(values: list[float], weights: list[float], fit: list[float]) -> None:
    assert falling(values, weights) == pytest.approx(fit)


@given(st.lists(st.tuples(st.floats(-500, 500), st.floats(0.1, 10)), max_size=12))
def test_falling_never_rises_and_keeps_the_weighted_sum(pairs: list[tuple[float, float]]) -> None:
    values, weights = [value for value, _ in pairs], [weight for _, weight in pairs]
    fit = falling(values, weights)
    assert all(one >= other - 1e-9 for one, other in pairwise(fit))
    total = sum(value * weight for value, weight in pairs)
    assert sum(v * w for v, w in zip(fit, weights, strict=True)) == pytest.approx(total, abs=1e-6)


def test_between_two_levels() -> None:
    scores = {3: (16, 4, 0), 4: (10, 8, 2), 5: (2, 8, 10), 6: (0, 4, 16)}
    place = ladder_position("bot", names(scores), games_of(scores), ALL)
    assert place.position == "between"
    assert place.value == pytest.approx(4.5, abs=0.01)  # what it did against 4, 5 did against it
    assert 3.5 < place.low < 4.5 < place.high < 5.5
    assert place.nearest is not None
    assert place.nearest.level == 4
    assert (place.nearest.games, place.nearest.wins, place.nearest.losses) == (40, 28, 12)
    text = " ".join(place.sentences())
    assert text.startswith("bot stands between level 4 and level 5, at level 4.5 (95 % interval ")
    assert "Against level 4 its rating is +" in text
    value = place.to_json()
    assert value["level"] == place.value
    assert value["relative_to"] == 4
    assert value["difference"]["low"] < value["difference"]["value"] < value["difference"]["high"]


def test_all_won() -> None:
    scores = dict.fromkeys(ALL, (5, 0, 0))
    place = ladder_position("bot", names(scores), games_of(scores), ALL)
    assert (place.position, place.value, place.high) == ("above", inf, inf)
    assert place.low > 9
    assert "stands above level 10, the highest one that it met" in place.sentences()[0]
    assert place.to_json()["level"] is None


def test_all_lost() -> None:
    scores = dict.fromkeys(ALL, (0, 0, 5))
    place = ladder_position("bot", names(scores), games_of(scores), ALL)
    assert (place.position, place.value, place.low) == ("below", -inf, -inf)
    assert place.high < 2
    assert "stands below level 1, the lowest one that it met" in place.sentences()[0]


def test_two_games_say_hardly_anything() -> None:
    scores = {5: (0, 1, 0)}
    place = ladder_position("bot", names(scores), games_of(scores), ALL)
    assert place.sentences()[0] == (
        "bot stands at level 5 (by its scores as strong as the levels that it met; too few different games "
        "for an interval)."
    )
    assert "More games give an interval: --games." in place.sentences()
    assert not place.known


def test_copies_are_no_evidence() -> None:
    one = games_of({3: (1, 0, 0), 4: (0, 0, 1)})
    copies = [
        replace(game, key=f"{game.key}.{number}", pair=f"{game.pair}.{number}")
        for number in range(20)
        for game in one
    ]
    few, many = (ladder_position("bot", names([3, 4]), games, ALL) for games in (one, copies))
    assert (few.value, few.low, few.high) == pytest.approx((many.value, many.low, many.high))
    assert (many.results[0].games, many.results[0].unique) == (40, 2)


def test_without_a_game() -> None:
    place = ladder_position("bot", names(ALL), [], ALL)
    assert place.position == "unknown"
    assert place.nearest is None
    assert place.sentences() == ["bot: no game was played that counts."]
    assert place.to_json()["level"] is None
    assert [result.score for result in place.results] == [None] * 10


def test_games_of_others_play_no_part() -> None:
    scores = {3: (3, 1, 0), 4: (0, 1, 3)}
    games = games_of(scores)
    other = make_summary("ladder:3", "ladder:4", 0)
    assert ladder_position("bot", names(scores), [*games, other]) == ladder_position(
        "bot", names(scores), games
    )


def test_results_against_the_order() -> None:
    scores = {3: (0, 0, 30), 8: (30, 0, 0)}
    place = ladder_position("bot", names(scores), games_of(scores), ALL)
    assert place.against_order
    assert place.low <= 3
    assert place.high >= 8
    assert "do not fit the order of the levels" in place.sentences()[-1]


def test_levels_with_gaps() -> None:
    scores = {2: (8, 2, 0), 7: (0, 2, 8)}
    place = ladder_position("bot", names(scores), games_of(scores), ALL)
    assert place.value == pytest.approx(4.5, abs=0.01)
    assert "between level 2 and level 7, at level 4.5" in place.sentences()[0]


@given(st.dictionaries(st.integers(1, 10), st.tuples(*[st.integers(0, 4)] * 3), max_size=4))
def test_whatever_the_results(scores: dict[int, tuple[int, int, int]]) -> None:
    place = ladder_position("bot", names(ALL), games_of(scores), ALL)
    assert place.low <= place.high
    if place.position == "between":
        assert place.low <= place.value <= place.high
        assert 1 <= place.value <= 10
    assert place.sentences()
    assert not any("inf" in sentence or "nan" in sentence for sentence in place.sentences())


def simulated(dice: random.Random, at: float, step: float, pairs: int) -> list[GameSummary]:
    """Games of a bot at a level, on a ladder of even steps, in Elo."""
    games = []
    for level in ALL:
        for number in range(pairs):
            for begins in (True, False):
                wins = dice.random() < 1 / (1 + 10 ** ((level - at) * step / 400))
                players = ("bot", f"ladder:{level}") if begins else (f"ladder:{level}", "bot")
                winner = int(begins) if not wins else int(not begins)
                key = f"r{number}-{level}-{begins}"
                game = make_summary(*players, winner, key=key)
                games.append(replace(game, pair=f"{level}-{number}", opening=str(number), fingerprint=key))
    return games


@pytest.mark.slow
@pytest.mark.parametrize(("step", "pairs"), [(110.0, 3), (110.0, 10), (250.0, 10)])
def test_intervals_hold_the_truth(step: float, pairs: int) -> None:
    """95 % is what they say; of 150 one expects 142.5 with a standard deviation of 2.7."""
    dice = random.Random(f"{step}/{pairs}")
    held = 0
    with threadpool_limits(1):
        for _ in range(150):
            at = dice.uniform(1, 10)
            place = ladder_position("bot", names(ALL), simulated(dice, at, step, pairs), ALL)
            held += place.low <= at <= place.high
    assert held >= 142.5 - 3 * 2.7


def test_a_bot_without_an_interval_is_told_what_its_scores_show() -> None:
    found = ladder_position("bot", names({3: 0, 6: 0}), games_of({3: (1, 0, 0), 6: (0, 0, 1)}), ALL)
    repeated = tuple(replace(result, unique=0) for result in found.results)
    place = replace(found, results=repeated, low=-inf, high=inf)
    first, *_, last = place.sentences()
    assert "by its scores at least level 3, at most level 6; too few different games for an interval" in first
    assert "Games against levels 3, 6 were repetitions" in last
    assert 'capabilities = ["openings"]' in last
