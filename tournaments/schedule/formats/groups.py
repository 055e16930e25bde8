"""Groups that play round robins, then a final among the best bots of each group."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, NamedTuple

from tournaments.schedule.formats.bracket import Bracket, MatchRules, matches_of, standard_order
from tournaments.schedule.formats.knockout import final_sentence
from tournaments.schedule.formats.round_robin import circle
from tournaments.schedule.formats.rounds import drawn_lots, to_be_played
from tournaments.schedule.pairing import Entrant, History, Pairing, Result, Schedule, pair_of_games


class GroupLine(NamedTuple):
    """Results of one bot in the games of a group that count."""

    bot: int
    points: float
    """1 for a win, 0.5 for a draw."""
    wins: int
    draws: int
    losses: int
    margin: int
    """Sum of the games' margins."""


class GroupTable(NamedTuple):
    """Standings of one group."""

    lines: Sequence[GroupLine]
    """Best first; bots that withdrew before the final are last."""
    advancing: frozenset[int]
    """Bots that play the final; empty until all groups are decided."""


def group_lines(
    bots: Sequence[int], games: Iterable[Pairing], results: Mapping[str, Result]
) -> list[GroupLine]:
    """Return the results of the bots, best first.

    They are ordered by points (nothing for a void game); then by the points of the games among those level on
    points; then by wins; then by the sum of the games' margins; then in the given order.  Games without a
    result do not count.  Games against bots that are not given do.
    """
    points = dict.fromkeys(bots, 0.0)
    wins = dict.fromkeys(bots, 0)
    draws = dict.fromkeys(bots, 0)
    losses = dict.fromkeys(bots, 0)
    margins = dict.fromkeys(bots, 0)
    scored: list[tuple[int, int, float]] = []
    for game in games:
        result = results.get(game.key)
        if result is None or not result.counts:
            continue
        for side, (bot, other) in enumerate(((game.first, game.second), (game.second, game.first))):
            if bot in points:
                got = 0.5 if result.winner is None else float(result.winner == side)
                points[bot] += got
                wins[bot] += result.winner == side
                draws[bot] += result.winner is None
                losses[bot] += result.winner == 1 - side
                margins[bot] += -result.margin if side else result.margin
                scored.append((bot, other, got))
    among = dict.fromkeys(bots, 0.0)
    for bot, other, got in scored:
        if other in points and points[other] == points[bot]:
            among[bot] += got
    order = sorted(bots, key=lambda bot: (-points[bot], -among[bot], -wins[bot], -margins[bot]))
    return [GroupLine(bot, points[bot], wins[bot], draws[bot], losses[bot], margins[bot]) for bot in order]


def ranked(bots: Sequence[int], games: Iterable[Pairing], results: Mapping[str, Result]) -> list[int]:
    """Return the bots, best first, in the order of ``group_lines``."""
    return [line.bot for line in group_lines(bots, games, results)]


@dataclass(frozen=True)
class Groups(Schedule):
    """The best of each group play a final, which is a knockout or a round robin of one round.

    The entrants' order is their seeding; they are dealt out in serpentines (1, 2, 3, 3, 2, 1, 1, ...), so
    that the groups are about as strong as each other.  Each group plays ``rounds`` rounds, in each of which
    every pair meets twice.  A group's order is that of ``group_lines``.  The final's rounds are
    ``rounds + 1`` and those after it.

    A knockout's best seeds are the winners of the groups, then come the second of each, and so on; within
    these, places are exchanged so that no two of the same group meet in its first round, if that can be.

    A bot that withdraws while the groups play does not advance, the next of its group does; what it played
    still counts.  Bots that join later than in the first round are never paired.  ``rounds`` may be raised
    only before the final has begun: afterwards, the new group games would take the numbers of the final's
    rounds, and another final would follow; the configuration has to refuse it.

    Raises ValueError if a group would have fewer than two bots, if no bots would meet in the final, or for
    other invalid parameters.
    """

    entrants: Sequence[Entrant]
    rounds: int
    """Rounds of each group."""
    seed: int = 0
    width: int = 1
    """Digits of a bot's number in keys."""
    groups: int = 2
    """Number of groups."""
    advance: int = 2
    """Number of bots of each group that play the final; all bots of a group that has no more."""
    final: Literal["knockout", "round-robin"] = "knockout"
    pairs: int = 1
    """Pairs of games of every match of a knockout."""
    extra_pairs: int = 2
    third_place: bool = True

    def __post_init__(self) -> None:
        count = len(self._entered)
        if self.groups < 1 or count < 2 * self.groups:
            raise ValueError(
                f"groups = {self.groups} with {count} bots: each group needs at least 2 bots, so that "
                f"there can be at most {count // 2}"
            )
        if self.rounds < 1:
            raise ValueError(f"rounds = {self.rounds}: the groups need at least one round")
        if self.advance < 1 or self.groups * self.advance < 2:
            raise ValueError(
                f"advance = {self.advance} from each of {self.groups} groups: a final needs at least 2 bots"
            )
        if self.final not in ("knockout", "round-robin"):
            raise ValueError(f"no final {self.final!r}; there are knockout, round-robin")
        MatchRules(self.pairs, self.extra_pairs)

    @property
    def allotment(self) -> list[list[int]]:
        """The bots of each group, the best seed first."""
        groups: list[list[int]] = [[] for _ in range(self.groups)]
        for index, bot in enumerate(self._entered):
            row, column = divmod(index, self.groups)
            groups[self.groups - 1 - column if row % 2 else column].append(bot)
        return groups

    def pairings(self, history: History) -> list[Pairing]:
        """Return the games of the groups, all groups side by side, then the paired games of the final.

        Group games that a withdrawal left unplayed are dropped, as in a round robin; those of the final stay.
        """
        return [*self._group_games(history), *self._final_games(history)]

    def total(self, history: History) -> int:
        """Return the number of games played or due, and of the regular games of an unpaired final."""
        if self.tables(history) is None:
            sizes = [sum(not self._has_left(bot) for bot in group) for group in self.allotment]
            count = sum(min(size, self.advance) for size in sizes)
            ahead = 2 * self.pairs * matches_of(count, self.third_place)
            return self._settled(history) + (ahead if self.final == "knockout" else count * (count - 1))
        bracket = self.bracket(history)
        if bracket is None:
            return self._settled(history)
        return len(self._group_games(history)) + bracket.total(history)

    def places(self, history: History) -> dict[int, int]:
        """Return the decided places of the final, then those of the groups once these are decided.

        The next of each group share a place, then those after them, and so on; last are those that withdrew
        before the final.
        """
        tables = self.tables(history)
        if tables is None:
            return {}
        bracket = self.bracket(history)
        if bracket is None:
            places = {bot: place for place, bot in enumerate(self._final_table(history), 1)}
        else:
            places = bracket.places(history)
        before = sum(len(table[: self.advance]) for table in tables)
        for row in range(self.advance, max(len(table) for table in tables)):
            tier = [table[row] for table in tables if row < len(table)]
            places |= dict.fromkeys(tier, before + 1)
            before += len(tier)
        return places | dict.fromkeys((bot for bot in self._entered if self._has_left(bot)), before + 1)

    def standing_order(self, history: History) -> dict[int, int]:
        """Return bot -> its order in the table, lowest first: a place, or a lower number while in the final.

        The bots of a round robin share one number, so that the criteria of the table order them.
        """
        bracket = self.bracket(history)
        if bracket is None:
            order = dict.fromkeys(self._finalists(history), 1)
        else:
            order = bracket.standing_order(history)
        return order | self.places(history)

    def conclusion(self, history: History) -> str:
        """Return the sentence on the winner, with its number in braces: ``{3} wins the final``."""
        bracket = self.bracket(history)
        if bracket is not None:
            return final_sentence(bracket.final(history), "the final")
        table = self._final_table(history)
        return f"{{{table[0]}}} wins the final" if table else ""

    def tables(self, history: History) -> list[list[int]] | None:
        """Return the bots of each group that may advance, best first; None until the group games are over."""
        results = history.at(self.rounds + 1)
        games = self._all_group_games()
        for game in games:
            if game.key not in results and not (self._has_left(game.first) or self._has_left(game.second)):
                return None
        return [
            ranked(
                [bot for bot in group if not self._has_left(bot)],
                [game for game in games if game.first in group],
                results,
            )
            for group in self.allotment
        ]

    def standings(self, history: History) -> list[GroupTable]:
        """Return the table of each group, from the results with which the final is paired."""
        results = history.at(self.rounds + 1)
        games = self._all_group_games()
        decided = self.tables(history)
        tables = []
        for index, group in enumerate(self.allotment):
            members = frozenset(group)  # a group may have hundreds of bots
            own = [game for game in games if game.first in members]
            staying = [bot for bot in group if not self._has_left(bot)]
            left = [bot for bot in group if self._has_left(bot)]
            lines = [*group_lines(staying, own, results), *group_lines(left, own, results)]
            advancing = frozenset(() if decided is None else decided[index][: self.advance])
            tables.append(GroupTable(lines, advancing))
        return tables

    def bracket(self, history: History) -> Bracket | None:
        """Return the final's bracket; None if it is no knockout, or the groups are not decided."""
        tables = self.tables(history)
        if tables is None or self.final != "knockout":
            return None
        return Bracket(
            final_seeds([table[: self.advance] for table in tables]),
            self.entrants,
            MatchRules(self.pairs, self.extra_pairs),
            self.third_place,
            first_round=self.rounds + 1,
            first_opening=self.rounds,  # the groups' rounds had those before it
            width=self.width,
        )

    @property
    def _entered(self) -> list[int]:
        return [number for number, entrant in enumerate(self.entrants) if entrant.since <= 1]

    def _has_left(self, bot: int) -> bool:
        """Return whether a bot withdrew before the final was paired."""
        until = self.entrants[bot].until
        return until is not None and until <= self.rounds

    def _settled(self, history: History) -> int:
        """Return the number of games played or due."""
        return len(to_be_played(self.pairings(history), history, self.entrants))

    def _all_group_games(self) -> list[Pairing]:
        games: list[Pairing] = []
        for number in range(1, self.rounds + 1):
            days = []
            for index, group in enumerate(self.allotment):
                lots = drawn_lots(len(self.entrants), f"{self.seed}/{number}/{index}")
                chairs = sorted(group, key=lots.__getitem__)
                days.append([[(chairs[one], chairs[two]) for one, two in day] for day in circle(len(chairs))])
            for day in range(max(len(calendar) for calendar in days)):
                for calendar in days:
                    for bots in calendar[day] if day < len(calendar) else ():
                        games += pair_of_games(number, *bots, self.width)
        return games

    def _group_games(self, history: History) -> list[Pairing]:
        return to_be_played(self._all_group_games(), history, self.entrants)

    def _final_games(self, history: History) -> list[Pairing]:
        if self.final == "knockout":
            bracket = self.bracket(history)
            return [] if bracket is None else bracket.pairings(history)
        finalists = self._finalists(history)
        return [
            game
            for day in circle(len(finalists))
            for one, two in day
            for game in pair_of_games(self.rounds + 1, finalists[one], finalists[two], self.width)
        ]

    def _finalists(self, history: History) -> list[int]:
        tables = self.tables(history)
        return [] if tables is None else final_seeds([table[: self.advance] for table in tables])

    def _final_table(self, history: History) -> list[int]:
        """Return the order of a final round robin, withdrawn bots last; empty before it is over."""
        games = self._final_games(history)
        if any(game.key not in history.results for game in to_be_played(games, history, self.entrants)):
            return []
        table = ranked(self._finalists(history), games, history.results)
        return sorted(table, key=lambda bot: self.entrants[bot].until is not None)


def final_seeds(tables: Sequence[Sequence[int]]) -> list[int]:
    """Return the seeds of a knockout among the bots of ``tables``: winners, seconds, and so on.

    Each table is in its group's order.  Within the seconds, the thirds and so on, two exchange places as long
    as that leaves fewer matches of the first round between two of the same group.
    """
    group_of = {bot: index for index, table in enumerate(tables) for bot in table}
    tiers = [[table[row] for table in tables if row < len(table)] for row in range(max(map(len, tables)))]
    seeds = [bot for tier in tiers for bot in tier]
    exchanges: list[tuple[int, int]] = []
    start = 0
    for tier in tiers:
        if start:  # the winners keep theirs
            exchanges += combinations(range(start, start + len(tier)), 2)
        start += len(tier)
    fewest = _clashes(seeds, group_of)
    better = fewest > 0
    while better:
        better = False
        for one, other in exchanges:
            candidate = list(seeds)
            candidate[one], candidate[other] = seeds[other], seeds[one]
            if (left := _clashes(candidate, group_of)) < fewest:
                seeds, fewest, better = candidate, left, left > 0
    return seeds


def _clashes(seeds: Sequence[int], group_of: Mapping[int, int]) -> int:
    """Return the number of first-round matches between two of the same group."""
    slots = [group_of[seeds[seed]] if seed < len(seeds) else None for seed in standard_order(len(seeds))]
    matches = zip(slots[::2], slots[1::2], strict=False)  # a single bot has no match
    return sum(one == other and one is not None for one, other in matches)
