"""The contract of referee.games.base.Game (referee/games/contract.py), on every registered game.

A new game needs a line in VARIANTS (a test fails otherwise) and, if it has moves that are never legal
or a notation with several spellings, one in MORE_MOVES.
"""

import random
from functools import cache
from typing import Any

import pytest

from referee.games import contract
from referee.games.base import IllegalMoveError
from referee.games.catalog import DEFAULT_GAME, GAMES, parse_game
from referee.games.spec import parse_spec
from tests.support.tiers import slow

VARIANTS: dict[str, list[str]] = {
    "manchester": [
        "manchester",
        "manchester(1,1)",
        "manchester(6,4)+end=on-turn",
        "manchester(3,5)+first-move-repeats",
        "manchester+pie=no",
    ],
    "bga": ["bga", "bga(6,6)+pie+empty-capture", "bga(3,3)+end=either", "bga(4,2)+first-move-repeats=no+pie"],
    "kalah": [
        "kalah(6,4)",
        "kalah(1,1)+end=on-turn",
        "kalah(1,40)",
        "kalah(2,9)+pie",
        "kalah(3,3)+pie+first-move-repeats=no+majority-end",
        "kalah(30,2)+majority-end+empty-capture",
        "kalah(4,1)+pie+end=on-turn+empty-capture",
    ],
    "kalamala": [
        "kalamala",
        "kalamala+cap=60",
        "kalamala+ko=basic+cap=60",
        "kalamala+ko=none+cap=60",
        "kalamala+cap=1",
    ],
}
"""Spec texts for each name of GAMES."""

KALAHS = ("manchester", "bga", "kalah")

MORE_MOVES: dict[str, list[str]] = {
    **{name: ["SWAP", "1", "2", "3", "4", "5", "6", "7", "8", "30", "31", "2147483647"] for name in KALAHS},
    "kalamala": ["a1", "d4", "h8", "a1-x", "h8-x", "a1b2-c3d4", "a1b1-xx", "a1-h8", "d4-d5", "e3-f3"],
}
"""Moves in form that need not be legal anywhere; the suite adds all that its playouts meet."""

SPECS = [spec for specs in VARIANTS.values() for spec in specs]
LONG = ("kalamala",)
"""Their games have hundreds of plies, and the checks look at each: the quick tier has shorter ones."""
every_variant = pytest.mark.parametrize("spec", [*(spec for spec in SPECS if spec not in LONG), *slow(*LONG)])


@cache
def playouts(spec: str) -> list[contract.Playout]:
    return contract.playouts(parse_game(spec))


def steps_of(spec: str) -> list[tuple[Any, Any]]:
    """The states of all random games of a variant, each with its move; None with the last of a game."""
    return [step for steps in playouts(spec) for step in steps]


def name_of(spec: str) -> str:
    return spec.partition("(")[0].partition("+")[0]


def test_every_registered_game_and_option_is_in_the_suite() -> None:
    assert set(VARIANTS) == set(GAMES), "each name in referee.games.catalog.GAMES needs VARIANTS here"
    assert set(MORE_MOVES) <= set(VARIANTS)
    assert DEFAULT_GAME in GAMES
    for name, entry in GAMES.items():
        assert entry.about
        assert parse_spec(parse_game(entry.example).name).name == name
        assert [name_of(spec) for spec in VARIANTS[name]] == [name] * len(VARIANTS[name])
        for option, texts in entry.options.items():
            assert all(texts)
            assert any(f"+{option}" in spec for spec in SPECS), (name, option)


@every_variant
@pytest.mark.parametrize("check", contract.CHECKS, ids=lambda check: check.__name__)
def test_each_variant_keeps_the_contract(spec: str, check: contract.Check) -> None:
    check(parse_game(spec), playouts(spec))


@every_variant
def test_a_name_is_a_spec_of_the_same_game(spec: str) -> None:
    game = parse_game(spec)
    again = parse_game(game.name)
    assert (again, again.name) == (game, game.name)


@every_variant
def test_moves_that_are_never_or_not_yet_legal_are_refused(spec: str) -> None:
    game, dice = parse_game(spec), random.Random(spec)
    start = game.initial_state()
    listed = [game.parse_move(start, text) for text in MORE_MOVES[name_of(spec)]]
    for steps in playouts(spec):
        state = dice.choice(steps)[0]
        for move in set(listed) - set(game.legal_moves(state)):
            with pytest.raises(IllegalMoveError) as error:
                game.apply(state, move)
            assert error.value.fault
            assert error.value.message


def test_the_suite_meets_caps_regular_ends_swaps_and_extra_turns() -> None:
    """Otherwise the tests above would pass without having seen them."""
    met: set[str] = set()
    for spec in SPECS:
        game = parse_game(spec)
        for state, move in steps_of(spec):
            outcome = game.outcome(state)
            if outcome is not None:
                met.add(outcome.reason)
            elif game.swap is not None and move == game.swap:
                met.add("swap")
            elif game.to_move(game.apply(state, move)) is game.to_move(state):
                met.add("again")
    assert met == {"score", "turn-cap", "swap", "again"}
