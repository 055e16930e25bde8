"""Kalah's rules, evaluation and hash keys as kernels, for boards of every size in a flat array of cells.

The rule book is referee/games/kalah.py; a test compares this module with it on random positions of all
variants.  A board is 2p numbers from an offset on: the mover's pits 1..p, then the opponent's pits 1..p.  So
a seed moves to the next number, and the mover's store lies between the two halves.  The stores are not part
of the board, since they have no influence on the seeds that are left.  The kernels cover the middle of the
game; the caller handles the first decisions of a game (K8, K9).
"""

import random

from referee.games.kalah import Kalah
from sample_bots.strong.compiled import Array, array_of, kernel

UNIT = 16
"""Units of a value in one seed: evaluations are finer than whole seeds."""

BY_DISTANCE = (-5, 0, 9, 18, 24, 30)
"""Value of a pit that is not empty, in units, by the number of pits between the pit and the store; the last
is for all pits beyond.

The pattern is that of a linear fit to the margins of 680 games at manchester (4,072 positions), about half as
large.  In 180 games of 3,000 nodes a move these values scored 63 % against none.  The seeds on each side had
no weight in the fit beside them.
"""

KEY_BITS = 62
"""Bits of a key, so that it stays positive in a signed number of 64 bits."""


@kernel
def play(
    cells: Array, here: int, there: int, p: int, own: int, other: int, pit: int, empty_capture: int
) -> tuple[int, int, int, int]:
    """Play a pit (0..p-1, not empty) on the board at ``here``, and write the new board at ``there``.

    ``own`` and ``other`` are the seeds on the mover's side and on the opponent's.  The halves of the new
    board are in the order of the player who moves next.  Seeds that are left at the end are not collected
    (K5).

    Returns:
        The seeds that went into the mover's store, 1 for an extra turn (K3) or else 0, and the seeds on the
        mover's and on the opponent's side.
    """
    seeds = cells[here + pit]
    last = pit + seeds  # of the last seed: an own pit, p for the store, from p + 1 on the opponent's pits
    if last > 2 * p:
        last = last % (2 * p + 1)
    if last == p:
        mine = there
        theirs = there + p
    else:
        mine = there + p
        theirs = there
    for i in range(p):
        cells[mine + i] = cells[here + i]
        cells[theirs + i] = cells[here + p + i]
    cells[mine + pit] = 0
    # K2, by stretches: own pits behind the origin; then store, other pits and own pits, repeatedly.
    step = min(seeds, p - 1 - pit)
    for i in range(mine + pit + 1, mine + pit + 1 + step):
        cells[i] += 1
    own += step - seeds
    left = seeds - step
    gain = 0
    while left > 0:
        gain += 1
        left -= 1
        step = min(left, p)
        for i in range(theirs, theirs + step):
            cells[i] += 1
        other += step
        left -= step
        step = min(left, p)
        for i in range(mine, mine + step):
            cells[i] += 1
        own += step
        left -= step
    if last == p:
        return gain, 1, own, other
    if last < p and cells[mine + last] == 1:  # K4
        across = theirs + p - 1 - last
        taken = cells[across]
        if taken > 0 or empty_capture != 0:
            cells[across] = 0
            cells[mine + last] = 0
            gain += taken + 1
            own -= 1
            other -= taken
    return gain, 0, own, other


@kernel
def tactical_moves(cells: Array, here: int, p: int) -> int:
    """Return the pits that give an extra turn (K3) or may capture (K4), as bits 0..p-1.

    Whether such a pit captures depends on the opposite pit.  The loop has no branches, since a processor
    could not predict them.
    """
    pits = 0
    for pit in range(p):
        seeds = cells[here + pit]
        last = pit + seeds
        last -= (2 * p + 1) * (last > 2 * p)
        empty = cells[here + min(last, p - 1)] == 0
        pits |= ((seeds != 0) & ((last == p) | (seeds > 2 * p) | ((last < p) & empty))) << pit
    return pits


@kernel
def captured(cells: Array, here: int, across: int, p: int, pit: int, empty_capture: int) -> int:
    """Return the seeds that a pit (0..p-1, not empty) captures (K4), with the capturing seed; 0 if none.

    Returns -1 for an extra turn (K3).  ``here`` is the index of the player's first pit, ``across`` that of
    the opponent's.
    """
    seeds = cells[here + pit]
    last = pit + seeds
    if seeds > 2 * p:
        if last % (2 * p + 1) == p:
            return -1
        # After more seeds the last one falls into a pit that is not empty.
        if seeds == 2 * p + 1:
            return 2 + int(cells[across + p - 1 - pit])
        return 0
    if last > 2 * p:
        last -= 2 * p + 1
    if last == p:
        return -1
    if last > p or cells[here + last] != 0:
        return 0
    taken: int = cells[across + p - 1 - last]
    if last < pit:
        taken += 1  # sown on the way
    if taken > 0 or empty_capture != 0:
        return taken + 1
    return 0


@kernel
def is_over(own: int, other: int, on_turn: int) -> int:
    """Return 1 if the game is over by K5, else 0; ``own`` are the seeds on the side of the next mover."""
    if own == 0:
        return 1
    if other == 0 and on_turn == 0:
        return 1
    return 0


def weights_of(game: Kalah) -> Array:
    """Return the values of the pits of a variant, in units; pit 1 first."""
    return array_of([BY_DISTANCE[min(d, len(BY_DISTANCE) - 1)] for d in range(game.pits)][::-1], "int64")


@kernel
def evaluate(cells: Array, here: int, p: int, own: int, other: int, weights: Array) -> int:
    """Return the evaluation for the player to move, in units: the sum of the values of the occupied pits.

    It is never more than the seeds in the pits.
    """
    value = 0
    for pit in range(p):
        value += weights[pit] * ((cells[here + pit] != 0) - (cells[here + p + pit] != 0))
    rest = UNIT * (own + other)
    return max(-rest, min(value, rest))


def random_numbers(pits: int, total_seeds: int) -> Array:
    """Return a random number for each pit, the mover's first; always the same numbers.

    A key is a sum of these numbers.  They are small enough that no sum needs more than KEY_BITS.
    """
    dice = random.Random(f"{pits} pits, {total_seeds} seeds")
    return array_of(
        [dice.getrandbits(KEY_BITS - total_seeds.bit_length()) | 1 for _ in range(2 * pits)], "int64"
    )


@kernel
def key_of(cells: Array, here: int, p: int, numbers: Array) -> int:
    """Return the key of a board: the sum of each pit's random number times its seeds."""
    key = 0
    for i in range(2 * p):
        key += cells[here + i] * numbers[i]
    return key
