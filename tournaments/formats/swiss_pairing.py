"""Who meets whom in one round of a Swiss system.

The pairing is a perfect matching of least cost.  The costs, each of which comes before all that follow:

1. bots that met before: a third meeting before any second ones;
2. a bye for a bot that had one, in the same way;
3. a bye for a bot that is not the lowest scored;
4. differences of score, squared, so that two small ones cost less than a large one;
5. within a group of the same score, how far a pair is from the first of the top half against the first of
   the bottom half, and so on, as in the Dutch system (FIDE Handbook C.04.3);
6. lots, so that there is one best pairing only, whatever finds it.

Bots of the same score are in the order of lots that were drawn once, by the seed.
"""

import random
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from tournaments.formats.rounds import drawn_lots

Table = tuple[tuple[int, int], ...]
"""The matches of a round: who moves first in the first game, and who second, or NOBODY in a bye."""

NOBODY = -1
"""The opponent of a bot that has a bye."""

LOTS = 1 << 48
"""So many different lots that two pairings of 41 bots cost the same with a chance below 861 / LOTS, 3 in
10^12: the isolation lemma (Mulmuley, Vazirani, Vazirani, Matching is as easy as matrix inversion, 1987)."""

Standing = tuple[tuple[int, int], ...]
"""The bots that are to be paired, each with its half points, by number."""


@lru_cache(maxsize=1024)
def pair_round(standing: Standing, past: tuple[Table, ...], seed: int) -> Table:
    """The table of the round after those of ``past``, leaders first; no bot, or a single one, is not paired.

    Kept, because a pairing of 41 bots takes 30 ms, and is asked for whenever games have ended.
    """
    if len(standing) < 2:
        return ()
    number = len(past) + 1
    lots = drawn_lots(max(bot for bot, _ in standing) + 1, f"{seed}")
    ranked = sorted(standing, key=lambda line: (-line[1], lots[line[0]]))
    met = Counter(frozenset(pair) for table in past for pair in table)
    chance = random.Random(f"{seed}/{number}/pairs")
    bots = [bot for bot, _ in ranked]
    sides = [
        _sides(bots[high], bots[low] if low < len(bots) else NOBODY, past, chance)
        for high, low in _best_matching(_costs(ranked, met, chance), len(bots))
    ]
    return tuple(sides)


def _costs(
    ranked: Sequence[tuple[int, int]], met: Counter[frozenset[int]], chance: random.Random
) -> dict[tuple[int, int], tuple[int, ...]]:
    """Indices of two of the ranked, the better one first -> what their meeting costs, as the module says.

    With an odd number of bots, the index after the last is NOBODY's.
    """
    size = len(ranked)
    members = Counter(half for _, half in ranked)
    costs: dict[tuple[int, int], tuple[int, ...]] = {}
    for high, (bot, half) in enumerate(ranked):
        for low in range(high + 1, size + size % 2):
            lot = int(chance.random() * LOTS)
            if low == size:
                byes = _repetition(met[frozenset((bot, NOBODY))], size)
                costs[high, low] = (0, byes, half - ranked[-1][1], 0, 0, lot)
                continue
            other, other_half = ranked[low]
            meetings = _repetition(met[frozenset((bot, other))], size)
            off = 0
            if half == other_half:
                off = abs(low - high - members[half] // 2)
            costs[high, low] = (meetings, 0, 0, (half - other_half) ** 2, off**2, lot)
    return costs


def _repetition(times: int, size: int) -> int:
    """The cost of meeting once more after so many times: more than that of any number of rarer ones."""
    return size**times if times else 0


def _best_matching(costs: dict[tuple[int, int], tuple[int, ...]], bots: int) -> list[tuple[int, int]]:
    """The perfect matching with the least sum of costs, the first parts of which decide first; in order."""
    import networkx  # takes a tenth of a second, and only a Swiss system needs it

    # One number of all parts: each part's unit is more than all later parts of a whole matching together.
    pairs = (bots + 1) // 2
    units = [1]
    for part in reversed(range(1, len(next(iter(costs.values()))))):
        units.insert(0, units[0] * (pairs * max(cost[part] for cost in costs.values()) + 1))
    graph = networkx.Graph()
    for (high, low), cost in costs.items():
        graph.add_edge(high, low, weight=-sum(value * unit for value, unit in zip(cost, units, strict=True)))
    found = networkx.max_weight_matching(graph, maxcardinality=True)
    return sorted((min(pair), max(pair)) for pair in found)


def _sides(one: int, other: int, past: Sequence[Table], chance: random.Random) -> tuple[int, int]:
    """Who moves first in the first game: who did so less often, or else less recently, or else by lot."""
    lot = chance.random() < 0.5
    if other == NOBODY:
        return one, other
    surplus = {one: 0, other: 0}
    last = {one: 0, other: 0}
    for table in past:
        for first, second in table:
            for bot, sign in ((first, 1), (second, -1)):
                if bot in surplus and second != NOBODY:
                    surplus[bot] += sign
                    last[bot] = sign
    wishes = [(surplus[bot], last[bot]) for bot in (one, other)]
    if wishes[0] == wishes[1]:
        return (one, other) if lot else (other, one)
    return (one, other) if wishes[0] < wishes[1] else (other, one)
