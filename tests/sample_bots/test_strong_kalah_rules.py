"""The rules in the Kalah kernels are those of the rule book, compiled and in plain Python."""

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from referee.games.catalog import parse_game
from referee.games.kalah import NORTH, EndRule, Kalah, KalahState, Phase
from sample_bots.strong.compiled import COMPILED, array_of
from sample_bots.strong.kalah import cell_board, packed_board
from sample_bots.strong.kalah.cell_board import UNIT, weights_of

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
    kernels: list[Callable[..., Any]] = [cell_board.play, cell_board.captured, cell_board.is_over]
    play, captured, is_over = map(plain, kernels) if how == "plain" else kernels
    ended = 0
    for state, pit, after in sowings(game, seed=6, games=5):
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
        passed = (pit - 1 + board[pit - 1] + p + 1) // (2 * p + 1)  # seeds sown into the store
        assert gain - passed == max(taken, 0)
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


# Packed boards.

SMALL = (
    *("manchester", "manchester+empty-capture", "bga", "bga(6,6)+pie+empty-capture", "kalah(1,1)"),
    *("kalah(1,5)", "kalah(1,100)", "kalah(2,3)", "kalah(2,60)+empty-capture", "kalah(3,12)+empty-capture"),
    *("kalah(4,9)", "kalah(5,25)", "kalah(6,21)", "kalah(7,1)", "kalah(7,18)+empty-capture"),
)
"""From the least to the most seeds of every number of pits, many with more than a lap in a pit."""


@pytest.mark.parametrize("spec", SMALL)
@pytest.mark.parametrize("how", ["as it is", "plain"])
def test_packed_sowings_are_those_in_cells(spec: str, how: str) -> None:
    def kernel(function: Any) -> Any:
        return plain(function) if how == "plain" else function

    game = parse_game(spec)
    assert isinstance(game, Kalah)
    assert packed_board.fits(game.pits, game.total_seeds)
    p, size, empty_capture = game.pits, 2 * game.pits, int(game.empty_capture)
    weights = weights_of(game)
    tables = packed_board.make_tables(p, weights)
    for state, move, _ in sowings(game, seed=6, games=5):
        board = seen_by_mover(game, state)
        pit = move - 1
        mine, theirs = packed_board.pack_half(board[:p]), packed_board.pack_half(board[p:])
        sides = sum(board[:p]), sum(board[p:])

        # The cells' rules, which are held to the rule book by a test of their own.
        cells = array_of([*board, *[99] * size], "int16")
        gain, again, own, other = cell_board.play(cells, 0, size, p, *sides, pit, empty_capture)
        after = [int(seeds) for seeds in cells[size:]]
        halves = (after[:p], after[p:]) if again else (after[p:], after[:p])
        played = kernel(packed_board.play)(mine, theirs, p, pit, empty_capture, tables)
        assert played == (gain, again, *map(packed_board.pack_half, halves))
        packed = [packed_board.pack_half(half) for half in halves]
        assert [kernel(packed_board.seed_count)(half) for half in packed] == [own, other]

        assert [kernel(packed_board.seeds_in)(mine, each) for each in range(p)] == board[:p]
        assert kernel(packed_board.occupied)(theirs) == sum(1 << each for each in range(p) if board[p + each])
        tactical = kernel(packed_board.tactical_moves)(mine, p, tables)
        for each in range(p):
            if board[each]:
                taken = 0
                if tactical >> each & 1:
                    taken = kernel(packed_board.captured)(theirs, p, each, board[each], empty_capture, tables)
                assert taken == cell_board.captured(cells, 0, p, p, each, empty_capture)
            else:
                assert not tactical >> each & 1
        guess = kernel(packed_board.evaluate)(mine, theirs, UNIT * sum(sides), tables)
        assert guess == cell_board.evaluate(cells, 0, p, *sides, weights)


@pytest.mark.parametrize(
    ("pits", "seeds", "fits"), [(7, 252, True), (7, 256, False), (1, 255, True), (8, 16, False)]
)
def test_what_fits(pits: int, seeds: int, fits: bool) -> None:
    assert packed_board.fits(pits, seeds) is fits


def test_no_two_positions_have_one_key() -> None:
    """Of the positions of random games, and of all that differ from one in two pits of the highest bytes."""
    game = parse_game("manchester")
    assert isinstance(game, Kalah)
    boards = {tuple(seen_by_mover(game, state)) for state, _, _ in sowings(game, seed=1, games=60)}
    boards |= {(*[5] * 6, a, *[5] * 6, b) for a in range(60) for b in range(60)}
    boards |= {(*[5] * 5, a, b, *[5] * 7) for a in range(60) for b in range(60)}
    keys = {
        packed_board.key_of(packed_board.pack_half(list(board[:7])), packed_board.pack_half(list(board[7:])))
        for board in boards
    }
    assert len(keys) == len(boards) > 7_000
    assert all(0 <= key < 1 << 62 for key in keys)
    board = next(iter(boards))
    halves = packed_board.pack_half(list(board[:7])), packed_board.pack_half(list(board[7:]))
    assert plain(packed_board.key_of)(*halves) == packed_board.key_of(*halves)
