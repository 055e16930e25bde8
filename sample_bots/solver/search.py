"""The proof search: whether the mover can still win a given margin, to the end of the game.

Theory of operation.  One kernel proves or refutes "the mover gets at least GOAL more of the seeds in the pits
than the other player" for one position (a null-window alpha-beta search).  It stores the resulting bounds of
the margin for each searched position (fail-soft).  A few such questions determine the exact margin.  The
margin always has the parity of the seeds in the pits, so goals step by two.

- A position with few seeds is looked up in the endgame database.
- All successors of a position are looked up, in the database and in the memory, before any is searched:
  often one lookup settles the position.
- The memory has the exact number of a position (its quotient by the number of buckets), so that two positions
  are never confused, and a result is a proof.  A bucket has two entries: one for the position with the most
  expensive search, one for the latest.
- There is no recursion: the path from the root is in ``frames`` and ``children``.  So the kernel can stop
  after any number of positions and continue later, and only memory limits the depth.
"""

from sample_bots.solver.layout import (
    ADD_OTHER,
    ADD_OWN,
    ADD_STORE,
    EMPTY_CAPTURE,
    FACTS,
    LAST,
    MASK,
    MOST,
    ON_TURN,
    PITS,
    SOWING_FIELDS,
    WIDTH,
    number_of,
)
from sample_bots.strong.compiled import Array, kernel

DATABASE_SIZE = FACTS
BUCKETS = FACTS + 1
VALUE_BITS = FACTS + 2
PER_PIT = FACTS + 3
SEARCH_FACTS = FACTS + 4
"""Fields of the facts, after those of the layout: positions in the database, buckets of the memory, bits of a
bound in an entry, and 1 or -1, see AGAIN_FIRST."""

FRAME = 9
F_OWN, F_OTHER, F_SEEDS, F_NUMBER, F_GOAL, F_BEST, F_COUNT, F_AT, F_START = range(FRAME)
"""Fields of a position on the path: the sides, seeds in the pits, number, goal, best bound so far, number of
successors (-1: not listed yet), index of the successor that is searched, and the count of positions when the
search of this one began."""

CHILD = 7
C_OWN, C_OTHER, C_SEEDS, C_NUMBER, C_GAIN, C_AGAIN, C_SCORE = range(CHILD)
"""Fields of a successor: the sides from its mover's view, seeds, number, seeds won by the sowing, 1 for an
extra turn, and its score in the order of the search (0: not searched)."""

STATE = 4
S_DEPTH, S_RETURNED, S_RESULT, S_POSITIONS = range(STATE)
"""State of the kernel between calls: depth of the path (-1: finished), 1 if a result is to be returned to the
position above, the result, number of positions searched."""

MOST_PLIES = 4000
"""Maximum length of the path.  Games of boards that can be solved have some hundred plies at most."""

AGAIN_FIRST = 4000
OTHERS = 1000
PER_SEED = 20
"""Scores of the order in which successors are searched: first those with an extra turn, from the pit next to
the store on; then those that win most seeds at once, by PER_SEED; among equal ones by the pit, with PER_PIT 1
the nearest to the store first.  An order after a search of one to four plies, and interrupting a successor in
favour of the next, took longer and mostly searched more positions: a constant order meets more positions
again."""

EFFORT_BITS = 6
EFFORT_MASK = (1 << EFFORT_BITS) - 1
"""Bits of an entry's effort, the binary logarithm of the number of positions of its search."""


@kernel
def search(
    state: Array,
    frames: Array,
    children: Array,
    memory: Array,
    database: Array,
    facts: Array,
    sowings: Array,
    numbers: Array,
    budget: int,
) -> int:
    """Continue the search for at most about ``budget`` positions.

    Returns 1 if it is finished, 0 if it is not, -1 if the path is too long.
    """
    pits = facts[PITS]
    width = facts[WIDTH]
    mask = facts[MASK]
    row = facts[MOST] + 1
    on_turn = facts[ON_TURN]
    empty_capture = facts[EMPTY_CAPTURE]
    database_size = facts[DATABASE_SIZE]
    buckets = facts[BUCKETS]
    value_bits = facts[VALUE_BITS]
    per_pit = facts[PER_PIT]
    value_mask = (1 << value_bits) - 1
    effort_shift = 2 * value_bits
    rest_shift = effort_shift + EFFORT_BITS
    depth = state[S_DEPTH]
    returned = state[S_RETURNED]
    result = state[S_RESULT]
    positions = state[S_POSITIONS]
    end = positions + budget
    while depth >= 0:
        frame = depth * FRAME
        own = frames[frame + F_OWN]
        other = frames[frame + F_OTHER]
        seeds = frames[frame + F_SEEDS]
        goal = frames[frame + F_GOAL]
        best = frames[frame + F_BEST]
        nest = depth * pits * CHILD
        count = frames[frame + F_COUNT]
        if count < 0:
            # The search of a position begins: list all successors.
            if positions >= end:
                break
            positions += 1
            frames[frame + F_START] = positions
            best = -seeds - 2
            count = 0
            for pit in range(pits):
                sown = (own >> (width * pit)) & mask
                if sown == 0:
                    continue
                at = (pit * row + sown) * SOWING_FIELDS
                new_own = own + sowings[at + ADD_OWN]
                new_other = other + sowings[at + ADD_OTHER]
                gain = sowings[at + ADD_STORE]
                last = sowings[at + LAST]
                captured = 0
                if last < pits and (new_own >> (width * last)) & mask == 1:  # K4
                    shift = width * (pits - 1 - last)
                    captured = (new_other >> shift) & mask
                    if captured != 0 or empty_capture != 0:
                        gain += captured + 1
                        new_other -= captured << shift
                        new_own -= 1 << (width * last)
                left = seeds - gain
                # K5: a side without seeds ends the game, with on-turn only that of the player who moves next.
                if last == pits:
                    over = new_own == 0 or (on_turn == 0 and new_other == 0)
                else:
                    over = new_other == 0 or (on_turn == 0 and new_own == 0)
                if over:
                    value = gain + (left if new_own != 0 else -left)
                    if value > best:
                        best = value
                        if value >= goal:
                            break
                    continue
                child = nest + count * CHILD
                if last == pits:
                    children[child + C_OWN] = new_own
                    children[child + C_OTHER] = new_other
                    child_number = number_of(new_own, new_other, facts, numbers)
                    children[child + C_AGAIN] = 1
                    if child_number < database_size:
                        value = gain + database[child_number]
                        if value > best:
                            best = value
                            if value >= goal:
                                break
                        continue
                    score = AGAIN_FIRST + pit
                else:
                    children[child + C_OWN] = new_other
                    children[child + C_OTHER] = new_own
                    child_number = number_of(new_other, new_own, facts, numbers)
                    children[child + C_AGAIN] = 0
                    if child_number < database_size:
                        value = gain - database[child_number]
                        if value > best:
                            best = value
                            if value >= goal:
                                break
                        continue
                    score = OTHERS + PER_SEED * gain + per_pit * pit
                children[child + C_SEEDS] = left
                children[child + C_NUMBER] = child_number
                children[child + C_GAIN] = gain
                children[child + C_SCORE] = score
                count += 1
            # Look up the bounds of the others.
            if best < goal:
                for i in range(count):
                    child = nest + i * CHILD
                    left = children[child + C_SEEDS]
                    child_number = children[child + C_NUMBER]
                    low = -left
                    high = left
                    rest = child_number // buckets
                    slot = 2 * (child_number - rest * buckets)
                    entry = memory[slot]
                    if entry >> rest_shift != rest + 1:
                        entry = memory[slot + 1]
                    if entry >> rest_shift == rest + 1:
                        low = 2 * (entry & value_mask) - left
                        high = 2 * ((entry >> value_bits) & value_mask) - left
                    gain = children[child + C_GAIN]
                    if children[child + C_AGAIN] != 0:
                        low += gain
                        high += gain
                    else:
                        low, high = gain - high, gain - low
                    if low >= goal:
                        best = low
                        break
                    if high < goal:
                        children[child + C_SCORE] = 0
                        if high > best:
                            best = high
            frames[frame + F_COUNT] = count
        elif returned != 0:
            child = nest + frames[frame + F_AT] * CHILD
            gain = children[child + C_GAIN]
            value = gain + result if children[child + C_AGAIN] != 0 else gain - result
            if value > best:
                best = value
        returned = 0
        chosen = -1
        while best < goal:
            chosen = -1
            score = 0
            for i in range(count):
                if children[nest + i * CHILD + C_SCORE] > score:
                    chosen = i
                    score = children[nest + i * CHILD + C_SCORE]
            if chosen < 0:
                break
            # The search of an earlier successor may have settled this one.
            child = nest + chosen * CHILD
            children[child + C_SCORE] = 0
            left = children[child + C_SEEDS]
            child_number = children[child + C_NUMBER]
            rest = child_number // buckets
            slot = 2 * (child_number - rest * buckets)
            entry = memory[slot]
            if entry >> rest_shift != rest + 1:
                entry = memory[slot + 1]
            if entry >> rest_shift != rest + 1:
                break
            low = 2 * (entry & value_mask) - left
            high = 2 * ((entry >> value_bits) & value_mask) - left
            gain = children[child + C_GAIN]
            if children[child + C_AGAIN] != 0:
                low += gain
                high += gain
            else:
                low, high = gain - high, gain - low
            if low >= goal:
                best = low
            elif high < goal:
                if high > best:
                    best = high
            else:
                break
        if best < goal and chosen >= 0:
            frames[frame + F_BEST] = best
            frames[frame + F_AT] = chosen
            child = nest + chosen * CHILD
            gain = children[child + C_GAIN]
            depth += 1
            if depth >= MOST_PLIES:
                return -1
            frame += FRAME
            frames[frame + F_OWN] = children[child + C_OWN]
            frames[frame + F_OTHER] = children[child + C_OTHER]
            frames[frame + F_SEEDS] = children[child + C_SEEDS]
            frames[frame + F_NUMBER] = children[child + C_NUMBER]
            # With an extra turn the successor has to reach the rest of the goal.  Otherwise its mover must
            # not get more than gain - goal.
            frames[frame + F_GOAL] = goal - gain if children[child + C_AGAIN] != 0 else gain - goal + 2
            frames[frame + F_COUNT] = -1
            continue
        # The position is settled: store its bounds, and return the result to the position above.
        number = frames[frame + F_NUMBER]
        rest = number // buckets
        slot = 2 * (number - rest * buckets)
        cost = positions - frames[frame + F_START] + 1
        effort = 0
        while cost > 1:
            cost >>= 1
            effort += 1
        low = 0
        high = seeds
        bound = (best + seeds) >> 1
        if best >= goal:
            low = bound
        else:
            high = bound
        costly = memory[slot]
        entry = costly
        if entry >> rest_shift != rest + 1:
            slot += 1
            entry = memory[slot]
        if entry >> rest_shift == rest + 1:
            low = max(low, entry & value_mask)
            high = min(high, (entry >> value_bits) & value_mask)
            effort = max(effort, (entry >> effort_shift) & EFFORT_MASK)
        elif effort >= (costly >> effort_shift) & EFFORT_MASK:
            memory[slot] = costly
            slot -= 1
        memory[slot] = (((((rest + 1) << EFFORT_BITS) | effort) << value_bits | high) << value_bits) | low
        result = best
        returned = 1
        depth -= 1
    state[S_DEPTH] = depth
    state[S_RETURNED] = returned
    state[S_RESULT] = result
    state[S_POSITIONS] = positions
    return 1 if depth < 0 else 0
