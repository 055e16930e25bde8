"""Scores of matches, compared with those that fastchess prints, and comparisons of two bots."""

import tomllib
from collections.abc import Sequence
from dataclasses import astuple
from itertools import combinations
from math import inf, isfinite, isnan
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.analysis.games import game, pair_of
from tests.results.test_agreement import GAMES, NAMES, fill
from tests.support.builders import invoke, one_object
from tests.support.paths import TEST_DATA
from tests.support.ratings import recorded_intervals
from tournaments.analysis.comparison import compare
from tournaments.analysis.evidence import evidence_of
from tournaments.analysis.ratings.pentanomial import (
    MatchScore,
    game_counts,
    of_games,
    of_pairs,
    pair_counts,
)
from tournaments.analysis.ratings.ratings import rate
from tournaments.results.game_summary import GameSummary

RESULTS = st.sampled_from([0, 1, None])
PAIRS = st.lists(st.tuples(RESULTS, RESULTS), max_size=30)


def games_of(pairs: list[tuple[int | None, int | None]], *bots: str) -> list[GameSummary]:
    """Pairs of games between two bots, each game different."""
    return [
        game
        for number, winners in enumerate(pairs)
        for game in pair_of(number, (f"{number}a", f"{number}b"), winners, bots or ("ann", "bob"))  # type: ignore[arg-type]
    ]


def test_by_hand() -> None:
    found = compare(["ann", "bob"], games_of([(0, 1), (0, 0), (None, 1)]), "ann", "bob")
    assert (found.wins, found.draws, found.losses, found.unique) == (4, 1, 1, 6)
    assert list(found.pairs) == [0, 0, 1, 1, 1]
    assert found.match == of_pairs((0, 0, 1, 1, 1))
    assert found.superiority is not None
    assert 0.5 < found.superiority < 1
    # There are no other games than these, so the whole tournament gives the same numbers.
    assert found.difference == (found.match.elo, found.match.elo_low, found.match.elo_high)


@given(PAIRS)
def test_exchanging_the_bots_mirrors(pairs: list[tuple[int | None, int | None]]) -> None:
    games = games_of(pairs)
    one, other = (compare(["ann", "bob"], games, *names) for names in (("ann", "bob"), ("bob", "ann")))
    assert (one.wins, one.draws, one.unique) == (other.losses, other.draws, other.unique)
    assert one.pairs == other.pairs[::-1]
    assert one.superiority is not None
    assert other.superiority is not None
    assert one.superiority == pytest.approx(1 - other.superiority, abs=1e-9)
    if one.difference is not None and other.difference is not None:
        assert one.difference.value == pytest.approx(-other.difference.value, abs=1e-6)
        assert one.difference.low == pytest.approx(-other.difference.high, abs=1e-3)


def test_bots_that_never_met_are_compared_by_their_other_games() -> None:
    games = games_of([(0, 1)] * 5, "ann", "cid") + games_of([(1, 0)] * 5, "bob", "cid")
    names = ["ann", "bob", "cid"]
    found = compare(names, games, "ann", "bob")
    assert (found.wins, found.draws, found.losses, found.unique) == (0, 0, 0, 0)
    assert found.superiority is not None
    assert found.superiority > 0.95
    assert found.difference is not None
    rated = rate(evidence_of(names, games), anchor=1)
    assert found.difference.value == pytest.approx(float(rated.rating[0]))
    assert found.to_json()["match"]["elo"] is None
    assert "from these" not in found.to_text()


@pytest.mark.parametrize(("is_adaptive", "needed"), [(False, 1), (True, 0)])
def test_a_comparison_computes_one_interval_at_most(
    monkeypatch: pytest.MonkeyPatch, is_adaptive: bool, needed: int
) -> None:
    names = [f"bot {number}" for number in range(9)]
    games = [one for pair in combinations(names, 2) for one in games_of([(0, 0), (0, 1)], *pair)]
    whole = rate(evidence_of(names, games), anchor=5)
    computed = recorded_intervals(monkeypatch)
    difference = compare(names, games, names[2], names[5], is_adaptive=is_adaptive).difference
    assert computed[1:] == [needed]
    ends_of_bot = (-inf, inf) if is_adaptive else (whole.low[2], whole.high[2])
    assert difference == pytest.approx((whole.rating[2], *ends_of_bot), abs=1e-9)


def test_the_command(tmp_path: Path) -> None:
    folder = fill(tmp_path, {pairing.key: (0, False, pairing.key[-1]) for pairing in GAMES}, [])
    shown = invoke("tournament", "compare", folder, NAMES[0], NAMES[1])
    assert shown.exit_code == 0
    assert shown.stdout.startswith("ann against bob: 4 games, 2 of them unique\n  won 2, drawn 0, lost 2\n")
    found = one_object(invoke("tournament", "compare", folder, "ann", "bob", "--json").stdout)
    assert found["pairs"] == [0, 0, 1, 0, 0]
    assert found["likelihood_of_superiority"] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("bots", "status", "message"),
    [
        (("ann", "bobb"), 2, "there is no bot 'bobb' here; did you mean 'bob'?"),
        (("ann", "ann"), 2, "two different bots are needed"),
        (("ann", "bob"), 0, "ann against bob: 0 games, 0 of them unique\n  won 0, drawn 0, lost 0\n"),
    ],
)
def test_the_command_before_the_first_game(
    tmp_path: Path, bots: tuple[str, str], status: int, message: str
) -> None:
    done = invoke("tournament", "compare", fill(tmp_path, {}, []), *bots)
    assert done.exit_code == status
    assert (done.stderr == "") == (status == 0)
    assert message in done.output


# Scores of matches

DATA = TEST_DATA / "ratings"
MATCHES = tomllib.loads((DATA / "matches.toml").read_text())
COUNTS = st.lists(st.integers(0, 50), min_size=5, max_size=5)


def assert_printed(found: MatchScore, case: dict[str, Any]) -> None:
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
    assert_printed(of_pairs(case["counts"]), case)


@pytest.mark.parametrize("case", MATCHES["games"], ids=lambda case: str(case["counts"]))
def test_games(case: dict[str, Any]) -> None:
    assert_printed(of_games(case["counts"]), case)


def test_six_to_nil_is_not_certain() -> None:
    found = of_pairs((0, 0, 0, 0, 3))
    assert found.elo > 200
    assert found.elo_low < 0
    assert of_pairs((0, 0, 0, 0, 300)).elo_low > found.elo_low


@given(COUNTS)
@example([0, 0, 0, 0, 3])
@example([0, 0, 1, 0, 0])
@example([0, 0, 0, 1, 30])
def test_scores_are_finite_and_exchanging_players_mirrors(counts: list[int]) -> None:
    found, mirrored = of_pairs(counts), of_pairs(counts[::-1])
    if sum(counts) == 0:
        assert isnan(found.score)
        assert isnan(found.elo)
        assert found.superiority == 0.5
        return
    assert all(isfinite(value) for value in astuple(found))
    assert found.normalized_low <= found.normalized_elo <= found.normalized_high
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
