"""Position of a bot on a ladder: lines and crossings, one-sided results, intervals that hold the truth."""

import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.builders import make_summary
from tournaments.analysis.ladder_position import crossing, falling, ladder_position
from tournaments.results.game_summary import GameSummary

ALL = range(1, 11)


def names(levels: Iterable[int]) -> dict[int, str]:
    return {level: f"ladder:{level}" for level in levels}


def pair_against(level: int, number: int, won: tuple[bool, bool]) -> Iterator[GameSummary]:
    """Yield a pair of games of the bot, which begins the first one; all games are different."""
    for begins, is_won in zip((True, False), won, strict=True):
        players = ("bot", f"ladder:{level}") if begins else (f"ladder:{level}", "bot")
        game = make_summary(*players, int(begins != is_won), key=f"r{number:03d}-{level}-{begins}")
        yield game._replace(pair=f"{level}-{number}", opening=str(number), fingerprint=game.key)


def games_of(scores: Mapping[int, tuple[int, int, int]]) -> list[GameSummary]:
    """Return the games for level -> pairs that the bot won twice, shared, and lost twice."""
    return [
        game
        for level, (won, shared, lost) in scores.items()
        for number, pair in enumerate(
            [(True, True)] * won + [(True, False)] * shared + [(False, False)] * lost
        )
        for game in pair_against(level, number, pair)
    ]


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
    games = games_of(scores)
    place = ladder_position("bot", names(scores), games, ALL)
    assert place.position == "between"
    assert place.value == pytest.approx(4.5, abs=0.01)  # its score against 4 is that of 5 against it
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
    # Games of other bots change nothing.
    other = make_summary("ladder:3", "ladder:4", 0)
    assert ladder_position("bot", names(scores), [*games, other], ALL) == place


def test_levels_with_gaps() -> None:
    scores = {2: (8, 2, 0), 7: (0, 2, 8)}
    place = ladder_position("bot", names(scores), games_of(scores), ALL)
    assert place.value == pytest.approx(4.5, abs=0.01)
    assert "between level 2 and level 7, at level 4.5" in place.sentences()[0]


@pytest.mark.parametrize(
    ("result", "position", "value", "sentence"),
    [
        ((5, 0, 0), "above", inf, "stands above level 10, the highest one that it met"),
        ((0, 0, 5), "below", -inf, "stands below level 1, the lowest one that it met"),
    ],
)
def test_one_sided_results(result: tuple[int, int, int], position: str, value: float, sentence: str) -> None:
    scores = dict.fromkeys(ALL, result)
    place = ladder_position("bot", names(scores), games_of(scores), ALL)
    assert (place.position, place.value) == (position, value)
    if value > 0:
        assert 9 < place.low <= place.high == inf
    else:
        assert -inf == place.low <= place.high < 2
    assert sentence in place.sentences()[0]
    assert place.to_json()["level"] is None


def test_two_games_give_no_interval() -> None:
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
        game._replace(key=f"{game.key}.{number}", pair=f"{game.pair}.{number}")
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


def test_results_against_the_order() -> None:
    scores = {3: (0, 0, 30), 8: (30, 0, 0)}
    place = ladder_position("bot", names(scores), games_of(scores), ALL)
    assert place.against_order
    assert place.low <= 3
    assert place.high >= 8
    assert "do not fit the order of the levels" in place.sentences()[-1]


@pytest.mark.slow
@given(st.dictionaries(st.integers(1, 10), st.tuples(*[st.integers(0, 4)] * 3), max_size=4))
def test_all_results(scores: dict[int, tuple[int, int, int]]) -> None:
    place = ladder_position("bot", names(ALL), games_of(scores), ALL)
    assert place.low <= place.high
    if place.position == "between":
        assert place.low <= place.value <= place.high
        assert 1 <= place.value <= 10
    assert place.sentences()
    assert not any("inf" in sentence or "nan" in sentence for sentence in place.sentences())


def test_without_an_interval_the_scores_are_reported() -> None:
    found = ladder_position("bot", names({3: 0, 6: 0}), games_of({3: (1, 0, 0), 6: (0, 0, 1)}), ALL)
    repeated = tuple(replace(result, unique=0) for result in found.results)
    place = replace(found, results=repeated, low=-inf, high=inf)
    first, *_, last = place.sentences()
    assert "by its scores at least level 3, at most level 6; too few different games for an interval" in first
    assert "Games against levels 3, 6 were repetitions" in last
    assert 'capabilities = ["openings"]' in last


def test_scores_against_the_order_without_an_interval_are_not_read_as_a_position() -> None:
    found = ladder_position("bot", names({3: 0, 6: 0}), games_of({3: (0, 0, 1), 6: (1, 0, 0)}), ALL)
    repeated = tuple(replace(result, unique=0) for result in found.results)
    place = replace(found, results=repeated, low=-inf, high=inf)
    assert "its scores do not fit the order of the levels" in place.sentences()[0]


@pytest.mark.slow
@pytest.mark.parametrize(("step", "pairs"), [(110.0, 3), (110.0, 10), (250.0, 10)])
def test_intervals_hold_the_truth(step: float, pairs: int) -> None:
    """Of 80 intervals, 76 are expected to hold the truth, with a standard deviation of 1.9."""
    dice = random.Random(f"{step}/{pairs}")

    def is_won(level: int, at: float) -> bool:
        return dice.random() < 1 / (1 + 10 ** ((level - at) * step / 400))

    held = 0
    for _ in range(80):
        at = dice.uniform(1, 10)
        games = [
            game
            for level in ALL
            for number in range(pairs)
            for game in pair_against(level, number, (is_won(level, at), is_won(level, at)))
        ]
        place = ladder_position("bot", names(ALL), games, ALL)
        held += place.low <= at <= place.high
    assert held >= 76 - 3 * 1.9
