"""The alpha-beta search of Kalah, as one kernel.

Theory of operation.  A position's value is what its mover will still win, less what the opponent will: the
stores' contents do not matter, and the value lies between plus and minus the seeds in the pits, which cuts
off much.  A move's value is the seeds it brings at once, plus the value of the position after it if the same
player moves again (K3), less it otherwise.

The search is a loop, not a recursion, with a frame for each ply in a flat array: it can stop at any moment,
and nothing but numbers is moved.  It looks at the first move with the whole window and at the others with an
empty one, to show that they are no better (principal variation search); late moves are first looked at less
deep.  At depth 0 only extra turns and captures go on, and the mover may also stand pat on the guess.  Depths
are counted in halves of a ply.

``control[TAINT]`` tells whether any guess went into the value of the root: if none did, it is exact.  A
position's value is free of guesses if that move's is which is good enough to cut off the others, or if those
of all its moves are.
"""

from sample_bots.strong.compiled import Array, kernel
from sample_bots.strong.kalah_board import Tables, captured, evaluate, key_of, lively_pits, play, seeds_in
from sample_bots.strong.kalah_evaluation import UNIT
from sample_bots.strong.kalah_rules import is_over
from sample_bots.strong.kalah_table import (
    AGE_SHIFT,
    AT_LEAST,
    AT_MOST,
    BOUND_SHIFT,
    DEPTH_SHIFT,
    EXACT,
    NO_PIT,
    PROVEN,
    VALUE_BIAS,
    VALUE_SHIFT,
    find,
    keep,
    place_of,
)

PLY = 2
"""Depths are counted in these parts of a ply."""
MAX_PLIES = 120
"""Bound of a line's length; at its end stands a guess."""

# The numbers in ``control``.
PITS, EMPTY_CAPTURE, ON_TURN, TABLE_MASK, AGE, EXTRA_COST, QUIET_PLIES, LATE_MOVES, TABLE_ENDS = range(9)
NODES, PAUSE, PAUSED, AT_PLY, FIRST_PIT, BEST_PIT, BEST_VALUE, TAINT = range(9, 17)
CONTROLS = 17

# The numbers in a frame.
(
    DEPTH,
    ALPHA,
    BETA,
    OWN,
    OTHER,
    FLOOR,
    VALUE,
    PIT,
    NEXT,
    COUNT,
    GAIN,
    AGAIN,
    TRIAL,
    TAINTED,
    KEY,
    NEXT_DEPTH,
    MINE,
    THEIRS,
) = range(18)
FRAME = 18

INFINITE = 1 << 22
"""More than any value, in units."""
KILLERS = 2
SEEDS_KEPT = 32
"""The history counts moves by pit and seeds, up to so many."""
FROM_TABLE, FROM_EXTRA, FROM_CAPTURE, FROM_KILLER = 1 << 40, 1 << 38, 1 << 34, 1 << 32
"""What a move's place in the order begins with."""
HISTORY_LIMIT = 1 << 30
"""Where the history is halved."""
PIT_BITS = 6
QUIET = FROM_KILLER << PIT_BITS
"""Below it are the orders of moves that are neither known to be good nor take anything."""
KEPT = 2 * PLY
"""The least depth at which the table is used: what is below is searched sooner than found in memory.  With
a ply less, six positions at manchester took 1.3 times as long to depth 12."""
REDUCED = 3 * PLY
"""The least depth at which late moves are first looked at less deep."""
CHAIN = 8
"""Extra turns cost no depth until a line has twice the plies of the whole search, and so many more."""


@kernel
def search(
    cells: Array,
    frames: Array,
    orders: Array,
    killers: Array,
    history: Array,
    table: Array,
    numbers: Array,
    weights: Array,
    tables: Tables,
    control: Array,
) -> int:
    """Search the position of the first ply with the window and depth of its frame.

    Returns the root's value.  ``control`` takes the settings, the pit to begin with (FIRST_PIT, 1..p, or 0),
    and the number of nodes made so far, which goes on counting; it has the best pit (1..p, or 0 if none was
    found) and its value. When there are as many nodes as PAUSE, it returns with PAUSED set, and BEST_PIT and
    BEST_VALUE of the moves that were seen; called again with PAUSED as it is, it goes on.
    """
    p = control[PITS]
    empty_capture = control[EMPTY_CAPTURE]
    on_turn = control[ON_TURN]
    mask = control[TABLE_MASK]
    extra_cost = control[EXTRA_COST]
    quiet_depth = -PLY * control[QUIET_PLIES]
    late = control[LATE_MOVES]
    table_ends = control[TABLE_ENDS]
    nodes = control[NODES]
    pause = control[PAUSE]
    width = 2 * p
    longest_chain = 2 * (frames[DEPTH] // PLY) + CHAIN
    ply = 0
    value = 0
    tainted = 0
    entering = True
    resuming = control[PAUSED] != 0
    if resuming:
        control[PAUSED] = 0
        ply = control[AT_PLY]
    else:
        control[BEST_PIT] = 0
    while True:
        f = ply * FRAME
        here = ply * width
        start = ply * p
        depth = frames[f + DEPTH]
        beta = frames[f + BETA]
        own = frames[f + OWN]
        other = frames[f + OTHER]
        mine = frames[f + MINE]
        theirs = frames[f + THEIRS]
        finished = False
        if resuming:
            resuming = False
            entering = False
        elif entering:
            alpha = frames[f + ALPHA]
            known = NO_PIT
            rest = UNIT * (own + other)
            entering = False
            if ply > 0:
                if alpha >= rest:
                    value = rest
                    tainted = 0
                    ply -= 1
                    continue
                if beta <= -rest:
                    value = -rest
                    tainted = 0
                    ply -= 1
                    continue
                if ply >= MAX_PLIES - 1:
                    value = evaluate(cells, here, mine, theirs, p, own, other, weights, tables)
                    tainted = 1
                    ply -= 1
                    continue
            best = -INFINITE
            count = 0
            if depth > 0:
                frames[f + TAINTED] = 0
            if depth >= KEPT:
                key = key_of(cells, here, mine, theirs, p, numbers, tables)
                frames[f + KEY] = key
                packed = find(table, place_of(key, mask), key)
                if packed >= 0:
                    known = packed & NO_PIT
                    deep = (packed >> DEPTH_SHIFT) & 255
                    if ply > 0 and deep >= depth and table_ends != 0:
                        bound = (packed >> BOUND_SHIFT) & 3
                        value = (packed >> VALUE_SHIFT) - VALUE_BIAS
                        if (
                            bound == EXACT
                            or (bound == AT_LEAST and value >= beta)
                            or (bound == AT_MOST and value <= alpha)
                        ):
                            tainted = 0 if deep == PROVEN else 1
                            ply -= 1
                            continue
                if ply == 0 and control[FIRST_PIT] > 0:
                    known = control[FIRST_PIT] - 1
            elif depth <= 0:
                best = evaluate(cells, here, mine, theirs, p, own, other, weights, tables)
                if best >= beta or depth <= quiet_depth:
                    value = best
                    tainted = 1
                    ply -= 1
                    continue
                frames[f + TAINTED] = 1
            lively = lively_pits(cells, here, mine, p, tables)
            for pit in range(p):
                seeds = seeds_in(cells, here, mine, pit, tables)
                if seeds == 0:
                    continue
                taken = 0
                if (lively >> pit) & 1 != 0:
                    taken = captured(cells, here, theirs, p, pit, seeds, empty_capture, tables)
                elif depth <= 0:
                    continue
                if pit == known:
                    order = FROM_TABLE
                elif taken < 0:
                    order = FROM_EXTRA
                elif taken > 0:
                    order = FROM_CAPTURE + (taken << 8)
                elif depth <= 0:
                    continue
                elif killers[ply * KILLERS] == pit + 1:
                    order = FROM_KILLER + 1
                elif killers[ply * KILLERS + 1] == pit + 1:
                    order = FROM_KILLER
                else:
                    order = history[pit * SEEDS_KEPT + min(seeds, SEEDS_KEPT - 1)]
                orders[start + count] = (order << PIT_BITS) + pit
                count += 1
            frames[f + FLOOR] = alpha
            frames[f + VALUE] = best
            frames[f + PIT] = NO_PIT
            frames[f + COUNT] = count
            frames[f + NEXT] = 0
            if best > alpha:
                frames[f + ALPHA] = best
        else:
            # The position after move number NEXT has a value.
            gain = frames[f + GAIN]
            if frames[f + AGAIN] != 0:
                value = gain + value
            else:
                value = gain - value
            alpha = frames[f + ALPHA]
            trial = frames[f + TRIAL]
            if trial != 0 and value > alpha and (trial > 1 or value < beta):
                # More than was to be shown to be impossible: again, with the whole window and depth.
                frames[f + TRIAL] = 0
                child = f + FRAME
                frames[child + DEPTH] = frames[f + NEXT_DEPTH]
                if frames[f + AGAIN] != 0:
                    frames[child + ALPHA] = alpha - gain
                    frames[child + BETA] = beta - gain
                else:
                    frames[child + ALPHA] = gain - beta
                    frames[child + BETA] = gain - alpha
                ply += 1
                entering = True
                continue
            order = orders[start + frames[f + NEXT]]
            pit = order & NO_PIT
            if value > frames[f + VALUE]:
                frames[f + VALUE] = value
                if value > alpha:
                    frames[f + PIT] = pit
                    frames[f + ALPHA] = value
                    if ply == 0:
                        control[BEST_PIT] = pit + 1
                        control[BEST_VALUE] = value
            if value >= beta:
                finished = True
                if depth > 0 and order < QUIET + (2 << PIT_BITS):
                    if killers[ply * KILLERS] != pit + 1:
                        killers[ply * KILLERS + 1] = killers[ply * KILLERS]
                        killers[ply * KILLERS] = pit + 1
                    at = pit * SEEDS_KEPT + min(seeds_in(cells, here, mine, pit, tables), SEEDS_KEPT - 1)
                    history[at] += depth * depth
                    if history[at] > HISTORY_LIMIT:
                        for i in range(p * SEEDS_KEPT):
                            history[i] >>= 1
            else:
                frames[f + TAINTED] |= tainted
                frames[f + NEXT] += 1
        if not finished:
            number = frames[f + NEXT]
            if number < frames[f + COUNT]:
                order = orders[start + number]
                best_at = start + number
                for at in range(start + number + 1, start + frames[f + COUNT]):
                    if orders[at] > order:
                        order = orders[at]
                        best_at = at
                orders[best_at] = orders[start + number]
                orders[start + number] = order
                if nodes >= pause:
                    control[NODES] = nodes
                    control[PAUSED] = 1
                    control[AT_PLY] = ply
                    return value
                nodes += 1
                alpha = frames[f + ALPHA]
                child = f + FRAME
                gain, again, mine, theirs, own, other = play(
                    cells, here, mine, theirs, p, own, other, order & NO_PIT, empty_capture, tables
                )
                gain *= UNIT
                frames[f + GAIN] = gain
                frames[f + AGAIN] = again
                frames[f + TRIAL] = 0
                if again != 0:
                    if is_over(own, other, on_turn) != 0:
                        value = UNIT * (own - other)
                        tainted = 0
                        continue
                    frames[child + OWN] = own
                    frames[child + OTHER] = other
                    frames[child + MINE] = mine
                    frames[child + THEIRS] = theirs
                    frames[child + ALPHA] = alpha - gain
                    frames[child + BETA] = beta - gain
                    if depth > 0 and ply < longest_chain:
                        next_depth = depth - extra_cost
                    else:
                        next_depth = depth - PLY
                    frames[child + DEPTH] = next_depth
                    if number > 0 and depth > 0 and beta - alpha > 1:
                        frames[f + TRIAL] = 1
                        frames[f + NEXT_DEPTH] = next_depth
                        frames[child + BETA] = alpha - gain + 1
                else:
                    if is_over(other, own, on_turn) != 0:
                        value = UNIT * (other - own)
                        tainted = 0
                        continue
                    frames[child + OWN] = other
                    frames[child + OTHER] = own
                    frames[child + MINE] = theirs
                    frames[child + THEIRS] = mine
                    frames[child + ALPHA] = gain - beta
                    frames[child + BETA] = gain - alpha
                    next_depth = depth - PLY
                    frames[child + DEPTH] = next_depth
                    if number > 0 and depth > 0:
                        if beta - alpha > 1:
                            frames[f + TRIAL] = 1
                            frames[f + NEXT_DEPTH] = next_depth
                            frames[child + ALPHA] = gain - alpha - 1
                        if late > 0 and number >= late and depth >= REDUCED and order < QUIET and ply > 0:
                            frames[f + TRIAL] = 2
                            frames[f + NEXT_DEPTH] = next_depth
                            frames[child + DEPTH] = next_depth - PLY
                ply += 1
                entering = True
                continue
            tainted = frames[f + TAINTED]
        # All moves that had to be looked at were.
        value = frames[f + VALUE]
        if depth >= KEPT:
            if value >= beta:
                bound = AT_LEAST
            elif value > frames[f + FLOOR]:
                bound = EXACT
            else:
                bound = AT_MOST
            deep = depth if tainted != 0 else PROVEN
            key = frames[f + KEY]
            packed = (
                ((value + VALUE_BIAS) << VALUE_SHIFT)
                | (bound << BOUND_SHIFT)
                | (deep << DEPTH_SHIFT)
                | (control[AGE] << AGE_SHIFT)
                | frames[f + PIT]
            )
            keep(table, place_of(key, mask), key, packed)
        ply -= 1
        if ply < 0:
            break
    control[NODES] = nodes
    control[TAINT] = tainted
    return value  # type: ignore[no-any-return]
