"""Packed boards follow the same rules as boards in cells, compiled and in plain Python."""

from typing import Any

import pytest

from referee.games.catalog import parse_game
from referee.games.kalah import Kalah
from sample_bots.strong.compiled import array_of
from sample_bots.strong.kalah import cell_board, packed_board
from sample_bots.strong.kalah.cell_board import UNIT, weights_of
from tests.test_strong_kalah_rules import plain, seen_by_mover, sowings

SMALL = (
    *("manchester", "manchester+empty-capture", "bga", "bga(6,6)+pie+empty-capture", "kalah(1,1)"),
    *("kalah(1,5)", "kalah(1,100)", "kalah(2,3)", "kalah(2,60)+empty-capture", "kalah(3,12)+empty-capture"),
    *("kalah(4,9)", "kalah(5,25)", "kalah(6,21)", "kalah(7,1)", "kalah(7,18)+empty-capture"),
)
"""From the least to the most seeds of every number of pits, many with more than a lap in a pit."""


@pytest.mark.parametrize("spec", SMALL)
@pytest.mark.parametrize("how", ["as it is", "plain"])
def test_every_sowing_of_random_games(spec: str, how: str) -> None:
    def kernel(function: Any) -> Any:
        return plain(function) if how == "plain" else function

    game = parse_game(spec)
    assert isinstance(game, Kalah)
    assert packed_board.fits(game.pits, game.total_seeds)
    p, size, empty_capture = game.pits, 2 * game.pits, int(game.empty_capture)
    weights = weights_of(game)
    tables = packed_board.make_tables(p, weights)
    for state, move, _ in sowings(game, seed=6, games=12):
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
    boards = {tuple(seen_by_mover(game, state)) for state, _, _ in sowings(game, seed=1, games=300)}
    boards |= {(*[5] * 6, a, *[5] * 6, b) for a in range(99) for b in range(99)}
    boards |= {(*[5] * 5, a, b, *[5] * 7) for a in range(99) for b in range(99)}
    keys = {
        packed_board.key_of(packed_board.pack_half(list(board[:7])), packed_board.pack_half(list(board[7:])))
        for board in boards
    }
    assert len(keys) == len(boards) > 25_000
    assert all(0 <= key < 1 << 62 for key in keys)
    board = next(iter(boards))
    halves = packed_board.pack_half(list(board[:7])), packed_board.pack_half(list(board[7:]))
    assert plain(packed_board.key_of)(*halves) == packed_board.key_of(*halves)
