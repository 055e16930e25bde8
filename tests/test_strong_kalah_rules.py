"""The kernels' rules are the rule book's, compiled and in plain Python."""

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from referee.games.catalog import parse_game
from referee.games.kalah import NORTH, EndRule, Kalah, KalahState, Phase
from sample_bots.strong.compiled import COMPILED, array_of
from sample_bots.strong.kalah import cell_board

VARIANTS = (
    *(
        "manchester",
        "manchester+end=on-turn",
        "manchester+empty-capture",
        "bga",
        "bga(6,6)+pie+empty-capture",
    ),
    *(
        "kalah(1,1)",
        "kalah(1,5)",
        "kalah(2,3)+end=on-turn",
        "kalah(3,12)+empty-capture",
        "kalah(4,9)+end=on-turn",
    ),
    *("kalah(6,4)", "kalah(12,1)", "kalah(30,1)", "kalah(30,100)", "kalah(5,100)+empty-capture"),
)


def plain(kernel: Any) -> Callable[..., Any]:
    """The kernel as plain Python runs it."""
    return kernel.py_func if COMPILED else kernel  # type: ignore[no-any-return]


def seen_by_mover(game: Kalah, state: KalahState) -> list[int]:
    p = game.pits
    north, south = list(state.board[:p]), list(state.board[p + 1 : -1])
    return north + south if state.seat == NORTH else south + north


def sowings(game: Kalah, seed: int, games: int) -> Iterator[tuple[KalahState, int, KalahState]]:
    """Every sowing of some random games, in the middle of the game: state, pit, state."""
    dice = random.Random(seed)
    for _ in range(games):
        state = game.initial_state()._replace(phase=Phase.PLAY)
        for _ in range(400):
            if state.phase is Phase.OVER:
                break
            pit = dice.choice(game.legal_moves(state))
            after = game.apply(state, pit)
            yield state, pit, after
            state = after


@pytest.mark.parametrize("spec", VARIANTS)
@pytest.mark.parametrize("how", ["as it is", "plain"])
def test_every_sowing_of_random_games(spec: str, how: str) -> None:
    game = parse_game(spec)
    assert isinstance(game, Kalah)
    p, size = game.pits, 2 * game.pits
    on_turn, empty_capture = int(game.end is EndRule.ON_TURN), int(game.empty_capture)
    play, captured, is_over = cell_board.play, cell_board.captured, cell_board.is_over
    if how == "plain":
        play, captured, is_over = plain(play), plain(captured), plain(is_over)
    ended = 0
    for state, pit, after in sowings(game, seed=6, games=12):
        board = seen_by_mover(game, state)
        numbers = [*board, *[99] * size]
        cells = numbers if how == "plain" else array_of(numbers, "int16")
        taken = captured(cells, 0, p, p, pit - 1, empty_capture)
        gain, again, own, other = play(
            cells, 0, size, p, sum(board[:p]), sum(board[p:]), pit - 1, empty_capture
        )
        result = [int(seeds) for seeds in cells[size:]]
        assert [int(seeds) for seeds in cells[:size]] == board
        mine, theirs = (result[:p], result[p:]) if again else (result[p:], result[:p])
        assert (sum(mine), sum(theirs)) == (own, other)
        assert again == (after.seat == state.seat)
        assert (taken == -1) == bool(again)
        assert taken <= gain  # what is captured goes to the store, at once
        # K6 ends games earlier; K5 must be found in just the others.
        over = is_over(own, other, on_turn) if again else is_over(other, own, on_turn)
        store, other_store = (p, -1) if state.seat == NORTH else (-1, p)
        if over and not (after.phase is Phase.OVER and any(after.board[:p] + after.board[p + 1 : -1])):
            assert after.phase is Phase.OVER
            assert after.board[store] == state.board[store] + gain + own
            assert after.board[other_store] == state.board[other_store] + other
            ended += 1
        else:
            assert after.board[store] == state.board[store] + gain
            assert after.board[other_store] == state.board[other_store]
            assert seen_by_mover(game, after) == result
            assert after.phase is Phase.PLAY or game.majority_end
    assert ended or game.majority_end or game.total_seeds > 1000


@pytest.mark.parametrize("spec", ["manchester", "kalah(3,12)+empty-capture", "kalah(2,3)", "kalah(4,9)"])
def test_captures_are_foreseen_exactly(spec: str) -> None:
    """What is said to be captured is what the store gets beyond the seeds sown into it."""
    game = parse_game(spec)
    assert isinstance(game, Kalah)
    p = game.pits
    captures = 0
    for state, pit, after in sowings(game, seed=7, games=20):
        if after.phase is Phase.OVER:
            continue
        board = seen_by_mover(game, state)
        taken = cell_board.captured(array_of(board, "int16"), 0, p, p, pit - 1, int(game.empty_capture))
        store = p if state.seat == NORTH else -1
        passed = (pit - 1 + board[pit - 1] + p + 1) // (2 * p + 1)
        assert after.board[store] - state.board[store] - passed == max(taken, 0)
        captures += taken > 0
    assert captures > 0
