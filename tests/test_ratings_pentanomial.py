"""Scores of matches against what fastchess prints."""

import tomllib
from collections.abc import Sequence
from dataclasses import astuple
from math import isfinite, isnan
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.test_evidence import game, pair_of
from tournaments.analysis.evidence import evidence_of
from tournaments.analysis.ratings.pentanomial import (
    MatchScore,
    game_counts,
    likelihood_of_superiority,
    of_games,
    of_pairs,
    pair_counts,
)

DATA = Path(__file__).parent / "data" / "ratings"
MATCHES = tomllib.loads((DATA / "matches.toml").read_text())
COUNTS = st.lists(st.integers(0, 50), min_size=5, max_size=5)


def compare(found: MatchScore, case: dict[str, Any]) -> None:
    printed = {"elo": found.elo, "normalized": found.normalized_elo}
    compared = {name: round(value, 2) for name, value in printed.items() if name in case}
    assert compared
    assert compared == {name: case[name] for name in compared}
    # Intervals are not the same, but in long matches nearly.
    intervals = {
        "margin": (found.elo_high - found.elo_low) / 2,
        "normalized_margin": (found.normalized_high - found.normalized_low) / 2,
        "superiority": 100 * found.superiority,
    }
    nearly = {name: value for name, value in intervals.items() if name in case}
    assert nearly == pytest.approx({name: case[name] for name in nearly}, rel=0.015, abs=0.05)


@pytest.mark.parametrize("case", MATCHES["pairs"], ids=lambda case: str(case["counts"]))
def test_pairs(case: dict[str, Any]) -> None:
    compare(of_pairs(case["counts"]), case)


@pytest.mark.parametrize("case", MATCHES["games"], ids=lambda case: str(case["counts"]))
def test_games(case: dict[str, Any]) -> None:
    compare(of_games(case["counts"]), case)


def test_classic_likelihood_of_superiority() -> None:
    case = tomllib.loads((DATA / "superiority.toml").read_text())
    assert round(likelihood_of_superiority(case["wins"], case["losses"]), 6) == case["superiority"]
    assert likelihood_of_superiority(0, 0) == 0.5
    assert likelihood_of_superiority(3, 3) == 0.5


@pytest.mark.parametrize("counts", [(0, 0, 0, 0, 3), (3, 0, 0, 0, 0), (0, 0, 1, 0, 0), (0, 0, 0, 1, 30)])
def test_one_sided_matches_are_finite(counts: Sequence[float]) -> None:
    found = of_pairs(counts)
    assert all(isfinite(value) for value in astuple(found))
    assert found.elo_low < found.elo < found.elo_high
    assert found.normalized_low < found.normalized_elo < found.normalized_high


def test_six_to_nil_is_not_certain() -> None:
    found = of_pairs((0, 0, 0, 0, 3))
    assert found.elo > 200
    assert found.elo_low < 0
    assert of_pairs((0, 0, 0, 0, 300)).elo_low > found.elo_low


def test_nothing_is_known_without_results() -> None:
    found = of_pairs((0, 0, 0, 0, 0))
    assert isnan(found.score)
    assert isnan(found.elo)
    assert found.superiority == 0.5


@given(COUNTS)
def test_exchanging_players_mirrors(counts: list[int]) -> None:
    found, mirrored = of_pairs(counts), of_pairs(counts[::-1])
    if sum(counts) == 0:
        return
    assert found.elo == pytest.approx(-mirrored.elo, abs=1e-9)
    assert found.elo_low == pytest.approx(-mirrored.elo_high, abs=1e-9)
    assert found.superiority == pytest.approx(1 - mirrored.superiority)
    assert found.elo_low <= found.elo <= found.elo_high


def test_counts_from_games() -> None:
    games = [
        *pair_of(1, "ab", (0, 1)),
        *pair_of(2, "cd", (0, 0)),
        *pair_of(3, "ef", (None, 0)),
        # Copies, half a pair, and another bot's pair.
        *pair_of(4, "ab", (0, 1)),
        game("one", "two", 0, pair="r005", fingerprint="g"),
        *pair_of(6, "hi", (0, 0), ("one", "three")),
    ]
    evidence = evidence_of(("one", "two", "three"), games)
    pairs = pair_counts(evidence, 0, 1)
    # Five clusters in all, one of them twice: 5 * 5 / (4 + 1 + 1 + 1) different ones.
    assert pairs == pytest.approx((0.0, 5 / 7, 5 / 7, 0.0, 10 / 7))
    assert pair_counts(evidence, 1, 0) == pytest.approx(pairs[::-1])
    assert sum(game_counts(evidence, 0, 1)) == pytest.approx(25 / 7 + 16 / 6)
    assert game_counts(evidence, 1, 0) == pytest.approx(game_counts(evidence, 0, 1)[::-1])


@pytest.mark.parametrize("counts", [(1, 2, 3), (1, 1, 1, 1, -1), (1, 1, 1, 1, float("nan"))])
def test_wrong_counts(counts: Sequence[float]) -> None:
    with pytest.raises(ValueError, match="counts"):
        of_pairs(counts)
    with pytest.raises(ValueError, match="counts"):
        of_games((*counts, 1.0))
