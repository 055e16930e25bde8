"""The search of Kalamala as kernels: principal variation search with a transposition table.

Theory of operation.  A value is always that for the side to move, in points (evaluation.py), or beyond WON if
the game is decided.  The order of turns is: the turn of the table entry, captures, killers, the others by
their history.  All but the first are searched with a null window, late ones to a lower depth.  Below depth 0
only captures are searched (quiescence search), since a stone that can be captured is as good as lost.

Table entries do not contain the earlier boards of rule 8.  So a value from the table may rest on a line that
is forbidden here (the "graph history" problem); the turns that are searched are always legal.
"""

from sample_bots.strong.compiled import Array, kernel
from sample_bots.strong.kalamala.evaluation import WIN, WON, captures_of, stones_left, turns_of, value_of
from sample_bots.strong.kalamala.geometry import (
    MAX_RESERVE,
    NO_TURN,
    OWN,
    PLY_HASHES,
    REMOVED,
    RESERVE_HASHES,
    SIDE_HASH,
)
from sample_bots.strong.kalamala.memory import (
    BEST_LINES,
    CAP,
    FEATURES,
    KEYS,
    LINE_LENGTHS,
    MAX_PLY,
    NODE_LIMIT,
    NODES,
    PASSED,
    PAST,
    PAST_COUNT,
    PAST_FROM,
    RESERVES,
    ROOT_COUNT,
    ROOT_TURNS,
    ROOT_VALUE,
    SCORES,
    STOPPED,
    SUMS,
    TURNS,
    USE_PRUNING,
    USE_QUIESCENCE,
    USE_TABLE,
    WIDTH,
)
from sample_bots.strong.kalamala.ordering import KILLER_SCORE, next_turn, note_cut, score_turns
from sample_bots.strong.kalamala.transposition_table import (
    AT_LEAST,
    AT_MOST,
    EXACT,
    bound_of,
    depth_of,
    probe,
    store,
    turn_of,
    value_at,
)
from sample_bots.strong.kalamala.turns import (
    CAPTURES,
    QUIET,
    has_legal_turn,
    is_lasting,
    is_past,
    key_after,
    play,
    take_back,
    turns_at,
)

INFINITE = WIN + 1

KNOWN_STAGE, CAPTURE_STAGE, LAST_STAGE = 0, 1, 3
"""Stages of trying the turns of a position."""

# Pruning.  The numbers are usual ones for a stone of 100 points.  Alternatives did no better in matches of 80
# games at 2,000 nodes a turn: no null move scored 46 %, margins of 110 and 130 points 49 %, late turn pruning
# twice as early and a ply further from the leaves 50 %, larger reductions 46 %.
CUT_DEPTH, CUT_MARGIN = 3, 70
"""Reverse futility pruning: maximum depth, and margin above beta in points a ply."""
PASS_DEPTH, PASS_REDUCTION = 3, 2
"""Null move pruning: minimum depth, and reduction in plies."""
FREE_TURNS = 6
"""Minimum number of movements for both, unless there are unplaced stones: with fewer a side may soon have
none, and lose."""
SKIP_DEPTH, SKIP_MARGIN = 2, 80
"""Razoring: maximum depth, and margin below alpha in points a ply."""
LATE_DEPTH, LATE_TURNS = 3, 6
"""Late turn pruning: up to LATE_DEPTH, quiet turns after the first LATE_TURNS * depth * depth are left
out."""
REDUCE_DEPTH, REDUCE_TURNS, REDUCE_MORE = 3, 3, 12
"""Late turn reductions: minimum depth, and number of turns before reductions of one ply and of two."""


@kernel
def value_at_cap(tables: Array, memory: Array, ply: int, side: int) -> int:
    """Return the result when the house rule ends the game."""
    if not has_legal_turn(tables, memory, ply, side):
        return ply - WIN  # rule 9
    lead = stones_left(memory, ply, side) - stones_left(memory, ply, 1 - side)
    return WIN - ply if lead > 0 else ply - WIN if lead < 0 else 0


@kernel
def quiescence(tables: Array, memory: Array, ply: int, side: int, alpha: int, beta: int) -> int:
    """Return the value of a position by a search of captures alone."""
    total = memory[SUMS + ply]
    if turns_of(total, side) == 0 and memory[RESERVES + 2 * ply + side] == 0:
        return ply - WIN  # rule 9
    if memory[ROOT_TURNS] + ply >= memory[CAP]:
        return value_at_cap(tables, memory, ply, side)
    best: int = value_of(memory, ply, side)
    if best >= beta or captures_of(total, side) == 0 or ply >= MAX_PLY:
        return best
    if best > alpha:
        alpha = best
    count = turns_at(tables, memory, ply, side, CAPTURES)
    for index in range(TURNS + ply * WIDTH, TURNS + ply * WIDTH + count):
        if memory[STOPPED] != 0:
            return best
        turn = memory[index]
        play(tables, memory, ply, side, turn, key_after(memory, ply, side, turn))
        memory[NODES] += 1
        value = -quiescence(tables, memory, ply + 1, 1 - side, -beta, -alpha)
        take_back(tables, memory, ply, side, turn)
        if value > best:
            best = value
            if value >= beta:
                return best
            if value > alpha:
                alpha = value
    return best


@kernel
def note_best(memory: Array, ply: int, turn: int) -> None:
    """Prepend a turn to the best line of the next ply."""
    start = BEST_LINES + ply * MAX_PLY
    length = memory[LINE_LENGTHS + ply + 1]
    memory[start] = turn
    for index in range(length):
        memory[start + 1 + index] = memory[start + MAX_PLY + index]
    memory[LINE_LENGTHS + ply] = length + 1


@kernel
def position_key(memory: Array, ply: int, side: int) -> int:
    """Return the key of a position in the table, which depends on the turns left if the cap is near."""
    key: int = memory[KEYS + ply] ^ (SIDE_HASH if side == 1 else 0)
    key ^= RESERVE_HASHES[memory[RESERVES + 2 * ply]]
    key ^= RESERVE_HASHES[MAX_RESERVE + 1 + memory[RESERVES + 2 * ply + 1]]
    left = memory[CAP] - memory[ROOT_TURNS] - ply
    if memory[CAP] - memory[ROOT_TURNS] <= MAX_PLY:
        key ^= PLY_HASHES[left & (MAX_PLY - 1)]
    return key


@kernel
def pass_turn(memory: Array, ply: int) -> None:
    """Make a null move: the next ply has the same position with the other side to move."""
    memory[SUMS + ply + 1] = memory[SUMS + ply]
    memory[KEYS + ply + 1] = memory[KEYS + ply]
    memory[RESERVES + 2 * ply + 2] = memory[RESERVES + 2 * ply]
    memory[RESERVES + 2 * ply + 3] = memory[RESERVES + 2 * ply + 1]
    memory[PAST_FROM + ply + 1] = memory[PAST_FROM + ply]
    memory[PAST + memory[PAST_COUNT] + ply] = memory[KEYS + ply]


@kernel
def search(
    tables: Array,
    memory: Array,
    table: Array,
    ply: int,
    side: int,
    depth: int,
    alpha: int,
    beta: int,
) -> int:
    """Return the value of a position between alpha and beta, or a bound outside; undefined if STOPPED."""
    memory[LINE_LENGTHS + ply] = 0
    if memory[STOPPED] != 0:
        return 0
    total = memory[SUMS + ply]
    turns = turns_of(total, side)
    reserve = memory[RESERVES + 2 * ply + side]
    if turns == 0 and reserve == 0:
        return ply - WIN  # rule 9
    if memory[ROOT_TURNS] + ply >= memory[CAP]:
        return value_at_cap(tables, memory, ply, side)
    features = memory[FEATURES]
    if depth <= 0 or ply >= MAX_PLY:
        if features & USE_QUIESCENCE != 0:
            return quiescence(tables, memory, ply, side, alpha, beta)
        return value_of(memory, ply, side)
    wide = beta - alpha > 1
    key = 0
    known = NO_TURN
    if features & USE_TABLE != 0:
        key = position_key(memory, ply, side)
        entry = probe(memory, table, key)
        if entry != 0:
            known = turn_of(entry)
            if not wide and depth_of(entry) >= depth:
                value = value_at(entry, ply)
                bound = bound_of(entry)
                if (
                    bound == EXACT
                    or (bound == AT_LEAST and value >= beta)
                    or (bound == AT_MOST and value <= alpha)
                ):
                    return value
    prune = features & USE_PRUNING != 0 and not wide and alpha > -WON and beta < WON
    static = 0
    if prune:
        static = value_of(memory, ply, side)
        free = reserve > 0 or turns >= FREE_TURNS
        if free and depth <= CUT_DEPTH and static - CUT_MARGIN * depth >= beta:
            return static
        if depth <= SKIP_DEPTH and static + SKIP_MARGIN * depth <= alpha:
            return quiescence(tables, memory, ply, side, alpha, beta)
        if memory[PASSED + ply] == 0 and depth >= PASS_DEPTH and static >= beta and free:
            pass_turn(memory, ply)
            memory[PASSED + ply + 1] = 1
            value = -search(
                tables, memory, table, ply + 1, 1 - side, depth - 1 - PASS_REDUCTION, -beta, 1 - beta
            )
            memory[PASSED + ply + 1] = 0
            if memory[STOPPED] != 0:
                return 0
            if value >= beta:
                return value if value < WON else beta
    best = -INFINITE
    best_turn = NO_TURN
    original = alpha
    legal = 0
    # The table's turn, then captures, then the others: often the later ones need not be listed.
    stage = KNOWN_STAGE if known != NO_TURN else CAPTURE_STAGE
    index = 0
    end = 0
    while True:
        if stage == KNOWN_STAGE:
            turn = known
            stage = CAPTURE_STAGE
        else:
            if index == end:
                if stage == LAST_STAGE:
                    break
                kind = CAPTURES if stage == CAPTURE_STAGE else QUIET
                index = ply * WIDTH
                end = index
                if kind == QUIET or captures_of(total, side) > 0:
                    end += turns_at(tables, memory, ply, side, kind)
                    score_turns(memory, ply, side, end - index)
                stage += 1
                continue
            turn = next_turn(memory, index, end)
            index += 1
            if turn == known:
                continue
        after = key_after(memory, ply, side, turn)
        if not is_lasting(turn) and is_past(memory, ply, after):
            continue
        legal += 1
        quiet = turn >> REMOVED & 3 == 0 or turn >> OWN & 1 != 0
        if (
            prune
            and depth <= LATE_DEPTH
            and legal > LATE_TURNS * depth * depth
            and turn != known
            and memory[SCORES + index - 1] < KILLER_SCORE
            and best > -WON
        ):
            break  # all other turns are quiet, too
        play(tables, memory, ply, side, turn, after)
        memory[NODES] += 1
        if memory[NODES] >= memory[NODE_LIMIT]:
            memory[STOPPED] = 1
        deeper = depth - 1
        if legal == 1:
            value = -search(tables, memory, table, ply + 1, 1 - side, deeper, -beta, -alpha)
        else:
            reduction = 0
            if features & USE_PRUNING != 0 and quiet and depth >= REDUCE_DEPTH and legal > REDUCE_TURNS:
                reduction = 2 if legal > REDUCE_MORE and depth > REDUCE_DEPTH else 1
            value = -search(tables, memory, table, ply + 1, 1 - side, deeper - reduction, -alpha - 1, -alpha)
            if value > alpha and (reduction > 0 or value < beta):
                value = -search(tables, memory, table, ply + 1, 1 - side, deeper, -beta, -alpha)
        take_back(tables, memory, ply, side, turn)
        if memory[STOPPED] != 0:
            return 0
        if value > best:
            best = value
            best_turn = turn
            if value > alpha:
                alpha = value
                note_best(memory, ply, turn)
                if value >= beta:
                    if quiet:
                        note_cut(memory, ply, side, depth, turn)
                    break
    if legal == 0:
        return ply - WIN  # rule 9
    if features & USE_TABLE != 0:
        bound = AT_LEAST if best >= beta else AT_MOST if best <= original else EXACT
        store(memory, table, key, depth, bound, best, best_turn, ply)
    return best


@kernel
def search_root(
    tables: Array, memory: Array, table: Array, ply: int, side: int, depth: int, alpha: int, beta: int
) -> int:
    """Search one iteration over the turns listed at the root.

    A turn that is better than alpha moves to the front.  ROOT_VALUE is the value of the first turn, also if
    the iteration was stopped.  ``ply`` is 0, but must not be a literal: numba would compile ``search`` for a
    literal separately, and machine code of a kernel that calls itself and has two such versions
    crashes when it is loaded (numba's issue 6713).
    """
    memory[LINE_LENGTHS] = 0
    best = -INFINITE
    count = memory[ROOT_COUNT]
    for index in range(count):
        turn = memory[TURNS + index]
        play(tables, memory, 0, side, turn, key_after(memory, 0, side, turn))
        memory[NODES] += 1
        if memory[NODES] >= memory[NODE_LIMIT]:
            memory[STOPPED] = 1
        if index == 0:
            value = -search(tables, memory, table, ply + 1, 1 - side, depth - 1, -beta, -alpha)
        else:
            quiet = turn >> REMOVED & 3 == 0 or turn >> OWN & 1 != 0
            reduction = 0
            if (
                memory[FEATURES] & USE_PRUNING != 0
                and quiet
                and depth >= REDUCE_DEPTH
                and index > REDUCE_MORE
            ):
                reduction = 1
            value = -search(
                tables, memory, table, ply + 1, 1 - side, depth - 1 - reduction, -alpha - 1, -alpha
            )
            if value > alpha and (reduction > 0 or value < beta):
                value = -search(tables, memory, table, ply + 1, 1 - side, depth - 1, -beta, -alpha)
        take_back(tables, memory, 0, side, turn)
        if memory[STOPPED] != 0:
            break
        if value > best:
            best = value
            memory[ROOT_VALUE] = value
            if value > alpha:
                alpha = value
                note_best(memory, 0, turn)
                for place in range(index, 0, -1):
                    memory[TURNS + place] = memory[TURNS + place - 1]
                memory[TURNS] = turn
                if value >= beta:
                    break
    return best
