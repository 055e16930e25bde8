"""The endgame database: the exact margin that is still to be won in every position with few seeds.

Theory of operation.  Each position has one signed byte, at the position's number: the seeds that the mover
will get, less those that the other player will get, of the seeds that are in pits now.

Layers with the same number of seeds are filled one after the other.  A sowing that reaches the store leads to
a lower layer.  A sowing that does not only moves seeds forward on the mover's own side, since it has to pass
the store to reach the other side.  So no position leads back to itself, and a depth-first walk within the
layer computes the values of successors first.
"""

from collections.abc import Callable

from sample_bots.solver.layout import (
    ADD_OTHER,
    ADD_OWN,
    ADD_STORE,
    EMPTY_CAPTURE,
    LAST,
    MASK,
    MOST,
    ON_TURN,
    PITS,
    SOWING_FIELDS,
    WIDTH,
    Layout,
    number_of,
    positions_up_to,
)
from sample_bots.strong.compiled import Array, array_of, kernel, zeros

UNKNOWN = -128
"""Value of a position that is not computed yet; because of MOST_SEEDS no margin is so low."""

MOST_SEEDS = 100
"""Maximum seeds of a database, so that margins fit a signed byte."""

FRAME = 6
F_OWN, F_OTHER, F_NUMBER, F_PIT, F_BEST, F_LEFT = range(FRAME)


@kernel
def clear_layer(database: Array, start: int, stop: int) -> int:
    """Mark the positions from number ``start`` up to ``stop`` as not yet computed."""
    for number in range(start, stop):
        database[number] = UNKNOWN
    return 0


@kernel
def fill_layer(
    database: Array,
    stack: Array,
    layer: int,
    start: int,
    stop: int,
    position: Array,
    facts: Array,
    sowings: Array,
    numbers: Array,
) -> int:
    """Compute the values of the positions from number ``start`` up to ``stop``, all of ``layer`` seeds.

    ``position`` holds the seeds of each of the 2p pits at ``start``, and is moved on to ``stop``.
    """
    pits = facts[PITS]
    width = facts[WIDTH]
    mask = facts[MASK]
    row = facts[MOST] + 1
    on_turn = facts[ON_TURN]
    empty_capture = facts[EMPTY_CAPTURE]
    for number in range(start, stop):
        if database[number] == UNKNOWN:
            own = 0
            other = 0
            for i in range(pits - 1, -1, -1):
                own = (own << width) | position[i]
                other = (other << width) | position[pits + i]
            depth = 0
            stack[F_OWN] = own
            stack[F_OTHER] = other
            stack[F_NUMBER] = number
            stack[F_PIT] = 0
            stack[F_BEST] = UNKNOWN
            while depth >= 0:
                frame = depth * FRAME
                own = stack[frame + F_OWN]
                other = stack[frame + F_OTHER]
                best = stack[frame + F_BEST]
                pit = stack[frame + F_PIT]
                pushed = 0
                # K5: the game is over.  No move looks up such positions, but a root may be one.
                if own == 0 or (on_turn == 0 and other == 0):
                    best = layer if own != 0 else -layer
                    pit = pits
                while pit < pits:
                    seeds = (own >> (width * pit)) & mask
                    if seeds != 0:
                        at = (pit * row + seeds) * SOWING_FIELDS
                        new_own = own + sowings[at + ADD_OWN]
                        new_other = other + sowings[at + ADD_OTHER]
                        gain = sowings[at + ADD_STORE]
                        last = sowings[at + LAST]
                        if last < pits and (new_own >> (width * last)) & mask == 1:  # K4
                            shift = width * (pits - 1 - last)
                            captured = (new_other >> shift) & mask
                            if captured != 0 or empty_capture != 0:
                                gain += captured + 1
                                new_other -= captured << shift
                                new_own -= 1 << (width * last)
                        left = layer - gain
                        if last == pits:  # K3
                            if new_own == 0 or (on_turn == 0 and new_other == 0):
                                value = gain + (left if new_own != 0 else -left)
                            else:
                                value = gain + database[number_of(new_own, new_other, facts, numbers)]
                        elif new_other == 0 or (on_turn == 0 and new_own == 0):
                            value = gain + (left if new_own != 0 else -left)
                        else:
                            child = number_of(new_other, new_own, facts, numbers)
                            found = database[child]
                            if found == UNKNOWN:
                                stack[frame + F_PIT] = pit
                                stack[frame + F_BEST] = best
                                frame += FRAME
                                stack[frame + F_OWN] = new_other
                                stack[frame + F_OTHER] = new_own
                                stack[frame + F_NUMBER] = child
                                stack[frame + F_PIT] = 0
                                stack[frame + F_BEST] = UNKNOWN
                                pushed = 1
                                break
                            value = gain - found
                        best = max(best, value)
                    pit += 1
                if pushed != 0:
                    depth += 1
                else:
                    database[stack[frame + F_NUMBER]] = best
                    depth -= 1
        # The next position of the layer in the order of numbers (colexicographic in prefix sums).
        i = 0
        while i < 2 * pits - 1 and position[i + 1] == 0:
            i += 1
        if i < 2 * pits - 1:
            first = position[0]
            position[0] = 0
            position[i] = first + 1
            position[i + 1] -= 1
    return 0


SLICE = 1 << 20
"""Positions computed between two calls of ``on_slice``: some tenths of a second compiled."""


class EndgameDatabase:
    """Values of all positions with at most ``seeds`` seeds in the pits."""

    def __init__(self, layout: Layout, seeds: int) -> None:
        """Make an empty database, see ``fill``; ``seeds`` is at most the layout's and MOST_SEEDS."""
        if not 0 <= seeds <= min(layout.seeds, MOST_SEEDS):
            raise ValueError(
                f"no database of {seeds} seeds: the layout has {layout.seeds}, the bound is {MOST_SEEDS}"
            )
        self.layout = layout
        self.seeds = seeds
        self.size = positions_up_to(layout.pits, seeds)
        self.values = zeros(self.size, "int8")
        self.layers = 0
        """Number of filled layers: all positions with fewer seeds have their values."""

    def fill(self, on_slice: Callable[[int], None] | None = None) -> None:
        """Compute all values.

        ``on_slice`` is called regularly with the number of computed values; an exception from it stops the
        computation.
        """
        layout = self.layout
        pits = layout.pits
        # Each sowing within a layer moves a seed forward, at most p - 1 times for each.
        stack = zeros((self.seeds * pits + 2) * FRAME, "int64")
        start = 0
        for layer in range(self.seeds + 1):
            end = positions_up_to(pits, layer)
            clear_layer(self.values, start, end)
            position = array_of([0] * (2 * pits - 1) + [layer], "int64")
            while start < end:
                stop = min(end, start + SLICE)
                fill_layer(
                    self.values,
                    stack,
                    layer,
                    start,
                    stop,
                    position,
                    layout.facts,
                    layout.sowings,
                    layout.numbers,
                )
                start = stop
                if start == end:
                    self.layers = layer + 1
                if on_slice is not None:
                    on_slice(start)

    def value(self, own: int, other: int) -> int:
        """Return the margin of a packed position."""
        return int(self.values[self.layout.number(own, other)])
