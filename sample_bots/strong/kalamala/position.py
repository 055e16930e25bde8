"""Setup of the kernels' arrays: the tables of all searches, and the position of a state of the rule book."""

from functools import cache, lru_cache

from referee.games.kalamala import Kalamala, KalamalaState, Ko
from sample_bots.strong.compiled import Array, zeros
from sample_bots.strong.kalamala.evaluation import fill_terms
from sample_bots.strong.kalamala.geometry import (
    CLASS_LENGTHS,
    CLASS_STARTS,
    EDGE_DISTANCES,
    EMPTY_LINES,
    FILLINGS,
    SQUARE_COUNT,
    STONE_HASHES,
)
from sample_bots.strong.kalamala.lines import copy_effects, fill_effects
from sample_bots.strong.kalamala.memory import (
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
    MAX_EFFECTS,
    MAX_PAST,
    PAST,
    PAST_COUNT,
    PAST_FROM,
    RESERVES,
    ROOT_TURNS,
    SUMS,
    SWAPPED,
    TABLES_SIZE,
)
from sample_bots.strong.kalamala.turns import change_square

MOST_EFFECTS = 256
"""Space for the effects of one line."""

KO_NUMBERS = {Ko.NONE: KO_NONE, Ko.BASIC: KO_BASIC, Ko.SUPERKO: KO_SUPERKO}


@cache
def search_tables() -> Array:
    """Return the tables of memory.py, which all searches of a process share.  Do not change them."""
    tables = zeros(TABLES_SIZE, "int64")
    found = zeros(MOST_EFFECTS, "int64")
    end = 0
    first_of_length: dict[int, int] = {}
    for line_class, (length, first) in enumerate(zip(CLASS_LENGTHS, CLASS_STARTS, strict=True)):
        same = first_of_length.setdefault(length, first)
        if same == first:
            end = int(fill_effects(tables, found, length, first, end))
        else:
            copy_effects(tables, first, same, length)
        fill_terms(tables, first, length, line_class if line_class < EDGE_DISTANCES else -1)
    tables[SWAPPED + FILLINGS - 1] = FILLINGS - 1
    assert end <= MAX_EFFECTS
    return tables


@lru_cache(maxsize=MAX_PAST)  # the next turn has the same earlier boards
def key_of(white: int, black: int) -> int:
    """Return the hash of a board, which is given as the rule book's bits."""
    key = 0
    for colour, bits in enumerate((white, black)):
        while bits:
            square = bits.bit_length() - 1
            bits ^= 1 << square
            key ^= int(STONE_HASHES[colour * SQUARE_COUNT + square])
    return key


def set_up(tables: Array, memory: Array, game: Kalamala, state: KalamalaState) -> None:
    """Write a state, with the boards that must not be repeated, into ply 0 of ``memory``."""
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
    # Only an artificial position has more than MAX_PAST boards; the turns of the root are correct even then.
    keys = sorted(key_of(*board) for board in state.past)[:MAX_PAST]
    for index, key in enumerate(keys):
        memory[PAST + index] = key
        memory[FILTER + (key & (FILTER_SIZE - 1))] += 1
    memory[PAST_COUNT] = len(keys)
    memory[PAST_FROM] = 0
