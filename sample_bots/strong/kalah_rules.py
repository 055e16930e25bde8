"""Kalah's rules as a kernel, on boards that lie in one flat array and are seen by the player to move.

The rule book is referee/games/kalah.py; a test holds this to it on random positions of all variants.  A board
is 2p numbers from an offset on: the mover's pits 1..p, then the opponent's pits 1..p, so that a seed moves to
the next number and the mover's store lies between the two halves.  The stores themselves are no part of it:
what happens to the seeds that are left does not depend on those that are not.  What is special about a game's
first decisions (K8, K9) is left to the caller: this is the middle of the game alone.
"""

from sample_bots.strong.compiled import Array, kernel


@kernel
def play(
    cells: Array, here: int, there: int, p: int, own: int, other: int, pit: int, empty_capture: int
) -> tuple[int, int, int, int]:
    """Play a pit (0..p-1, not empty) on the board at ``here``; the board after it goes to ``there``.

    ``own`` and ``other`` are the seeds on the mover's side and on the opponent's.  Returns the seeds that
    went into the mover's store, 1 for an extra turn (K3) or else 0, and the seeds on the two sides.  The new
    board is seen by whoever moves next, but the seeds on the two sides are still in the mover's order.
    Collects nothing at the end (K5).
    """
    seeds = cells[here + pit]
    last = (
        pit + seeds
    )  # where the last seed falls: an own pit, p for the store, from p + 1 on the opponent's pits
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
    # K2, by stretches: own pits behind the origin; then store, other pits, own pits, as often as needed.
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
def lively_pits(cells: Array, here: int, p: int) -> int:
    """Which pits give an extra turn (K3) or may capture (K4), as bits 0..p-1.

    No other pit does either; whether one captures depends on what lies opposite.  Without branches: what a
    pit does is hard to foretell for a processor.
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
    """What playing a pit (0..p-1, not empty) would capture (K4), with the capturing seed; 0 if nothing.

    ``here`` is where the pits of the player begin, ``across`` where the opponent's do.  -1 means that it
    would give an extra turn (K3).
    """
    seeds = cells[here + pit]
    last = pit + seeds
    if seeds > 2 * p:
        if last % (2 * p + 1) == p:
            return -1
        # With more than one lap, or a longer one, the last seed falls on another.
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
    """Whether the game is over by K5 when these seeds lie on the next mover's side and on the other one's."""
    if own == 0:
        return 1
    if other == 0 and on_turn == 0:
        return 1
    return 0
