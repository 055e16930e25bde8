"""The Kalamala search: values, legal turns, limits, and the same results in plain Python."""

import json
import os
import random
import subprocess
import sys
from dataclasses import astuple
from itertools import pairwise
from typing import Any

import pytest

from referee.games.catalog import parse_game
from referee.games.kalamala import Kalamala, KalamalaState
from sample_bots.options import PURE_VARIABLE
from sample_bots.strong.compiled import COMPILED
from sample_bots.strong.engine import SearchLimits, SearchResult
from sample_bots.strong.kalamala.engine import KalamalaEngine
from sample_bots.strong.kalamala.evaluation import WIN, WON, value_of
from sample_bots.strong.kalamala.memory import ALL_FEATURES, USE_QUIESCENCE, USE_TABLE
from sample_bots.strong.kalamala.search import quiescence, search
from sample_bots.strong.kalamala.turns import count_lines
from tests.sample_bots.strong_kalamala import memory, set_up_state
from tests.support.tiers import slow

BITS = 12
"""A small table: positions do drop out of it."""


def game_of(spec: str = "kalamala") -> Kalamala:
    game = parse_game(spec)
    assert isinstance(game, Kalamala)
    return game


def states_of(game: Kalamala, seed: int, every: int) -> list[KalamalaState]:
    """Some states of a random game that are not over."""
    dice = random.Random(seed)
    state = game.initial_state()
    states = []
    while game.outcome(state) is None:
        if state.ply % every == 0:
            states.append(state)
        state = game.apply(state, dice.choice(game.legal_moves(state)))
    return states


def plain_value(game: Kalamala, state: KalamalaState, depth: int, ply: int = 0) -> int:
    """Minimax by the rule book, with the engine's evaluation; leaves do not look at rule 8, as its leaves do
    not."""
    if depth == 0 and state.ply < game.cap and game.legal_moves(state._replace(past=frozenset())):
        set_up_state(game, state)
        return int(value_of(memory(), 0, state.side))
    outcome = game.outcome(state)
    if outcome is not None:
        won = 0 if outcome.winner is None else 1 if outcome.winner is game.to_move(state) else -1
        return won * (WIN - ply)
    return max(
        -plain_value(game, game.apply(state, turn), depth - 1, ply + 1) for turn in game.legal_moves(state)
    )


def few_stones(game: Kalamala, seed: int) -> KalamalaState:
    """A state with few turns, and often with many boards that may not come again."""
    dice = random.Random(seed)
    for state in reversed(states_of(game, seed, 1)):
        if len(game.legal_moves(state)) > 2 and dice.random() < 0.3:
            return state
    raise AssertionError("no such state")


@pytest.mark.parametrize("seed", [*slow(0), 1, 2, 3, 4])
@pytest.mark.parametrize("spec", ["kalamala", "kalamala+ko=basic"])
def test_without_its_tricks_it_is_minimax(spec: str, seed: int) -> None:
    game = game_of(spec)
    state = few_stones(game, seed)
    depth = 3 if len(game.legal_moves(state)) < 14 else 2
    found = KalamalaEngine(game, BITS, features=0).search(state, SearchLimits(depth=depth))
    assert found.value == plain_value(game, state, found.depth)
    assert -plain_value(game, game.apply(state, found.move), found.depth - 1, 1) == found.value


@pytest.mark.parametrize("seed", range(2))
def test_cap_and_minimax(seed: int) -> None:
    """Lines that reach the cap, by some turns before it or exactly at the leaves."""
    long_game = game_of()
    state = few_stones(long_game, seed)
    for left in (1, 2, 3):
        game = game_of(f"kalamala+cap={state.ply + left}")
        found = KalamalaEngine(game, BITS, features=0).search(state, SearchLimits(depth=2))
        assert found.value == plain_value(game, state, found.depth)


@pytest.mark.slow
def test_table_and_quiescence_find_the_same_end() -> None:
    """Decided games are worth the same with everything that makes the search fast."""
    decided = 0
    for seed in range(18):
        game = game_of()
        state = states_of(game, seed, 1)[-3]
        if len(game.legal_moves(state)) > 25:
            continue
        value = plain_value(game, state, 3)
        if abs(value) < WON:
            continue
        decided += 1
        for features in (USE_TABLE, USE_QUIESCENCE, ALL_FEATURES):
            found = KalamalaEngine(game, BITS, features).search(state, SearchLimits(depth=5))
            assert found.value == value
            assert found.proven
    assert decided >= 3


@pytest.mark.slow
def test_a_turn_that_would_repeat_is_not_expected_of_the_opponent() -> None:
    """White moves, and Black's only answers are forbidden by rule 8: White has won, which no board alone
    tells."""
    game = game_of()
    wins = 0
    for seed in range(200):
        states = states_of(game, seed, 1)
        state = states[-1]  # the loser has no turn after the next one
        after = [game.apply(state, turn) for turn in game.legal_moves(state)]
        ended = [one for one in after if not game.legal_moves(one)]
        by_repetition = [one for one in ended if game.legal_moves(one._replace(past=frozenset()))]
        if not by_repetition or len(by_repetition) < len(ended):
            continue
        wins += 1
        found = KalamalaEngine(game, BITS, USE_TABLE | USE_QUIESCENCE).search(state, SearchLimits(depth=2))
        assert found.value == WIN - 1
        assert game.outcome(game.apply(state, found.move)) is not None
        forgetful = KalamalaEngine(game, BITS).search(state._replace(past=frozenset()), SearchLimits(depth=2))
        assert forgetful.value < WIN - 1
    assert wins >= 3


@pytest.mark.parametrize("spec", ["kalamala", "kalamala+ko=basic", "kalamala+ko=none", "kalamala+cap=70"])
def test_legal_in_every_state(spec: str) -> None:
    game = game_of(spec)
    engine = KalamalaEngine(game, BITS)
    for state in states_of(game, 5, 3):
        found = engine.search(state, SearchLimits(nodes=150))
        assert found.move in game.legal_moves(state)
        if found.line:
            assert found.line[0] == found.move
        for turn in found.line:
            state = game.apply(state, turn)  # raises unless the whole line is legal


def test_nodes_are_a_bound_and_deterministic() -> None:
    game = game_of()
    state = states_of(game, 3, 10)[2]
    engine = KalamalaEngine(game, BITS)
    first = engine.search(state, SearchLimits(nodes=5_000))
    # A removal's replies are followed to their end before the bound is looked at again.
    assert 5_000 <= first.nodes < 5_100
    engine.clear()
    assert engine.search(state, SearchLimits(nodes=5_000)) == first
    assert KalamalaEngine(game, BITS).search(state, SearchLimits(nodes=5_000)) == first
    assert engine.search(state, SearchLimits(nodes=5_000)).depth >= first.depth  # remembers


def test_depth_is_a_bound() -> None:
    game = game_of()
    state = game.initial_state()
    found = [KalamalaEngine(game, BITS).search(state, SearchLimits(depth=depth)) for depth in (1, 2, 3)]
    assert [one.depth for one in found] == [1, 2, 3]
    assert all(later.nodes > earlier.nodes for earlier, later in pairwise(found))


@pytest.mark.parametrize(
    ("limits", "depth"),
    [(SearchLimits(seconds=0.0), None), (SearchLimits(seconds=0.05), None), (SearchLimits(nodes=1), 0)],
)
def test_the_lowest_limits_end_a_search_with_a_move(limits: SearchLimits, depth: int | None) -> None:
    """Nothing else would, not for years."""
    game = game_of()
    found = KalamalaEngine(game, BITS).search(game.initial_state(), limits)
    assert found.move in game.legal_moves(game.initial_state())
    assert depth is None or (found.depth, found.nodes) == (0, 1)


def test_the_only_turn_is_not_searched() -> None:
    game = game_of()
    state = game.parse_state("......../......../......../......../..wb..../......../......../........:00:w")
    assert game.legal_moves(state) == ["d4-e4"]
    found = KalamalaEngine(game, BITS).search(state, SearchLimits())
    assert found == SearchResult("d4-e4", 0, 0, 0, False, ("d4-e4",))
    over = game.parse_state("......../......../......../......../......../.b....../......../w.......:00:w")
    with pytest.raises(ValueError, match="over"):
        KalamalaEngine(game, BITS).search(over, SearchLimits(depth=1))
    removal = game.parse_state("......../......../......../......../...w...b/......../..w...../....b...:00:w")
    assert KalamalaEngine(game, BITS).search(removal, SearchLimits(depth=4)).move == "h4-x"


def results(spec: str) -> list[Any]:
    """Results of searches in some states, for comparison between processes."""
    game = game_of(spec)
    engine = KalamalaEngine(game, BITS)
    found = [engine.search(state, SearchLimits(nodes=1_500)) for state in states_of(game, 11, 25)[:4]]
    found.append(engine.search(game.initial_state(), SearchLimits(depth=3)))
    return [list(astuple(one)) for one in found]


@pytest.mark.slow
@pytest.mark.skipif(not COMPILED, reason="compares the two")
@pytest.mark.parametrize("spec", ["kalamala", "kalamala+cap=60"])
def test_plain_python_finds_the_same(spec: str) -> None:
    call = f"print(json.dumps(results({spec!r})))"
    program = f"import json; from tests.sample_bots.test_strong_kalamala_search import results; {call}"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, PURE_VARIABLE: "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == json.loads(json.dumps(results(spec)))


@pytest.mark.skipif(not COMPILED, reason="about compiled kernels")
def test_kernels_that_call_themselves_are_compiled_once() -> None:
    """With a second signature (of a literal argument), numba's kept code crashes when it is loaded again."""
    KalamalaEngine.warm_up()
    kernels: tuple[Any, ...] = (search, quiescence, count_lines)
    for recursive in kernels:
        overloads: dict[Any, Any] = recursive.overloads
        assert len(overloads) <= 1
        assert "Literal" not in str(list(overloads))
