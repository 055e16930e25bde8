"""Pairing of one round of a Swiss system.

Pairings that the organiser fixed stay as they are.  The pairing of the other bots is a perfect matching of
least cost.  The costs, each of which comes before all that follow:

1. pairs that the organiser forbade;
2. bots that met before: a third meeting before any second ones;
3. a bye for a bot that had one, in the same way;
4. a bye for a bot that is not the lowest scored;
5. differences of score, squared, so that two small ones cost less than a large one;
6. within a group of the same score, how far a pair is from the first of the top half against the first of
   the bottom half, and so on, as in the Dutch system (FIDE Handbook C.04.3);
7. lots, so that there is a single best pairing, whatever the algorithm.

Bots of the same score are in the order of lots that were drawn once, by the seed.
"""

import random
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from tournaments.schedule.formats.rounds import drawn_lots
from tournaments.schedule.pairing import NOBODY

Table = tuple[tuple[int, int], ...]
"""The matches of a round: the bot that moves first in the first game, then its opponent, NOBODY in a bye."""

LOTS = 1 << 48
"""Number of different lots.  By the isolation lemma (Mulmuley, Vazirani, Vazirani, Matching is as easy as
matrix inversion, 1987), two pairings of 41 bots cost the same with a chance below 861 / LOTS, 3 in 10^12."""

Standing = tuple[tuple[int, int], ...]
"""The bots that are to be paired, each with its score, by number: half points, or match points."""


@lru_cache(maxsize=1024)
def pair_round(
    standing: Standing,
    past: tuple[Table, ...],
    seed: int,
    fixed: Table = (),
    forbidden: frozenset[frozenset[int]] = frozenset(),
) -> Table:
    """Return the table of the round after those of ``past``, leaders first.

    Tables are cached, because a pairing of 41 bots takes 30 ms and is computed whenever games have ended.

    Args:
        standing: The bots that play.
        past: The tables of all earlier rounds.
        seed: Decides what is drawn by lot.
        fixed: The pairings that the organiser fixed, of bots in ``standing``, each in one of them at most.
        forbidden: Pairs that meet only if there is no other pairing.
    """
    if len(standing) < 2:
        return ()
    number = len(past) + 1
    lots = drawn_lots(max(bot for bot, _ in standing) + 1, f"{seed}")
    ranked = sorted(standing, key=lambda line: (-line[1], lots[line[0]]))
    rank = {bot: index for index, (bot, _) in enumerate(ranked)} | {NOBODY: len(ranked)}
    met = Counter(frozenset(pair) for table in past for pair in table)
    chance = random.Random(f"{seed}/{number}/pairs")
    placed = {bot for pair in fixed for bot in pair}
    free = [line for line in ranked if line[0] not in placed]
    bots = [*(bot for bot, _ in free), NOBODY]
    costs = _costs(free, met, forbidden, chance)
    pairs = [(bots[high], bots[low]) for high, low in _best_matching(costs, len(free))]
    pairs += [(min(pair, key=rank.__getitem__), max(pair, key=rank.__getitem__)) for pair in fixed]
    return tuple(
        _sides(one, other, past, chance) for one, other in sorted(pairs, key=lambda pair: rank[pair[0]])
    )


def can_avoid(bots: Sequence[int], fixed: Table, forbidden: frozenset[frozenset[int]]) -> bool:
    """Return whether a round with these fixed pairings can be paired without a forbidden pair."""
    placed = {bot for pair in fixed for bot in pair}
    standing = tuple((bot, 0) for bot in bots)
    free = frozenset(bot for bot in bots if bot not in placed)
    table = pair_round(standing, (), 0, fixed, frozenset(pair for pair in forbidden if pair <= free))
    return not any(frozenset(pair) in forbidden for pair in table)


def _costs(
    ranked: Sequence[tuple[int, int]],
    met: Counter[frozenset[int]],
    forbidden: frozenset[frozenset[int]],
    chance: random.Random,
) -> dict[tuple[int, int], tuple[int, ...]]:
    """Return the costs of each possible pair, by its indices in ``ranked``, the better bot first.

    The module docstring lists the costs.  With an odd number of bots, the index after the last is NOBODY's.
    """
    size = len(ranked)
    members = Counter(half for _, half in ranked)
    costs: dict[tuple[int, int], tuple[int, ...]] = {}
    for high, (bot, half) in enumerate(ranked):
        for low in range(high + 1, size + size % 2):
            lot = int(chance.random() * LOTS)
            if low == size:
                byes = _repetition(met[frozenset((bot, NOBODY))], size)
                costs[high, low] = (0, 0, byes, half - ranked[-1][1], 0, 0, lot)
                continue
            other, other_half = ranked[low]
            pair = frozenset((bot, other))
            meetings = _repetition(met[pair], size)
            off = 0
            if half == other_half:
                off = abs(low - high - members[half] // 2)
            unlike = (half - other_half) ** 2
            costs[high, low] = (int(pair in forbidden), meetings, 0, 0, unlike, off**2, lot)
    return costs


def _repetition(times: int, size: int) -> int:
    """Return the cost of one more meeting after ``times``: more than any number of rarer ones."""
    return size**times if times else 0


def _best_matching(costs: dict[tuple[int, int], tuple[int, ...]], bots: int) -> list[tuple[int, int]]:
    """Return the perfect matching with the least sum of costs, whose first parts decide first; in order."""
    if not costs:
        return []
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
    """Return two bots, the one that moves first in the first game first.

    It is the bot that did so less often, or else less recently, or else one drawn by lot.
    """
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
