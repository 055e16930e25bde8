"""The simple sample bots in this process: search, evaluation, players, and their comparison."""

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from referee.games.base import Side
from referee.games.catalog import GAMES, AnyGame, parse_game
from referee.games.kalah import SWAP, Kalah
from referee.games.kalamala import Kalamala
from referee.games.spec import SpecError
from sample_bots import first_move, greedy
from sample_bots.compare import COMPARED, PLAYERS, main, points
from sample_bots.evaluation import (
    EVALUATIONS,
    STONE,
    evaluation_of,
    no_opinion,
    stones_left,
    store_difference,
)
from sample_bots.random_bot import random_mover
from sample_bots.search import DECIDED, AlphaBeta, Evaluation, static_value
from tests.support.tiers import slow

KALAMALA = parse_game("kalamala")
MANCHESTER = parse_game("manchester")
SMALL_GAMES = [
    "kalah(3,2)",
    "kalah(3,2)+pie",
    "kalah(2,3)+pie+first-move-repeats=no",
    "kalah(3,3)+majority-end",
    "bga(3,2)+pie+empty-capture",
    "manchester(4,2)",
    "manchester(1,3)",
]


def brute_force(game: AnyGame, state: Any, depth: int, evaluate: Evaluation) -> int:
    """The value for FIRST by a search without cutoffs."""
    if depth == 0 or game.outcome(state) is not None:
        return static_value(game, state, Side.FIRST, evaluate)
    values = [
        brute_force(game, game.apply(state, move), depth - 1, evaluate) for move in game.legal_moves(state)
    ]
    return max(values) if game.to_move(state) is Side.FIRST else min(values)


def walk(game: AnyGame, choices: list[int]) -> Any:
    """The state after some moves, each chosen by a number; stops at the end of the game."""
    state = game.initial_state()
    for choice in choices:
        if moves := game.legal_moves(state):
            state = game.apply(state, moves[choice % len(moves)])
    return state


def check_search(game: AnyGame, state: Any, depth: int) -> None:
    """The search returns the value of brute force, and a move that is worth as much."""
    if game.outcome(state) is not None:
        return
    evaluate = evaluation_of(game)
    move, value = AlphaBeta(game, evaluate).best(state, depth)
    for_first = value if game.to_move(state) is Side.FIRST else -value
    assert for_first == brute_force(game, state, depth, evaluate)
    assert for_first == brute_force(game, game.apply(state, move), depth - 1, evaluate)
    assert AlphaBeta(game, evaluate).best(state, depth) == (move, value)


@settings(max_examples=60)
@given(
    spec=st.sampled_from(SMALL_GAMES),
    choices=st.lists(st.integers(0, 11), max_size=10),
    depth=st.integers(1, 5),
)
def test_search_equals_brute_force(spec: str, choices: list[int], depth: int) -> None:
    game = parse_game(spec)
    check_search(game, walk(game, choices), depth)


@pytest.mark.parametrize(
    ("seed", "plies", "depth"), [(1, 0, 1), (1, 9, 1), *((seed, 60, 2) for seed in range(4))]
)
def test_search_equals_brute_force_at_kalamala(seed: int, plies: int, depth: int) -> None:
    dice = random.Random(seed)
    check_search(KALAMALA, walk(KALAMALA, [dice.randrange(1000) for _ in range(plies)]), depth)


# Irving, Donkers and Uiterwijk, Solving Kalah, Table 10: first player's result for 1, 2, ... seeds.
PUBLISHED = {1: "DLWLWD", 2: "WLLLWW", 3: "DW"}


@pytest.mark.parametrize("pits", PUBLISHED)
def test_search_to_the_end_finds_the_published_results(pits: int) -> None:
    for seeds, result in enumerate(PUBLISHED[pits], start=1):
        game = parse_game(f"kalah({pits},{seeds})+empty-capture")
        _, value = AlphaBeta(game, evaluation_of(game)).best(game.initial_state(), 1000)
        assert ("W" if value > 0 else "L" if value < 0 else "D") == result
        assert value == 0 or abs(value) > DECIDED


def test_search_maximises_the_margin_of_a_decided_game() -> None:
    game = parse_game("kalah(2,2)")
    assert AlphaBeta(game, no_opinion).best(game.initial_state(), 1000)[1] == -DECIDED - 2  # published: -2


def test_search_refuses_a_finished_game() -> None:
    game = parse_game("kalah(1,1)")
    with pytest.raises(ValueError, match="the game is over"):
        AlphaBeta(game, no_opinion).best(walk(game, [0] * 10), 3)


def test_opener_sees_the_swap() -> None:
    """Every opening is worth one seed after one ply; two plies ahead the seed is the swapper's."""
    search = AlphaBeta(MANCHESTER, evaluation_of(MANCHESTER))
    assert [search.best(MANCHESTER.initial_state(), depth)[1] for depth in (1, 2)] == [1, -1]


# Evaluation.


def test_every_game_has_an_evaluation() -> None:
    for name in GAMES:
        try:
            game = parse_game(name)
        except SpecError:  # needs a board
            game = parse_game(f"{name}(4,3)")
        assert type(game) in EVALUATIONS, f"add an evaluation for {name}"


def test_store_difference_follows_the_swap() -> None:
    assert isinstance(MANCHESTER, Kalah)
    after_opening = MANCHESTER.apply(MANCHESTER.initial_state(), 3)
    swapped = MANCHESTER.apply(after_opening, SWAP)
    assert [store_difference(MANCHESTER, after_opening, side) for side in Side] == [1, -1]
    assert [store_difference(MANCHESTER, swapped, side) for side in Side] == [-1, 1]


EMPTY_ROWS = "/".join(["." * 8] * 7)


@pytest.mark.parametrize(
    ("rows", "reserves", "least", "most"),
    [
        (f"{EMPTY_ROWS}/........", "11", 0, 0),
        (f"{EMPTY_ROWS}/b.......", "11", -STONE, -STONE),
        (f"{EMPTY_ROWS}/b......w", "01", -STONE, -STONE),
        (f"{EMPTY_ROWS}/.......b", "20", STONE, STONE),
        # A step from the edge; the whole centre is worth less than a stone.
        ("......../...w..../......../......../......../.......b/......../........", "00", 1, 1),
        (f"{EMPTY_ROWS[:26]}/..wwww../..wwww../{EMPTY_ROWS[:26]}", "00", 8 * STONE + 1, 9 * STONE - 1),
    ],
)
def test_stones_count_anywhere_and_the_centre_decides_among_equals(
    rows: str, reserves: str, least: int, most: int
) -> None:
    assert isinstance(KALAMALA, Kalamala)
    state = KALAMALA.parse_state(f"{rows}:{reserves}:w")
    first, second = (stones_left(KALAMALA, state, side) for side in Side)
    assert least <= first == -second <= most


def test_unknown_games_are_searched_by_their_results_alone() -> None:
    class OtherGame(Kalah):
        pass

    game = OtherGame(**vars(parse_game("kalah(2,2)")))
    assert evaluation_of(game) is no_opinion
    assert AlphaBeta(game, evaluation_of(game)).best(game.initial_state(), 1)[1] == 0


# Players.


@pytest.mark.parametrize(
    ("position", "move"),
    [
        # The capture of 5 by pit 1 is worth more than the extra turn of pit 3.
        ("1,4,1,1,1,0,1,3;South", 1),
        # One seed either way: the extra turn of pit 3 is preferred.
        ("2,2,2,0,0,3,1,2;South", 3),
        # All the same: the lowest.
        ("2,2,0,0,4,3,0,1;South", 1),
    ],
)
def test_greedy_prefers(position: str, move: int) -> None:
    game = parse_game("kalah(3,2)")
    assert greedy.choose(game, game.parse_state(position)) == move


def test_players_at_a_swap() -> None:
    state = MANCHESTER.apply(MANCHESTER.initial_state(), 4)
    assert greedy.choose(MANCHESTER, state) == SWAP  # the better seat
    assert first_move.choose(MANCHESTER, state) == 1
    assert first_move.choose(MANCHESTER, MANCHESTER.apply(state, SWAP)) == 1
    chosen = {random_mover(seed)(MANCHESTER, state) for seed in range(200)}
    assert chosen == set(MANCHESTER.legal_moves(state))


def test_random_without_a_seed_differs_from_run_to_run() -> None:
    game = parse_game("manchester(12,3)")
    games = [[random_mover(None)(game, game.initial_state()) for _ in range(40)] for _ in range(2)]
    assert games[0] != games[1]


# Measured with 100 openings (sample_bots/README.md): 198, 192 and 175 of 200 at manchester.
@pytest.mark.parametrize(
    ("game", "stronger", "weaker", "openings"),
    [
        (MANCHESTER, "greedy", "random", 8),
        (MANCHESTER, "minimax:4", "greedy", 8),
        *slow((MANCHESTER, "minimax:4", "minimax:2", 20)),
        (KALAMALA, "greedy", "first_legal", 2),
        *slow((KALAMALA, "greedy", "random", 4), (KALAMALA, "minimax:2", "random", 4)),
    ],
)
def test_strength(game: AnyGame, stronger: str, weaker: str, openings: int) -> None:
    assert points(game, PLAYERS[stronger], PLAYERS[weaker], openings) > 0.6 * 2 * openings


def test_compare_prints_pairs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["1", "kalah(3,2)+pie"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.count("\n") == len(COMPARED) * (len(COMPARED) - 1) // 2
    assert "kalah(3,2)+pie: greedy scores" in out
    assert main(["1", "kalamala+cap=30", "first_legal", "greedy"]) == 0
    assert capsys.readouterr().out.startswith("kalamala+cap=30: greedy scores ")
    assert main(["1", "kalamala", "first_legal", "chess"]) == 2
    assert "no player chess; there are first_legal, random" in capsys.readouterr().err
