"""The alpha-beta search of Kalah, as one kernel.

Theory of operation.  A position's value is the number of seeds that its mover will still win, less the number
that the opponent will.  The contents of the stores do not matter, and the value lies between plus and minus
the seeds in the pits, which cuts off many lines.  A move's value is the seeds that it brings at once, plus
the value of the position after it if the same player moves again (K3), or less that value otherwise.

The search is a loop, not a recursion, with a frame for each ply in a flat array, so it can pause at any
moment.  The first move is searched with the whole window and the others with a null window, to show that they
are no better (principal variation search).  Late moves are first searched to a lower depth.  From depth 0 on
only extra turns and captures are searched, and the mover may also stand pat on the evaluation (quiescence
search).  Depths are counted in halves of a ply.

``control[TAINT]`` is not 0 if an evaluation contributed to the value of the root; otherwise the value is
exact.  The value of a position is exact if that of the move that causes a cutoff is, or if those of all its
moves are.
"""

from sample_bots.strong.compiled import Array, kernel
from sample_bots.strong.kalah.board import Tables, captured, evaluate, key_of, play, seeds_in, tactical_moves
from sample_bots.strong.kalah.cell_board import UNIT, is_over
from sample_bots.strong.kalah.transposition_table import (
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
    bucket_of,
    probe,
    store,
)

PLY = 2
"""Units of depth in one ply."""
MAX_PLIES = 120
"""Maximum length of a line, which ends with an evaluation."""

# Indices of ``control``.
PITS, EMPTY_CAPTURE, ON_TURN, TABLE_MASK, AGE, EXTRA_COST, QUIET_PLIES, LATE_MOVES, TABLE_ENDS = range(9)
NODES, PAUSE, PAUSED, AT_PLY, FIRST_PIT, BEST_PIT, BEST_VALUE, TAINT = range(9, 17)
CONTROLS = 17

# Indices in a frame.
(
    DEPTH,
    ALPHA,
    BETA,
    OWN,
    OTHER,
    FLOOR,  # alpha before the first move
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
"""Bound that is greater than any value, in units."""
KILLERS = 2
SEEDS_KEPT = 32
"""Number of seed counts that the history distinguishes: it is indexed by pit and seeds."""
FROM_TABLE, FROM_EXTRA, FROM_CAPTURE, FROM_KILLER = 1 << 40, 1 << 38, 1 << 34, 1 << 32
"""Offsets in the order of moves, which is descending."""
HISTORY_LIMIT = 1 << 30
"""Value of a history entry at which all entries are halved."""
PIT_BITS = 6
QUIET = FROM_KILLER << PIT_BITS
"""Least order of a killer move; the orders of all other quiet moves are lower."""
TABLE_DEPTH = 2 * PLY
"""Least depth at which the transposition table is used: shallower searches take less time than a lookup.
With a ply less, six positions at manchester took 1.3 times as long to depth 12."""
REDUCED = 3 * PLY
"""Least depth at which late moves are first searched to a lower depth."""
CHAIN = 8
"""Plies beyond twice the depth of the search after which extra turns cost depth."""


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
    """Search the position of the first ply with the window and depth of its frame; return the root's value.

    ``control`` has the settings, the pit to search first (FIRST_PIT, 1..p, or 0) and the number of nodes so
    far, which is counted on.  The search writes the best pit (BEST_PIT, 1..p, or 0 if none was found) and its
    value (BEST_VALUE).  When the number of nodes reaches PAUSE, the function sets PAUSED and returns; the
    best pit is then that of the moves searched so far.  Called again with PAUSED unchanged, the search
    continues.
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
            if depth >= TABLE_DEPTH:
                key = key_of(cells, here, mine, theirs, p, numbers, tables)
                frames[f + KEY] = key
                packed = probe(table, bucket_of(key, mask), key)
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
            tactical = tactical_moves(cells, here, mine, p, tables)
            for pit in range(p):
                seeds = seeds_in(cells, here, mine, pit, tables)
                if seeds == 0:
                    continue
                taken = 0
                if (tactical >> pit) & 1 != 0:
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
            # The value of the position after move number NEXT is known.
            gain = frames[f + GAIN]
            if frames[f + AGAIN] != 0:
                value = gain + value
            else:
                value = gain - value
            alpha = frames[f + ALPHA]
            trial = frames[f + TRIAL]
            if trial != 0 and value > alpha and (trial > 1 or value < beta):
                # The reduced search failed high: search again with the whole window and depth.
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
        # All moves are searched, or one caused a cutoff.
        value = frames[f + VALUE]
        if depth >= TABLE_DEPTH:
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
            store(table, bucket_of(key, mask), key, packed)
        ply -= 1
        if ply < 0:
            break
    control[NODES] = nodes
    control[TAINT] = tainted
    return value  # type: ignore[no-any-return]
