"""Helpers of the tests of the strong player's Kalamala: calls of kernels with states of the rule book."""

from functools import cache
from typing import Any

from referee.games.kalamala import Kalamala, KalamalaState
from sample_bots.strong.compiled import zeros
from sample_bots.strong.kalamala.geometry import SQUARE_COUNT, text_of
from sample_bots.strong.kalamala.memory import CELLS, MEMORY_SIZE, RESERVES, TURNS
from sample_bots.strong.kalamala.position import search_tables, set_up
from sample_bots.strong.kalamala.turns import is_lasting, is_past, key_after, turns_at


@cache
def memory() -> Any:
    """One for all tests: a position is written into it anew each time."""
    return zeros(MEMORY_SIZE, "int64")


def set_up_state(game: Kalamala, state: KalamalaState) -> None:
    set_up(search_tables(), memory(), game, state)


def codes(state: KalamalaState) -> list[int]:
    """All turns of the position that was set up, whatever rule 8 says."""
    count = turns_at(search_tables(), memory(), 0, state.side, 0)
    return [int(code) for code in memory()[TURNS : TURNS + count]]


def may_be_played(state: KalamalaState, code: int) -> bool:
    return is_lasting(code) or not is_past(memory(), 0, key_after(memory(), 0, state.side, code))


def legal_texts(game: Kalamala, state: KalamalaState) -> list[str]:
    """The kernels' answer to ``game.legal_moves``, duplicates and all."""
    set_up_state(game, state)
    return sorted(text_of(code) for code in codes(state) if may_be_played(state, code))


def board(ply: int) -> tuple[int, int, tuple[int, int]]:
    """White's and Black's stones as bits, and the unplaced ones."""
    cells = [int(cell) for cell in memory()[CELLS : CELLS + SQUARE_COUNT]]
    white, black = (
        sum(1 << square for square in range(SQUARE_COUNT) if cells[square] == stone) for stone in (1, 2)
    )
    at = RESERVES + 2 * ply
    return white, black, (int(memory()[at]), int(memory()[at + 1]))
