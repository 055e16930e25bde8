"""Evidence: identical games count once, whatever they are mixed with."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.analysis.games import game, pair_of
from tournaments.analysis.evidence import evidence_of, unique_games
from tournaments.analysis.ratings.ratings import Ratings, rate
from tournaments.analysis.ratings.swaps import swaps_of
from tournaments.results.game_summary import GameSummary

NAMES = ("one", "two", "three")


def same(one: Ratings, other: Ratings) -> bool:
    return all(
        np.array_equal(getattr(one, name), getattr(other, name))
        for name in ("rating", "low", "high", "games", "covariance", "advantage", "superiority")
    )


@pytest.mark.parametrize(
    ("games", "weight", "unique", "played"),
    [
        ([], [], [0, 0, 0], [0, 0, 0]),
        # Games without a fingerprint are all different.
        ([game()] * 3, [1.0] * 3, [3, 3, 0], [3, 3, 0]),
        ([game(fingerprint="a")] * 100, [1.0], [1, 1, 0], [100, 100, 0]),
        # Other sides or openings are other games.
        (
            [
                game(fingerprint="a"),
                game("two", "one", fingerprint="a"),
                game(opening="e4", fingerprint="a"),
            ],
            [1.0] * 3,
            [3, 3, 0],
            [3, 3, 0],
        ),
        # Bots without a name in the list are left out.
        ([game("one", "four"), game("one", "two")], [1.0], [1, 1, 0], [1, 1, 0]),
    ],
)
def test_identical_games_are_one(
    games: list[GameSummary], weight: list[float], unique: list[int], played: list[int]
) -> None:
    evidence = evidence_of(NAMES, games)
    assert evidence.weight.tolist() == weight
    assert (evidence.unique.tolist(), evidence.played.tolist()) == (unique, played)
    assert evidence.games == sum(unique) // 2
    if not any("four" in (each.first, each.second) for each in games):
        assert unique_games(games) == evidence.games


def test_copies_have_the_average_result_of_all() -> None:
    # It breaks at its first move in 99 of 100 games: hardly more evidence than one game, nearly all lost.
    games = [game(winner=1, fingerprint="broken")] * 99 + [game(winner=0, fingerprint="whole")]
    evidence = evidence_of(NAMES, games)
    effective = 100**2 / (99**2 + 1)
    assert evidence.weight.sum() == pytest.approx(effective)
    assert float((evidence.weight * evidence.points).sum()) == pytest.approx(effective / 100)


@pytest.mark.parametrize(
    ("repeats", "effective"),
    [([1] * 7, 7.0), ([9], 1.0), ([5, 5], 2.0), ([8, 1, 1], 100 / 66), ([40, *[1] * 10], 2500 / 1610)],
)
def test_the_effective_number_of_different_games(repeats: list[int], effective: float) -> None:
    games = [game(fingerprint=str(kind)) for kind, often in enumerate(repeats) for _ in range(often)]
    evidence = evidence_of(NAMES, games)
    assert evidence.weight.sum() == pytest.approx(effective)
    assert evidence.cluster_weight.sum() == pytest.approx(effective)
    assert evidence.games == len(repeats)


def test_points_are_those_of_the_first_bot() -> None:
    games = [game(winner=0), game(winner=None), game(winner=1)]
    assert evidence_of(NAMES, games).points.tolist() == [1.0, 0.5, 0.0]


def test_pairs_are_clusters() -> None:
    games = [*pair_of(1, "ab", (0, 1)), *pair_of(2, "cd", (0, 0)), game(fingerprint="e")]
    evidence = evidence_of(NAMES, [*games, *pair_of(1, "ab", (0, 1), ("one", "three"))])
    assert evidence.cluster.tolist() == [0, 0, 1, 1, 2, 3, 3]
    assert evidence.cluster_weight.tolist() == [1.0] * 4


def test_pairs_that_differ_in_one_game() -> None:
    # The first game is always the same, the return game never.
    games = [each for serial in range(4) for each in pair_of(serial, ("same", f"new {serial}"), (0, 0))]
    evidence = evidence_of(NAMES, games)
    assert evidence.weight.tolist() == [0.25, 1.0] * 4
    assert evidence.cluster_weight.tolist() == [1.0] * 4


@pytest.mark.parametrize("winners", [(0, 0), (0, 1), (None, 1)])
def test_copies_of_a_deterministic_pairing_change_no_rating(winners: tuple[int | None, int | None]) -> None:
    other = [
        *pair_of(500, "uv", (0, None), ("one", "three")),
        *pair_of(501, "wx", (0, 0), ("two", "three")),
        *pair_of(502, "yz", (1, 0), ("two", "three")),
    ]
    once = rate(evidence_of(NAMES, [*pair_of(1, "ab", winners), *other]))
    copies = [each for serial in range(100) for each in pair_of(serial, "ab", winners)]
    assert same(rate(evidence_of(NAMES, [*copies, *other])), once)
    # And while a round is being played.
    assert same(rate(evidence_of(NAMES, [*copies, pair_of(200, "ab", winners)[1], *other])), once)


@pytest.mark.slow
@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=1, max_size=6),
    st.integers(2, 5),
    st.permutations(range(12)),
)
def test_every_game_again_changes_no_rating(
    kinds: list[tuple[str, str]], times: int, order: list[int]
) -> None:
    result = {"a": 0, "b": 1, "c": None}
    rounds = [pair_of(serial, kind, (result[kind[0]], result[kind[1]])) for serial, kind in enumerate(kinds)]
    games = [each for games_of_pair in rounds for each in games_of_pair]
    again = [each._replace(pair=f"{each.pair} again {time}") for time in range(times) for each in games]
    once, often = rate(evidence_of(NAMES, games)), rate(evidence_of(NAMES, again))
    shuffled = rate(evidence_of(NAMES, [games[index] for index in order if index < len(games)]))
    for other in (often, shuffled):
        for name in ("rating", "low", "high", "games"):
            assert getattr(other, name) == pytest.approx(getattr(once, name), abs=1e-6)


def test_two_bots_of_one_name() -> None:
    with pytest.raises(ValueError, match="same name"):
        evidence_of(("one", "one"), [])


def test_a_game_twice_in_a_pair() -> None:
    twice = [game(pair="r001", fingerprint="a"), game(pair="r001", fingerprint="a")]
    evidence = evidence_of(NAMES, [*twice, game(pair="r002", fingerprint="a")])
    assert evidence.weight.sum() == pytest.approx(1.0)
    assert evidence.cluster_weight.tolist() == [1.0]


# Swaps


def test_swaps() -> None:
    games = [
        game(winner=1, swapped=1),
        game(winner=None, swapped=1),
        game(winner=0),
        game("two", "one", 0),
    ]
    swaps = swaps_of(NAMES, games)
    overall = swaps.overall
    assert (overall.chances, overall.swaps, overall.share) == (4, 2, 0.5)
    assert (overall.score_with, overall.score_without) == (0.75, 0.0)
    two = swaps.bots["two"]
    assert (two.chances, two.swaps, two.score_with, two.score_without) == (3, 2, 0.75, 0.0)
    assert (swaps.bots["one"].share, swaps.bots["one"].score_with) == (0.0, None)
    assert (swaps.bots["three"].share, swaps.bots["three"].score_without) == (None, None)


def test_identical_games_with_a_swap_count_once() -> None:
    swaps = swaps_of(NAMES, [game(winner=1, fingerprint="a", swapped=1)] * 9 + [game(winner=0)])
    # Ten games, two different ones: the average over all, with the weight of two.
    assert swaps.overall.chances == pytest.approx(2.0)
    assert swaps.overall.share == pytest.approx(0.9)
    assert swaps.overall.score_with == pytest.approx(1.0)


def test_a_swap_of_the_first_bot_is_its_chance() -> None:
    """Such a record is damaged; the second bot had no chance."""
    swaps = swaps_of(NAMES, [game(swapped=0)])
    assert (swaps.bots["one"].score_with, swaps.bots["two"].chances) == (1.0, 0)
