"""Identical games count once, whatever they are mixed with."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import make_summary
from tournaments.analysis.evidence import evidence_of, unique_games
from tournaments.analysis.ratings.ratings import Ratings, rate
from tournaments.results.game_summary import GameSummary

NAMES = ("one", "two", "three")


def game(
    first: str = "one",
    second: str = "two",
    winner: int | None = 0,
    *,
    pair: str = "",
    opening: str = "",
    fingerprint: str = "",
) -> GameSummary:
    return replace(make_summary(first, second, winner), pair=pair, opening=opening, fingerprint=fingerprint)


def pair_of(
    serial: int, kinds: Sequence[str], winners: Sequence[int | None], bots: tuple[str, str] = ("one", "two")
) -> list[GameSummary]:
    """Two games with exchanged sides."""
    return [
        game(first, second, winner, pair=f"r{serial:03d}", fingerprint=kind)
        for (first, second), kind, winner in zip((bots, bots[::-1]), kinds, winners, strict=True)
    ]


def same(one: Ratings, other: Ratings) -> bool:
    return all(
        np.array_equal(getattr(one, name), getattr(other, name))
        for name in ("rating", "low", "high", "games", "covariance", "advantage", "draws", "superiority")
    )


def test_games_without_a_fingerprint_are_all_different() -> None:
    games = [game(), game(), game()]
    evidence = evidence_of(NAMES, games)
    assert evidence.weight.tolist() == [1.0, 1.0, 1.0]
    assert evidence.unique.tolist() == evidence.played.tolist() == [3, 3, 0]
    assert evidence.games == unique_games(games) == 3


def test_identical_games_are_one() -> None:
    games = [game(fingerprint="a") for _ in range(100)]
    evidence = evidence_of(NAMES, games)
    assert evidence.weight.tolist() == [1.0]
    assert evidence.unique.tolist() == [1, 1, 0]
    assert evidence.played.tolist() == [100, 100, 0]
    assert evidence.games == unique_games(games) == 1


def test_what_games_say_is_the_average_over_all() -> None:
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


def test_other_sides_or_openings_are_other_games() -> None:
    games = [
        game("one", "two", fingerprint="a"),
        game("two", "one", fingerprint="a"),
        game("one", "two", opening="e4", fingerprint="a"),
    ]
    assert evidence_of(NAMES, games).weight.tolist() == [1.0, 1.0, 1.0]
    assert unique_games(games) == 3


def test_points_are_of_the_first() -> None:
    games = [game(winner=0), game(winner=None), game(winner=1)]
    assert evidence_of(NAMES, games).points.tolist() == [1.0, 0.5, 0.0]


def test_pairs_are_clusters() -> None:
    games = [*pair_of(1, "ab", (0, 1)), *pair_of(2, "cd", (0, 0)), game(fingerprint="e")]
    evidence = evidence_of(NAMES, games)
    assert evidence.cluster.tolist() == [0, 0, 1, 1, 2]
    assert evidence.cluster_weight.tolist() == [1.0, 1.0, 1.0]


def test_equal_keys_of_other_bots_are_other_pairs() -> None:
    games = [*pair_of(1, "ab", (0, 1)), *pair_of(1, "cd", (0, 1), ("one", "three"))]
    assert evidence_of(NAMES, games).cluster.tolist() == [0, 0, 1, 1]


def test_pairs_that_differ_in_one_game() -> None:
    # The first game is always the same, the return game never.
    games = [each for serial in range(4) for each in pair_of(serial, ("same", f"new {serial}"), (0, 0))]
    evidence = evidence_of(NAMES, games)
    assert evidence.weight.tolist() == [0.25, 1.0] * 4
    assert evidence.cluster_weight.tolist() == [1.0] * 4


@pytest.mark.parametrize("winners", [(0, 0), (0, 1), (None, 1)])
def test_copies_of_a_deterministic_pairing_move_nothing(winners: tuple[int | None, int | None]) -> None:
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


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=1, max_size=6),
    st.integers(2, 5),
    st.permutations(range(12)),
)
def test_every_game_again_changes_nothing(kinds: list[tuple[str, str]], times: int, order: list[int]) -> None:
    result = {"a": 0, "b": 1, "c": None}
    rounds = [pair_of(serial, kind, (result[kind[0]], result[kind[1]])) for serial, kind in enumerate(kinds)]
    games = [each for games_of_pair in rounds for each in games_of_pair]
    again = [replace(each, pair=f"{each.pair} again {time}") for time in range(times) for each in games]
    once, often = rate(evidence_of(NAMES, games)), rate(evidence_of(NAMES, again))
    shuffled = rate(evidence_of(NAMES, [games[index] for index in order if index < len(games)]))
    for other in (often, shuffled):
        for name in ("rating", "low", "high", "games"):
            assert getattr(other, name) == pytest.approx(getattr(once, name), abs=1e-6)


def test_other_bots_are_left_out() -> None:
    evidence = evidence_of(("one", "two"), [game("one", "three"), game("one", "two")])
    assert len(evidence.weight) == 1
    assert evidence.played.tolist() == [1, 1]


def test_no_games() -> None:
    evidence = evidence_of(NAMES, [])
    assert len(evidence.weight) == len(evidence.cluster_weight) == 0
    assert evidence.games == unique_games([]) == 0


def test_a_name_twice() -> None:
    with pytest.raises(ValueError, match="same name"):
        evidence_of(("one", "one"), [])


def test_a_game_twice_in_a_pair() -> None:
    twice = [game(pair="r001", fingerprint="a"), game(pair="r001", fingerprint="a")]
    evidence = evidence_of(NAMES, [*twice, game(pair="r002", fingerprint="a")])
    assert evidence.weight.sum() == pytest.approx(1.0)
    assert evidence.cluster_weight.tolist() == [1.0]
