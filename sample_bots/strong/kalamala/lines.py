"""The possible movements on a line, for every filling (rule 7).

The effect of a movement is encoded by places of the line (0 to 7; NO_PLACE: none): bits 0-3 and 4-7 the
places that become empty, 8-11 and 12-15 those that become occupied, 16-17 the number of removed stones, bit
18 whether the moved stones are the mover's own.  By Lemma 5 of the rules' text an effect has no more places.
"""

from sample_bots.strong.compiled import Array, kernel
from sample_bots.strong.kalamala.geometry import NO_PLACE
from sample_bots.strong.kalamala.memory import EFFECTS, EFFECTS_OF, SWAPPED

OFF = 8
"""Number of bits below the line's first place, for stones that a push moves off that end."""
EFFECT_REMOVED = 16
EFFECT_OWN = 18


@kernel
def effect_of(before: int, after: int, length: int) -> int:
    """Return the effect of moving a group, without its colour.

    ``before`` and ``after`` are the group's stones as bits; the line's first place is bit OFF.
    """
    on_line = ((1 << length) - 1) << OFF
    emptied = before & ~after & on_line
    filled = after & ~before & on_line
    effect = 0
    shift = 0
    removed = 0
    for place in range(length):
        if emptied >> (place + OFF) & 1:
            effect |= place << shift
            shift += 4
            removed += 1
    while shift < 8:
        effect |= NO_PLACE << shift
        shift += 4
    for place in range(length):
        if filled >> (place + OFF) & 1:
            effect |= place << shift
            shift += 4
            removed -= 1
    while shift < 16:
        effect |= NO_PLACE << shift
        shift += 4
    return effect | removed << EFFECT_REMOVED


@kernel
def add_effect(found: Array, count: int, effect: int) -> int:
    """Append an effect to ``count`` others unless it is among them; return the new count."""
    for index in range(count):
        if found[index] == effect:
            return count
    found[count] = effect
    return count + 1


@kernel
def line_effects(length: int, own: int, other: int, found: Array) -> int:
    """List all effects of a line's movements; return their number.

    ``own`` and ``other`` are the stones of the line as bits.
    """
    count = 0
    stones = own | other
    for end in range(length):
        if own >> end & 1 == 0:
            continue
        for direction in range(2):
            step = 1 - 2 * direction
            anchors = 1  # the longest A-group that ends here allows all that shorter ones do
            at = end - step
            while 0 <= at < length and own >> at & 1 == 1:
                anchors += 1
                at -= step
            near = end + step
            gap = 0
            while 0 <= near < length and stones >> near & 1 == 0:
                near += step
                gap += 1
            if near < 0 or near >= length:
                continue
            is_own = own >> near & 1
            colour = own if is_own == 1 else other
            moved = 0
            before = 0
            far = near
            while 0 <= far < length and colour >> far & 1 == 1 and moved < anchors:
                before |= 1 << (far + OFF)
                moved += 1
                far += step
                room = 0  # a push needs empty squares beyond P, or the edge
                at = far
                while 0 <= at < length and stones >> at & 1 == 0:
                    room += 1
                    at += step
                if at < 0 or at >= length:
                    room = length
                for distance in range(1, anchors // moved + 1):
                    down = before >> distance
                    up = before << distance
                    if distance <= gap:
                        effect = effect_of(before, down if step == 1 else up, length)
                        count = add_effect(found, count, effect | is_own << EFFECT_OWN)
                    if distance <= room:
                        effect = effect_of(before, up if step == 1 else down, length)
                        count = add_effect(found, count, effect | is_own << EFFECT_OWN)
    return count


@kernel
def is_capture(effect: int) -> int:
    """Return 1 if an effect removes stones of the opponent, else 0."""
    return 1 if effect >> EFFECT_REMOVED & 3 != 0 and effect >> EFFECT_OWN & 1 == 0 else 0


@kernel
def fill_effects(tables: Array, found: Array, length: int, first: int, end: int) -> int:
    """Write the effects of all fillings of a class, captures first; return their new end.

    ``first`` is the filling of the class's empty line.  Effects are written from EFFECTS + ``end`` on.
    """
    fillings = 3**length
    for filling in range(fillings):
        own = 0
        other = 0
        swapped = 0
        worth = 1
        rest = filling
        for place in range(length):
            digit = rest % 3
            rest //= 3
            if digit == 1:
                own |= 1 << place
                swapped += 2 * worth
            elif digit == 2:
                other |= 1 << place
                swapped += worth
            worth *= 3
        tables[SWAPPED + first + filling] = first + swapped
        count = line_effects(length, own, other, found)
        start = end
        for index in range(count):
            if is_capture(found[index]) == 1:
                tables[EFFECTS + end] = found[index]
                end += 1
        captures = end - start
        for index in range(count):
            if is_capture(found[index]) == 0:
                tables[EFFECTS + end] = found[index]
                end += 1
        tables[EFFECTS_OF + first + filling] = start << 16 | captures << 8 | count
    return end


@kernel
def copy_effects(tables: Array, first: int, same: int, length: int) -> None:
    """Copy the effects of a class to another class with lines of the same length."""
    for filling in range(3**length):
        tables[EFFECTS_OF + first + filling] = tables[EFFECTS_OF + same + filling]
        tables[SWAPPED + first + filling] = tables[SWAPPED + same + filling] - same + first
