"""Move sequences counted from the start, against the table in data/kalah_perft.toml."""

import tomllib
from typing import Any

import pytest

from referee.games.catalog import parse_game
from referee.games.perft import perft
from tests.games.naive_kalah import NaiveKalah, Rules, naive_perft
from tests.support.paths import TEST_DATA

_TABLE = tomllib.loads((TEST_DATA / "kalah_perft.toml").read_text(encoding="utf-8"))
VARIANTS: list[dict[str, Any]] = _TABLE["variant"]

NAIVE_LIMIT = 2000
"""Sequences that the naive game counts in about 0.1 s: it copies itself at every ply."""
QUICK_LIMIT = 100_000
"""Sequences that the rule book counts in about 0.1 s."""


@pytest.mark.parametrize(
    ("spec", "depth", "expected"),
    [
        pytest.param(
            variant["spec"],
            depth,
            expected,
            id=f"{variant['spec']}-depth{depth}",
            marks=[pytest.mark.slow] if expected > QUICK_LIMIT else [],
        )
        for variant in VARIANTS
        for depth, expected in enumerate(variant["counts"], start=1)
    ],
)
def test_perft(spec: str, depth: int, expected: int) -> None:
    game = parse_game(spec)
    assert perft(game, game.initial_state(), depth) == expected


def test_table_is_complete() -> None:
    # Twelve lines of the rule book: seven with one variant, five with four columns; and the sentence
    # that the end rule does not matter on full-size boards, three variants.
    specs = [variant["spec"] for variant in VARIANTS]
    assert len(specs) == len(set(specs)) == 7 + 5 * 4 + 3
    assert all(len(variant["counts"]) >= 6 for variant in VARIANTS)


@pytest.mark.slow
def test_end_rule_makes_no_difference_to_depth_8() -> None:
    # The rule book's sentence below the table; it gives no number for depth 8.
    either, on_turn = (parse_game(f"kalah(6,4)+end={end}") for end in ("either", "on-turn"))
    assert perft(either, either.initial_state(), 8) == perft(on_turn, on_turn.initial_state(), 8)


def test_perft_of_nothing_and_of_a_finished_game() -> None:
    game = parse_game("kalah(1,1)")
    state = game.initial_state()
    assert perft(game, state, 0) == 1
    # South's only seed goes into the store and the game is over: no continuation.
    assert perft(game, state, 1) == 1
    assert perft(game, state, 2) == 0


@pytest.mark.parametrize(
    ("spec", "rules"),
    [
        ("kalah(6,4)", Rules(6, 4)),
        ("kalah(6,4)+pie", Rules(6, 4, pie=True)),
        ("manchester", Rules(7, 7, pie=True, first_move_repeats=False)),
        ("kalah(3,3)+end=on-turn", Rules(3, 3, end="on-turn")),
        ("kalah(3,3)+end=on-turn+majority-end", Rules(3, 3, end="on-turn", majority_end=True)),
        ("kalah(3,3)+pie+first-move-repeats=no", Rules(3, 3, pie=True, first_move_repeats=False)),
        ("kalah(4,1)", Rules(4, 1)),
        ("kalah(4,1)+majority-end", Rules(4, 1, majority_end=True)),
        (
            "kalah(4,1)+pie+first-move-repeats=no+empty-capture",
            Rules(4, 1, pie=True, first_move_repeats=False, empty_capture=True),
        ),
    ],
)
@pytest.mark.slow
def test_naive_implementation_counts_the_same(spec: str, rules: Rules) -> None:
    counts = next(variant["counts"] for variant in VARIANTS if variant["spec"] == spec)
    shallow = [count for count in counts if count <= NAIVE_LIMIT]
    assert len(shallow) >= 3
    for depth, expected in enumerate(shallow, start=1):
        assert naive_perft(NaiveKalah(rules), depth) == expected
