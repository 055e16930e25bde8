"""Evidence from games, with near-copies counted once.

Bots that do not use chance play the same game again and again, and a hundred copies of it give no more
information than one.  Nor do games that agree until they are half over (``GameSummary.line``): a bot that
plays at random once its game is decided gains and loses nothing by it.  So games with the same first bot,
second bot and opening are a group, in which near-copies are one cluster.  The result of a group is the
average over all its games; the amount of its evidence is the effective number of clusters: of n games, n ** 2
/ (the sum of the squares of the clusters' sizes) (L. Kish, Survey Sampling, 1965).  That is n if all are
different, 1 if all are copies of one; and if most are copies of one, hardly more than 1, because the average
then rests on that one game.  (Counting each cluster once would be worse: a bot that breaks at its first move
in 99 of 100 games would be rated by one of these.)

Games of one pair (the same opening, sides exchanged) are correlated, so statistics treat a pair as one
cluster of evidence.  Pairs are counted in the same way: two pairs are near-copies if their games are.  A pair
of which one game is missing yet, and whose other game occurs in another pair, is treated as an unfinished
copy of that pair.

Pairs that are alike become one cluster before anything is computed, so that copies change no number.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tournaments.results.game_summary import GameSummary


@dataclass(frozen=True)
class Evidence:
    """Games as arrays; a row is a game, or several near-copies with the same result."""

    names: tuple[str, ...]
    """Names of the bots; ``first`` and ``second`` are indices into it."""
    first: npt.NDArray[np.int64]
    second: npt.NDArray[np.int64]
    points: npt.NDArray[np.float64]
    """Points of the first bot: 1, 0.5 or 0."""
    weight: npt.NDArray[np.float64]
    """Evidence of each row in games; the sum is the effective number of different games."""
    cluster: npt.NDArray[np.int64]
    """Number of the pair, counted from 0, which all games of a pair share."""
    cluster_weight: npt.NDArray[np.float64]
    """Evidence of each cluster in clusters; (clusters,)."""
    played: npt.NDArray[np.int64]
    """Number of games of each bot, copies included; (bots,)."""
    unique: npt.NDArray[np.int64]
    """Number of different games of each bot, near-copies counted once; (bots,)."""

    @property
    def games(self) -> int:
        """Number of different games of all bots."""
        return int(self.unique.sum()) // 2


def evidence_of(names: Sequence[str], games: Iterable[GameSummary]) -> Evidence:
    """Return the evidence in games between bots with these names.

    Games between others are left out.  Raises ValueError for a name that occurs twice.
    """
    number = {name: index for index, name in enumerate(names)}
    if len(number) != len(names):
        raise ValueError("two bots have the same name")
    starts = _Starts(number)
    start_of = starts.numbers.get
    copies = starts.copies
    lines: dict[tuple[int, str | int], int] = {}
    copies_of: list[int] = []
    kinds: dict[tuple[int, int | None], int] = {}
    points: list[float] = []
    clusters: dict[tuple[str, int] | int, list[int]] = {}
    for serial, game in enumerate(games):
        start = start_of((game.first, game.second, game.opening))
        if start is None:
            start = starts.add(game.first, game.second, game.opening)
        if start < 0:
            continue
        copies[start] += 1
        # A game with unknown moves is like no other.
        line = lines.setdefault((start, game.likeness or serial), len(lines))
        if line == len(copies_of):
            copies_of.append(0)
        copies_of[line] += 1
        identity = (line, game.winner)
        kind = kinds.get(identity)
        if kind is None:
            kind = kinds[identity] = len(kinds)
            points.append(0.5 if game.winner is None else 1.0 - game.winner)
        # Games with one pair name are a pair only if they have the same two bots and the same opening.
        key = (game.pair, starts.group[start]) if game.pair else serial
        cluster = clusters.get(key)
        if cluster is None:
            clusters[key] = [kind]
        else:
            cluster.append(kind)
    starts_of_lines = [start for start, _ in lines]
    likenesses = [likeness for _, likeness in lines]
    line_of = [line for line, _ in kinds]
    begun = [starts_of_lines[line] for line in line_of]
    alike, halves = _merged(clusters.values(), [f"{likenesses[line]} {winner}" for line, winner in kinds])
    different = Counter(starts_of_lines)
    squares = [0] * len(copies)
    for start, often in zip(starts_of_lines, copies_of, strict=True):
        squares[start] += often * often
    total: Counter[int] = Counter()
    sizes = [
        count + sum(halves[kinds].values()) if kinds in halves else count for kinds, count in alike.items()
    ]
    groups = [starts.group[begun[kinds[0]]] for kinds in alike]
    like_sizes: Counter[tuple[int, tuple[int, ...]]] = Counter()
    for group, kinds_of_pair, size in zip(groups, alike, sizes, strict=True):
        total[group] += size
        like_sizes[group, tuple(sorted(line_of[kind] for kind in kinds_of_pair))] += size
    total_squares: Counter[int] = Counter()
    for (group, _), size in like_sizes.items():
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
    """Return the number of different games, near-copies counted once.

    Every game with unknown moves is different.
    """
    known = set()
    unknown = 0
    for game in games:
        if game.likeness:
            known.add((game.first, game.second, game.opening, game.likeness))
        else:
            unknown += 1
    return len(known) + unknown


class _Starts:
    """Numbers of games' starts: first bot, second bot, opening."""

    def __init__(self, bots: Mapping[str, int]) -> None:
        self._bots = bots
        self._groups: dict[tuple[int, int, str], int] = {}
        self.numbers: dict[tuple[str, str, str], int] = {}
        self.first: list[int] = []
        self.second: list[int] = []
        self.group: list[int] = []
        """Group of each start, which it shares with the start with exchanged sides."""
        self.copies: list[int] = []
        """Number of games with each start, counted by the caller."""

    def add(self, first: str, second: str, opening: str) -> int:
        """Return the number of a new start; -1 if one of the bots is not included."""
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
"""Contents of a cluster: numbers of different games, in ascending order."""


def _merged(
    clusters: Iterable[list[int]], texts: Sequence[str]
) -> tuple[dict[Kinds, int], dict[Kinds, dict[int, int]]]:
    """Return the number of clusters of each kind, and the number of halves that belong to whole ones.

    The latter is cluster -> its game -> number of times that this game was played without the other.
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
        for kinds in sorted(wholes, key=lambda each: sorted(texts[kind] for kind in each)):
            for kind in kinds:
                home.setdefault(kind, kinds)
        for kind in alone & home.keys():
            halves.setdefault(home[kind], {})[kind] = alike.pop((kind,))
    return alike, halves
