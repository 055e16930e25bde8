"""Evidence: what games say, with identical games counted once.

Bots that do not use chance play the same game again and again, and a hundred copies of it say no more than
one.  So games with the same first bot, second bot and opening are a group.  What a group says is the average
over all its games; how much evidence that is, is the effective number of different games: of n games,
n ** 2 / (the sum of the squares of how often each was played) (L. Kish, Survey Sampling, 1965).  That is n if
all are different, 1 if all are copies of one; and if most are copies of one, hardly more than 1, because the
average then rests on that one game.  (Counting each kind once would be worse: a bot that breaks at its first
move in 99 of 100 games would be rated by one of these.)

Games of one pair (the same opening, sides exchanged) have something in common, so statistics take a pair for
one cluster of evidence.  Clusters are counted in the same way.  Two pairs are equal if their games are.  A
pair of which one game is missing yet, and whose other game is known from another pair, is taken for an
unfinished copy of that pair.

Equal pairs become one cluster before anything is computed, so that copies change no number in the least.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tournaments.game_summary import GameSummary


@dataclass(frozen=True)
class Evidence:
    """Games as arrays; a row is a game, or several identical games."""

    names: tuple[str, ...]
    """Of the bots; ``first`` and ``second`` are indices into it."""
    first: npt.NDArray[np.int64]
    second: npt.NDArray[np.int64]
    points: npt.NDArray[np.float64]
    """Of the first: 1, 0.5 or 0."""
    weight: npt.NDArray[np.float64]
    """How many games' evidence this is; they sum to the effective number of different games."""
    cluster: npt.NDArray[np.int64]
    """Games of one pair have the same number, counted from 0."""
    cluster_weight: npt.NDArray[np.float64]
    """How many clusters' evidence each cluster is; (clusters,)."""
    played: npt.NDArray[np.int64]
    """Games of each bot, copies included; (bots,)."""
    unique: npt.NDArray[np.int64]
    """Different games of each bot; (bots,)."""

    @property
    def games(self) -> int:
        """Different games of all bots."""
        return int(self.unique.sum()) // 2


def evidence_of(names: Sequence[str], games: Iterable[GameSummary]) -> Evidence:
    """The evidence in games between bots with these names.

    Games between others are left out.  Raises ValueError for a name that occurs twice.
    """
    number = {name: index for index, name in enumerate(names)}
    if len(number) != len(names):
        raise ValueError("two bots have the same name")
    starts = _Starts(number)
    start_of = starts.numbers.get
    copies = starts.copies
    kinds: dict[tuple[int, str | int], int] = {}
    points: list[float] = []
    repeats: list[int] = []
    clusters: dict[tuple[str, int] | int, list[int]] = {}
    for serial, game in enumerate(games):
        start = start_of((game.first, game.second, game.opening))
        if start is None:
            start = starts.add(game.first, game.second, game.opening)
        if start < 0:
            continue
        copies[start] += 1
        # A game without a fingerprint is like no other.
        identity = (start, game.fingerprint or serial)
        kind = kinds.get(identity)
        if kind is None:
            kind = kinds[identity] = len(kinds)
            points.append(0.5 if game.winner is None else 1.0 - game.winner)
            repeats.append(0)
        repeats[kind] += 1
        # Only games between the same two bots from the same opening are one pair, whatever their keys say.
        key = (game.pair, starts.group[start]) if game.pair else serial
        cluster = clusters.get(key)
        if cluster is None:
            clusters[key] = [kind]
        else:
            cluster.append(kind)
    identities = list(kinds)
    begun = [start for start, _ in identities]
    alike, halves = _merged(clusters.values(), identities)
    different = Counter(begun)
    squares = [0] * len(copies)
    for start, often in zip(begun, repeats, strict=True):
        squares[start] += often * often
    total: Counter[int] = Counter()
    total_squares: Counter[int] = Counter()
    sizes = [
        count + sum(halves[kinds].values()) if kinds in halves else count for kinds, count in alike.items()
    ]
    groups = [starts.group[begun[kinds[0]]] for kinds in alike]
    for group, size in zip(groups, sizes, strict=True):
        total[group] += size
        total_squares[group] += size * size
    row_kinds: list[int] = []
    row_weights: list[float] = []
    row_clusters: list[int] = []
    for cluster_number, (cluster_kinds, whole) in enumerate(alike.items()):
        more = halves.get(cluster_kinds)
        for kind in cluster_kinds:
            # Taken out, so that a game that is twice in a pair gets it once.
            count = whole + more.pop(kind, 0) if more else whole
            row_kinds.append(kind)
            # Whole numbers are multiplied before they are divided, so that pure copies weigh exactly 1.
            row_weights.append(count * copies[begun[kind]] / squares[begun[kind]])
            row_clusters.append(cluster_number)
    of_row = np.array(begun, dtype=np.int64)[np.array(row_kinds, dtype=np.int64)]
    first, second = np.array(starts.first, dtype=np.int64), np.array(starts.second, dtype=np.int64)
    played, unique = (
        np.rint(np.bincount(first, counts, len(names)) + np.bincount(second, counts, len(names)))
        for counts in (copies, [different[start] for start in range(len(copies))])
    )
    return Evidence(
        names=tuple(names),
        first=first[of_row],
        second=second[of_row],
        points=np.array(points, dtype=np.float64)[np.array(row_kinds, dtype=np.int64)],
        weight=np.array(row_weights, dtype=np.float64),
        cluster=np.array(row_clusters, dtype=np.int64),
        cluster_weight=np.array(
            [size * total[group] / total_squares[group] for group, size in zip(groups, sizes, strict=True)],
            dtype=np.float64,
        ),
        played=played.astype(np.int64),
        unique=unique.astype(np.int64),
    )


def unique_games(games: Iterable[GameSummary]) -> int:
    """How many of these games are different; every game without a fingerprint is."""
    known = set()
    unknown = 0
    for game in games:
        if game.fingerprint:
            known.add((game.first, game.second, game.opening, game.fingerprint))
        else:
            unknown += 1
    return len(known) + unknown


class _Starts:
    """Numbers for what games have in common before the first move: first bot, second bot, opening."""

    def __init__(self, bots: Mapping[str, int]) -> None:
        self._bots = bots
        self._groups: dict[tuple[int, int, str], int] = {}
        self.numbers: dict[tuple[str, str, str], int] = {}
        self.first: list[int] = []
        self.second: list[int] = []
        self.group: list[int] = []
        """The same number for a start and for that with exchanged sides."""
        self.copies: list[int] = []
        """Games with each start, counted by the caller."""

    def add(self, first: str, second: str, opening: str) -> int:
        """The number of a new start; -1 if one of the bots is not asked for."""
        one, other = self._bots.get(first), self._bots.get(second)
        number = -1
        if one is not None and other is not None:
            number = len(self.first)
            self.first.append(one)
            self.second.append(other)
            sides = (min(one, other), max(one, other), opening)
            self.group.append(self._groups.setdefault(sides, len(self._groups)))
            self.copies.append(0)
        self.numbers[first, second, opening] = number
        return number


Kinds = tuple[int, ...]
"""What a cluster consists of: numbers of different games, in ascending order."""


def _merged(
    clusters: Iterable[list[int]], identities: Sequence[tuple[int, str | int]]
) -> tuple[dict[Kinds, int], dict[Kinds, dict[int, int]]]:
    """How many clusters of each kind there are; and, of whole ones, how many halves belong to them.

    The latter is cluster -> its game -> how many times that one was played without the other.
    """
    alike: dict[Kinds, int] = {}
    for games in clusters:
        kinds = tuple(sorted(games)) if len(games) > 1 else (games[0],)
        alike[kinds] = alike.get(kinds, 0) + 1
    halves: dict[Kinds, dict[int, int]] = {}
    alone = {kinds[0] for kinds in alike if len(kinds) == 1}
    if alone:
        # In an order that does not depend on the order of the games.
        wholes = [kinds for kinds in alike if len(kinds) > 1 and not alone.isdisjoint(kinds)]
        home: dict[int, Kinds] = {}
        for kinds in sorted(wholes, key=lambda each: sorted(str(identities[kind][1]) for kind in each)):
            for kind in kinds:
                home.setdefault(kind, kinds)
        for kind in alone & home.keys():
            halves.setdefault(home[kind], {})[kind] = alike.pop((kind,))
    return alike, halves
