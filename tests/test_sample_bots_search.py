"""The sample bots' thinking, inside this process: search, evaluation, strength."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from referee.games.base import Side
from referee.games.catalog import GAMES, AnyGame, parse_game
from referee.games.kalah import SWAP, Kalah
from referee.games.spec import SpecError
from sample_bots import first_move, greedy
from sample_bots.compare import COMPARED, PLAYERS, main, play, points
from sample_bots.evaluation import EVALUATIONS, evaluation_of, no_opinion, store_difference
from sample_bots.minimax import minimax_mover
from sample_bots.random_bot import random_mover
from sample_bots.search import DECIDED, AlphaBeta, Evaluation, static_value

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
    """The value for FIRST, by looking at everything."""
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


@given(
    spec=st.sampled_from(SMALL_GAMES),
    choices=st.lists(st.integers(0, 11), max_size=10),
    depth=st.integers(1, 5),
)
def test_search_equals_brute_force(spec: str, choices: list[int], depth: int) -> None:
    game = parse_game(spec)
    state = walk(game, choices)
    if game.outcome(state) is not None:
        return
    evaluate = evaluation_of(game)
    move, value = AlphaBeta(game, evaluate).best(state, depth)
    for_first = value if game.to_move(state) is Side.FIRST else -value
    assert for_first == brute_force(game, state, depth, evaluate)
    # The move is one of those that are worth as much.
    assert for_first == brute_force(game, game.apply(state, move), depth - 1, evaluate)
    assert AlphaBeta(game, evaluate).best(state, depth) == (move, value)


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
    state = walk(game, [0] * 10)
    assert game.outcome(state) is not None
    with pytest.raises(ValueError, match="the game is over"):
        AlphaBeta(game, no_opinion).best(state, 3)


def test_opener_sees_the_swap() -> None:
    # Every opening is worth one seed after one ply; seen two plies ahead it is the swapper's seed.
    game = parse_game("manchester")
    search = AlphaBeta(game, evaluation_of(game))
    assert search.best(game.initial_state(), 1)[1] == 1
    assert search.best(game.initial_state(), 2)[1] == -1


# --- evaluation -----------------------------------------------------------------------------------


def test_every_game_has_an_evaluation() -> None:
    for name in GAMES:
        try:
            game = parse_game(name)
        except SpecError:  # needs a board
            game = parse_game(f"{name}(4,3)")
        assert type(game) in EVALUATIONS, f"add an evaluation for {name}"


def test_store_difference_follows_the_swap() -> None:
    game = parse_game("manchester")
    assert isinstance(game, Kalah)
    after_opening = game.apply(game.initial_state(), 3)
    swapped = game.apply(after_opening, SWAP)
    assert [store_difference(game, after_opening, side) for side in Side] == [1, -1]
    assert [store_difference(game, swapped, side) for side in Side] == [-1, 1]


def test_unknown_games_are_searched_by_their_results_alone() -> None:
    class OtherGame(Kalah):
        pass

    game = OtherGame(**vars(parse_game("kalah(2,2)")))
    assert evaluation_of(game) is no_opinion
    assert AlphaBeta(game, evaluation_of(game)).best(game.initial_state(), 1)[1] == 0


# --- the players ----------------------------------------------------------------------------------


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


def test_greedy_takes_the_better_seat() -> None:
    game = parse_game("manchester")
    assert greedy.choose(game, game.apply(game.initial_state(), 4)) == SWAP


def test_random_plays_every_legal_move() -> None:
    game = parse_game("manchester")
    state = game.apply(game.initial_state(), 4)
    assert {random_mover(seed)(game, state) for seed in range(200)} == set(game.legal_moves(state))


def test_random_without_a_seed_differs_from_run_to_run() -> None:
    game = parse_game("manchester(12,3)")
    state = game.initial_state()
    assert (
        len({tuple(choose(game, state) for _ in range(20)) for choose in map(random_mover, [None] * 3)}) > 1
    )


def test_first_legal_in_this_process() -> None:
    game = parse_game("manchester")
    after_opening = game.apply(game.initial_state(), 1)
    assert first_move.choose(game, after_opening) == 1
    assert first_move.choose(game, game.apply(after_opening, SWAP)) == 1


# Measured at manchester with 100 openings (sample_bots/README.md): 198, 192 and 175 of 200.
@pytest.mark.parametrize(
    ("stronger", "weaker", "share"),
    [("greedy", "random", 0.6), ("minimax:4", "greedy", 0.6), ("minimax:4", "minimax:2", 0.6)],
)
def test_strength(stronger: str, weaker: str, share: float) -> None:
    openings = 20
    won = points(parse_game("manchester"), PLAYERS[stronger], PLAYERS[weaker], openings)
    assert won > share * 2 * openings


def test_players_are_deterministic() -> None:
    game = parse_game("manchester(6,4)")

    def result() -> object:
        return play(game, (minimax_mover(3), random_mover(5)), game.initial_state())

    assert result() == result()


def test_compare_prints_every_pair(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["1", "kalah(3,2)+pie"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.count("\n") == len(COMPARED) * (len(COMPARED) - 1) // 2
    assert "kalah(3,2)+pie: greedy scores" in out
