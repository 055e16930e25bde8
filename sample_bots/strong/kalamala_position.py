"""From a state of the rule book to the position that the kernels work on."""

from functools import lru_cache

from referee.games.kalamala import Kalamala, KalamalaState, Ko
from sample_bots.strong.compiled import Array
from sample_bots.strong.kalamala_geometry import EMPTY_LINES, SQUARE_COUNT, STONE_HASHES
from sample_bots.strong.kalamala_memory import (
    CAP,
    CELLS,
    FILTER,
    FILTER_SIZE,
    KEYS,
    KO,
    KO_BASIC,
    KO_NONE,
    KO_SUPERKO,
    LINES,
    MAX_PAST,
    PAST,
    PAST_COUNT,
    PAST_FROM,
    RESERVES,
    ROOT_TURNS,
    SUMS,
)
from sample_bots.strong.kalamala_turns import change_square

KO_NUMBERS = {Ko.NONE: KO_NONE, Ko.BASIC: KO_BASIC, Ko.SUPERKO: KO_SUPERKO}


@lru_cache(maxsize=MAX_PAST)  # the boards that may not come again are the same ones at the next turn
def key_of(white: int, black: int) -> int:
    """The hash of a board, given as the rule book's bits."""
    key = 0
    for colour, bits in enumerate((white, black)):
        while bits:
            square = bits.bit_length() - 1
            bits ^= 1 << square
            key ^= int(STONE_HASHES[colour * SQUARE_COUNT + square])
    return key


def set_up(tables: Array, memory: Array, game: Kalamala, state: KalamalaState) -> None:
    """Write a state, with the boards that may not come again, into ply 0 of ``memory``."""
    memory[ROOT_TURNS] = state.ply
    memory[CAP] = game.cap
    memory[KO] = KO_NUMBERS[game.ko]
    for line, filling in enumerate(EMPTY_LINES):
        memory[LINES + line] = filling
    total = 0
    for square in range(SQUARE_COUNT):
        memory[CELLS + square] = 0
        stone = (state.white >> square & 1) + 2 * (state.black >> square & 1)
        if stone:
            total += int(change_square(tables, memory, square, stone))
    memory[SUMS] = total
    memory[KEYS] = key_of(state.white, state.black)
    memory[RESERVES], memory[RESERVES + 1] = state.reserves
    for index in range(FILTER_SIZE):
        memory[FILTER + index] = 0
    # Boards beyond MAX_PAST can only be in a position that somebody made up; the root's turns are right all
    # the same.
    keys = sorted(key_of(*board) for board in state.past)[:MAX_PAST]
    for index, key in enumerate(keys):
        memory[PAST + index] = key
        memory[FILTER + (key & (FILTER_SIZE - 1))] += 1
    memory[PAST_COUNT] = len(keys)
    memory[PAST_FROM] = 0
