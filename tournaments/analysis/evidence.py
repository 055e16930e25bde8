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

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, compress, count, pairwise
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from tournaments.results.game_summary import GameSummary

Key = TypeVar("Key")


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
    # Passes over all games are loops in C where possible: a table may have 100,000 games.
    everything = list(games)
    starts = _Starts(number)
    start_of_all = [starts[game.first, game.second, game.opening] for game in everything]
    is_included = [start >= 0 for start in start_of_all]
    serials = list(compress(count(), is_included))
    included = list(compress(everything, is_included))
    start_of_game = list(compress(start_of_all, is_included))
    # A game with unknown moves is never a copy of another game.
    likenesses = [game.likeness or serial for game, serial in zip(included, serials, strict=True)]
    lines, line_of_game = _numbered(zip(start_of_game, likenesses, strict=True))
    kinds, kind_of_game = _numbered(zip(line_of_game, [game.winner for game in included], strict=True))
    # Games with one pair name are a pair only if they have the same two bots and the same opening.
    group_of_game = map(starts.group.__getitem__, start_of_game)
    pairs = [
        (game.pair, group) if game.pair else serial
        for game, group, serial in zip(included, group_of_game, serials, strict=True)
    ]
    alike, halves = _merged(
        _numbered(pairs)[1], kind_of_game, [f"{lines[line][1]} {winner}" for line, winner in kinds]
    )

    copies = np.bincount(_integers(start_of_game), minlength=len(starts.first))
    start_of_line = _integers(start for start, _ in lines)
    different = np.bincount(start_of_line, minlength=len(copies))
    squares = np.zeros_like(copies)
    np.add.at(squares, start_of_line, np.bincount(_integers(line_of_game)) ** 2)
    line_of_kind = [line for line, _ in kinds]
    start_of_kind = start_of_line[_integers(line_of_kind)]
    points = np.array([0.5 if winner is None else 1.0 - winner for _, winner in kinds], dtype=np.float64)

    sizes = _integers(often + sum(halves.get(each, _NONE).values()) for each, often in alike.items())
    groups = _integers(starts.group)[start_of_kind[_integers(each[0] for each in alike)]]
    total = np.bincount(groups, sizes)
    like, like_of_cluster = _numbered(tuple(sorted(map(line_of_kind.__getitem__, each))) for each in alike)
    group_of_like = np.zeros(len(like), dtype=np.int64)
    group_of_like[_integers(like_of_cluster)] = groups
    like_sizes = np.bincount(_integers(like_of_cluster), sizes)
    total_squares = np.bincount(group_of_like, like_sizes**2)

    of_row = _integers(chain.from_iterable(alike))
    counts = _integers(chain.from_iterable(_row_counts(each, often, halves) for each, often in alike.items()))
    start_of_row = start_of_kind[of_row]
    first, second = _integers(starts.first), _integers(starts.second)
    played, unique = (
        np.rint(np.bincount(first, number, len(names)) + np.bincount(second, number, len(names)))
        for number in (copies, different)
    )
    return Evidence(
        names=tuple(names),
        first=first[start_of_row],
        second=second[start_of_row],
        points=points[of_row],
        # Whole numbers are multiplied before they are divided, so that pure copies weigh exactly 1.
        weight=counts * copies[start_of_row] / squares[start_of_row],
        cluster=np.repeat(np.arange(len(alike)), _integers(map(len, alike))),
        cluster_weight=sizes * total[groups] / total_squares[groups],
        played=played.astype(np.int64),
        unique=unique.astype(np.int64),
    )


def _numbered(keys: Iterable[Key]) -> tuple[list[Key], list[int]]:
    """Return the different keys in the order of their first appearance, and the index of each key."""
    numbers: defaultdict[Key, int] = defaultdict(count().__next__)
    indices = list(map(numbers.__getitem__, keys))
    return list(numbers), indices


def _integers(numbers: Iterable[int]) -> npt.NDArray[np.int64]:
    return np.fromiter(numbers, dtype=np.int64)


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


class _Starts(dict[tuple[str, str, str], int]):
    """Start of a game (first bot, second bot, opening) -> its number.

    A new start gets the next number, or -1 if one of the bots is not included.
    """

    def __init__(self, bots: Mapping[str, int]) -> None:
        super().__init__()
        self._bots = bots
        self._groups: dict[tuple[int, int, str], int] = {}
        self.first: list[int] = []
        self.second: list[int] = []
        self.group: list[int] = []
        """Group of each start, which it shares with the start with exchanged sides."""

    def __missing__(self, start: tuple[str, str, str]) -> int:
        first, second, opening = start
        one, other = self._bots.get(first), self._bots.get(second)
        number = -1
        if one is not None and other is not None:
            number = len(self.first)
            self.first.append(one)
            self.second.append(other)
            sides = (min(one, other), max(one, other), opening)
            self.group.append(self._groups.setdefault(sides, len(self._groups)))
        self[start] = number
        return number


Kinds = tuple[int, ...]
"""Contents of a cluster: numbers of different games, in ascending order."""
Halves = Mapping[Kinds, Mapping[int, int]]
"""Cluster -> its game -> number of times that this game was played without the other."""
_NONE: Mapping[int, int] = {}


def _merged(
    cluster_of_game: Sequence[int], kind_of_game: Sequence[int], texts: Sequence[str]
) -> tuple[dict[Kinds, int], Halves]:
    """Return the number of clusters of each kind, and the numbers of halves that belong to whole pairs."""
    of_game, of_kind = _integers(cluster_of_game), _integers(kind_of_game)
    kinds_in_order = of_kind[np.lexsort((of_kind, of_game))].tolist()
    ends = np.cumsum(np.bincount(of_game)).tolist()
    alike: dict[Kinds, int] = Counter(
        tuple(kinds_in_order[begin:end]) for begin, end in pairwise(chain([0], ends))
    )
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


def _row_counts(kinds: Kinds, count: int, halves: Halves) -> list[int]:
    """Return how often each game of a cluster was played; ``count`` is the number of whole clusters."""
    counts = [count] * len(kinds)
    for kind, more in halves.get(kinds, _NONE).items():
        counts[kinds.index(kind)] += more  # once, if the game is twice in a pair
    return counts
