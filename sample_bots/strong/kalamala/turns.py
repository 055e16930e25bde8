"""Kalamala's rules as kernels: the turns of a position, playing a turn, taking it back.

The rule book is referee/games/kalamala.py; a test compares this module with it on positions of all kinds.
Each ply of ``memory`` (see memory.py) has a position; playing a turn makes the position of the next ply.
White is side 0.
"""

from sample_bots.strong.compiled import Array, kernel
from sample_bots.strong.kalamala.geometry import (
    DIGITS_OF_SQUARE,
    EMPTY_PLACEMENT,
    FOURTH,
    LINE_COUNT,
    LINE_SQUARES,
    LINES_OF_SQUARE,
    NO_PLACE,
    NO_SQUARE,
    OWN,
    PLACEMENT,
    PLACES,
    REMOVED,
    SECOND,
    SQUARE_COUNT,
    SQUARE_MASK,
    STONE_HASHES,
    THIRD,
)
from sample_bots.strong.kalamala.lines import EFFECT_REMOVED
from sample_bots.strong.kalamala.memory import (
    CELLS,
    EFFECTS,
    EFFECTS_OF,
    FILTER,
    FILTER_SIZE,
    KEYS,
    KO,
    KO_BASIC,
    KO_NONE,
    KO_SUPERKO,
    LINES,
    PAST,
    PAST_COUNT,
    PAST_FROM,
    RESERVES,
    SEEN,
    STAMP,
    SUMS,
    SWAPPED,
    TERMS,
    TURNS,
    WIDTH,
)

SINGLE = NO_PLACE << 4 | NO_PLACE << 8 | NO_PLACE << 12 | 1 << EFFECT_REMOVED
"""Bits of an effect that empties one place and fills none: two lines can have only such effects in common."""
SINGLE_MASK = 0xFFF0 | 3 << EFFECT_REMOVED
COUNT_MASK = 255
ALL_TURNS, CAPTURES, QUIET = 0, 1, 2
ENOUGH = WIDTH - SQUARE_COUNT - COUNT_MASK
"""Number of movements at which the generator stops, so that it stays in its space; no known position has so
many."""


@kernel
def turns_at(tables: Array, memory: Array, ply: int, side: int, kind: int) -> int:
    """List the turns of ``side`` (rules 4 to 7), each resulting position once; return their number.

    Turns that rule 8 forbids are included.  ``kind`` is ALL_TURNS, CAPTURES (removals of the other side's
    stones) or QUIET (the others).
    """
    count = 0
    first_turn = TURNS + ply * WIDTH
    memory[STAMP] += 1
    stamp = memory[STAMP]
    for line in range(LINE_COUNT):
        filling = memory[LINES + line]
        if side == 1:
            filling = tables[SWAPPED + filling]
        entry = tables[EFFECTS_OF + filling]
        if entry & COUNT_MASK == 0:
            continue
        if count > ENOUGH:
            break
        start = EFFECTS + (entry >> 16)
        end = start + (entry & COUNT_MASK)
        if kind == CAPTURES:
            end = start + (entry >> 8 & COUNT_MASK)
        elif kind == QUIET:
            start += entry >> 8 & COUNT_MASK
        squares = line * PLACES
        for index in range(start, end):
            effect = tables[index]
            square = LINE_SQUARES[squares + (effect & 15)]
            if effect & SINGLE_MASK == SINGLE:
                if memory[SEEN + square] == stamp:
                    continue
                memory[SEEN + square] = stamp
            memory[first_turn + count] = (
                square
                | LINE_SQUARES[squares + (effect >> 4 & 15)] << SECOND
                | LINE_SQUARES[squares + (effect >> 8 & 15)] << THIRD
                | LINE_SQUARES[squares + (effect >> 12 & 15)] << FOURTH
                | effect >> EFFECT_REMOVED << REMOVED
            )
            count += 1
    if kind != CAPTURES and memory[RESERVES + 2 * ply + side] > 0:  # rule 5
        for square in range(SQUARE_COUNT):
            if memory[CELLS + square] == 0:
                memory[first_turn + count] = EMPTY_PLACEMENT | square << THIRD
                count += 1
    return count


@kernel
def is_lasting(turn: int) -> bool:
    """Return whether a turn places or removes stones: then no earlier position can come again (Lemma 2)."""
    return turn >> PLACEMENT & 1 != 0 or turn >> REMOVED & 3 != 0


@kernel
def key_after(memory: Array, ply: int, side: int, turn: int) -> int:
    """Return the hash of the board after a turn."""
    key: int = memory[KEYS + ply]
    colour = (side if turn >> OWN & 1 == 1 else 1 - side) * SQUARE_COUNT
    square = turn & SQUARE_MASK
    if square != NO_SQUARE:
        key ^= STONE_HASHES[colour + square]
    square = turn >> SECOND & SQUARE_MASK
    if square != NO_SQUARE:
        key ^= STONE_HASHES[colour + square]
    square = turn >> THIRD & SQUARE_MASK
    if square != NO_SQUARE:
        key ^= STONE_HASHES[colour + square]
    square = turn >> FOURTH & SQUARE_MASK
    if square != NO_SQUARE:
        key ^= STONE_HASHES[colour + square]
    return key


@kernel
def is_past(memory: Array, ply: int, key: int) -> bool:
    """Return whether rule 8 forbids a board after a movement that removes nothing."""
    if memory[FILTER + (key & (FILTER_SIZE - 1))] == 0:
        return False
    for index in range(PAST + memory[PAST_COUNT] + ply - 1, PAST + memory[PAST_FROM + ply] - 1, -1):
        if memory[index] == key:
            return True
    return False


@kernel
def change_square(tables: Array, memory: Array, square: int, amount: int) -> int:
    """Add ``amount`` to a square (1 White, 2 Black); return the change of the sum of the lines' terms."""
    memory[CELLS + square] += amount
    change = 0
    for index in range(4 * square, 4 * square + 4):
        line = LINES + LINES_OF_SQUARE[index]
        before = memory[line]
        after = before + amount * DIGITS_OF_SQUARE[index]
        memory[line] = after
        change += tables[TERMS + after] - tables[TERMS + before]
    return change


@kernel
def play(tables: Array, memory: Array, ply: int, side: int, turn: int, key: int) -> None:
    """Make the position of ``ply + 1`` by a turn of ``side``; ``key`` is the hash of the board after it."""
    stone = 1 + side if turn >> OWN & 1 == 1 else 2 - side
    total = memory[SUMS + ply]
    square = turn & SQUARE_MASK
    if square != NO_SQUARE:
        total += change_square(tables, memory, square, -stone)
    square = turn >> SECOND & SQUARE_MASK
    if square != NO_SQUARE:
        total += change_square(tables, memory, square, -stone)
    square = turn >> THIRD & SQUARE_MASK
    if square != NO_SQUARE:
        total += change_square(tables, memory, square, stone)
    square = turn >> FOURTH & SQUARE_MASK
    if square != NO_SQUARE:
        total += change_square(tables, memory, square, stone)
    memory[SUMS + ply + 1] = total
    memory[KEYS + ply + 1] = key
    memory[RESERVES + 2 * ply + 2] = memory[RESERVES + 2 * ply]
    memory[RESERVES + 2 * ply + 3] = memory[RESERVES + 2 * ply + 1]
    memory[RESERVES + 2 * ply + 2 + side] -= turn >> PLACEMENT & 1
    # Rule 8: each turn appends a board to PAST; the forbidden boards of the next ply begin at PAST_FROM.
    ko = memory[KO]
    here = memory[PAST_COUNT] + ply
    board = memory[KEYS + ply] if ko == KO_BASIC else key
    memory[PAST + here] = board
    memory[FILTER + (board & (FILTER_SIZE - 1))] += 1
    if ko == KO_NONE:
        memory[PAST_FROM + ply + 1] = here + 1
    elif ko == KO_SUPERKO and not is_lasting(turn):
        memory[PAST_FROM + ply + 1] = memory[PAST_FROM + ply]
    else:
        memory[PAST_FROM + ply + 1] = here


@kernel
def take_back(tables: Array, memory: Array, ply: int, side: int, turn: int) -> None:
    """Undo ``play`` of the same turn: the position is that of ``ply`` again."""
    stone = 1 + side if turn >> OWN & 1 == 1 else 2 - side
    square = turn & SQUARE_MASK
    if square != NO_SQUARE:
        change_square(tables, memory, square, stone)
    square = turn >> SECOND & SQUARE_MASK
    if square != NO_SQUARE:
        change_square(tables, memory, square, stone)
    square = turn >> THIRD & SQUARE_MASK
    if square != NO_SQUARE:
        change_square(tables, memory, square, -stone)
    square = turn >> FOURTH & SQUARE_MASK
    if square != NO_SQUARE:
        change_square(tables, memory, square, -stone)
    board = memory[PAST + memory[PAST_COUNT] + ply]
    memory[FILTER + (board & (FILTER_SIZE - 1))] -= 1


@kernel
def has_legal_turn(tables: Array, memory: Array, ply: int, side: int) -> bool:
    """Return whether ``side`` has a turn that rule 8 does not forbid (rule 9)."""
    if memory[RESERVES + 2 * ply + side] > 0:
        return True  # Lemma 4
    count = turns_at(tables, memory, ply, side, ALL_TURNS)
    for index in range(TURNS + ply * WIDTH, TURNS + ply * WIDTH + count):
        turn = memory[index]
        if is_lasting(turn) or not is_past(memory, ply, key_after(memory, ply, side, turn)):
            return True
    return False


@kernel
def count_lines(tables: Array, memory: Array, ply: int, side: int, depth: int) -> int:
    """Return the number of sequences of ``depth`` turns (perft)."""
    if depth == 0:
        return 1
    count = turns_at(tables, memory, ply, side, ALL_TURNS)
    found = 0
    for index in range(TURNS + ply * WIDTH, TURNS + ply * WIDTH + count):
        turn = memory[index]
        key = key_after(memory, ply, side, turn)
        if is_lasting(turn) or not is_past(memory, ply, key):
            play(tables, memory, ply, side, turn, key)
            found += count_lines(tables, memory, ply + 1, 1 - side, depth - 1)
            take_back(tables, memory, ply, side, turn)
    return found
