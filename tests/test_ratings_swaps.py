"""Who swapped, and what came of it."""

from dataclasses import replace

import pytest

from tests.test_evidence import game
from tournaments.analysis.ratings.swaps import swaps_of
from tournaments.results.game_summary import GameSummary

NAMES = ("one", "two", "three")


def swapped(each: GameSummary, player: int | None) -> GameSummary:
    return replace(each, swapped=player)


def test_swaps() -> None:
    games = [
        swapped(game("one", "two", 1), 1),
        swapped(game("one", "two", None), 1),
        swapped(game("one", "two", 0), None),
        swapped(game("two", "one", 0), None),
    ]
    swaps = swaps_of(NAMES, games)
    assert swaps.overall.chances == 4
    assert swaps.overall.swaps == 2
    assert swaps.overall.share == 0.5
    assert swaps.overall.score_with == 0.75
    assert swaps.overall.score_without == 0.0
    two = swaps.bots["two"]
    assert (two.chances, two.swaps, two.score_with, two.score_without) == (3, 2, 0.75, 0.0)
    assert swaps.bots["one"].share == 0.0
    assert swaps.bots["one"].score_with is None
    assert swaps.bots["three"].share is None
    assert swaps.bots["three"].score_without is None


def test_identical_games_count_once() -> None:
    once = [swapped(game("one", "two", 1, fingerprint="a"), 1), swapped(game("one", "two", 0), None)]
    often = [once[0]] * 9 + once[1:]
    swaps = swaps_of(NAMES, often)
    # Ten games, two different ones: the average over all, with the weight of two.
    assert swaps.overall.chances == pytest.approx(2.0)
    assert swaps.overall.share == pytest.approx(0.9)
    assert swaps.overall.score_with == pytest.approx(1.0)


def test_a_swap_of_the_first() -> None:
    swaps = swaps_of(NAMES, [swapped(game("one", "two", 0), 0)])
    assert swaps.bots["one"].score_with == 1.0
    assert swaps.bots["two"].chances == 0


def test_no_games() -> None:
    assert swaps_of(NAMES, []).overall.share is None
