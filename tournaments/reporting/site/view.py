"""Data of a report's pages, computed from a tournament's results.  Pure.

Nothing here is in the order of the tournament's file, which a report without names must not reveal.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from tournaments.analysis.ratings.swaps import Swaps, swaps_of
from tournaments.analysis.standing import Standing
from tournaments.analysis.standings import Tally
from tournaments.reporting.site.addresses import Addresses
from tournaments.reporting.site.anonymizer import Anonymizer
from tournaments.reporting.site.charts import Race
from tournaments.reporting.site.times import BotTimes, GameTimes
from tournaments.reporting.tournament_results import TournamentResults
from tournaments.results.game_summary import GameSummary
from tournaments.results.journal import Action, Entry

HEAT_STEPS = 8
"""The cross table's colours are numbered from 0, no points, to this, all of them."""
EXAMPLES = 3
"""Games of each kind of fault on the first page; the bot's own page has all."""
MANY_KINDS = 12
"""Number of kinds of faults beyond which the first page has one game of each."""


class FaultKind(NamedTuple):
    """One bot's losses by one fault."""

    bot: str
    fault: str
    games: list[GameSummary]


class Share(NamedTuple):
    """Points out of games."""

    points: float
    games: int

    @property
    def percent(self) -> float | None:
        """Points of 100 games; None without a game."""
        return 100 * self.points / self.games if self.games else None


class Meeting(NamedTuple):
    """A bot's games against one opponent."""

    other: str
    points: float
    wins: int
    draws: int
    losses: int
    superiority: float | None
    """Probability that the bot is stronger than the opponent, from all games of the tournament."""
    games: list[GameSummary]
    """The games that count, by their keys."""

    @property
    def score(self) -> float | None:
        """Share of the points of these games; None without a game that counts."""
        played = self.wins + self.draws + self.losses
        return self.points / played if played else None


@dataclass(frozen=True)
class View:
    """Data of a tournament for its pages."""

    summary: TournamentResults
    """The summary with the names that are shown."""
    anonymizer: Anonymizer = field(default_factory=Anonymizer)
    """Used for keys only: names are replaced already."""
    times: Mapping[str, GameTimes] = field(default_factory=dict)
    """Key of a game -> its times."""

    @cached_property
    def addresses(self) -> Addresses:
        """The addresses of the pages."""
        keys = {game.key: self.anonymizer.key(game.key) for game in self.summary.kept}
        return Addresses.of(sorted(self.summary.bots), keys)

    @property
    def table(self) -> list[Standing]:
        """The standings."""
        return self.summary.table

    @cached_property
    def places(self) -> dict[str, int]:
        """Bot -> number of its line in the table, from 1; unlike ranks, these are not shared."""
        return {line.name: place for place, line in enumerate(self.table, 1)}

    @cached_property
    def kept(self) -> list[GameSummary]:
        """Every game that was played, by the keys that are shown."""
        return sorted(self.summary.kept, key=lambda game: (game.round, self.anonymizer.key(game.key)))

    @cached_property
    def games(self) -> list[GameSummary]:
        """The games that count."""
        return [game for game in self.kept if self.counts(game)]

    @cached_property
    def aside(self) -> list[tuple[GameSummary, Entry | None]]:
        """The games that do not count, each with the ruling that set it aside."""
        why = self.summary.rulings.set_aside
        return [(game, why.get(game.key)) for game in self.kept if not self.counts(game)]

    @cached_property
    def rulings(self) -> dict[str, list[Entry]]:
        """Key of a game -> the rulings on it."""
        found: dict[str, list[Entry]] = {}
        for entry in self.summary.journal:
            if entry.is_of_game:
                found.setdefault(entry.subject, []).append(entry)
        for game, why in self.aside:
            if why is not None and why.action is Action.WITHDRAW:
                found.setdefault(game.key, []).append(why)
        return found

    @cached_property
    def _of_bot(self) -> dict[str, list[GameSummary]]:
        found: dict[str, list[GameSummary]] = {name: [] for name in self.places}
        for game in self.kept:
            found[game.first].append(game)
            found[game.second].append(game)
        return found

    def games_of(self, name: str) -> list[GameSummary]:
        """Every game of a bot, also those that do not count."""
        return self._of_bot[name]

    @cached_property
    def _counted_keys(self) -> set[str]:
        return {game.key for game in self.summary.games}

    def counts(self, game: GameSummary) -> bool:
        """Return whether a game counts."""
        return game.key in self._counted_keys

    def meetings(self, line: Standing) -> list[Meeting]:
        """Return a bot's games against each opponent that it has met, in the order of the table."""
        games: dict[str, list[GameSummary]] = {}
        for game in self.games_of(line.name):
            games.setdefault(game.second if game.first == line.name else game.first, []).append(game)
        found = []
        for name in self.places:
            if name in games:
                versus = line.versus[name]
                counted = [game for game in games[name] if self.counts(game)]
                results = (versus.points, versus.wins, versus.draws, versus.losses)
                found.append(Meeting(name, *results, self.superiority(line.name, name), counted))
        return found

    @cached_property
    def faults(self) -> list[FaultKind]:
        """Losses by a fault that count: by bot in the order of the table, the most frequent kind first."""
        found: dict[tuple[str, str], list[GameSummary]] = {}
        for game in self.games:
            loser = game.loser
            if game.fault is not None and loser is not None:
                found.setdefault((loser, game.fault), []).append(game)
        kinds = [FaultKind(bot, fault, games) for (bot, fault), games in found.items()]
        return sorted(kinds, key=lambda kind: (self.places[kind.bot], -len(kind.games), kind.fault))

    @property
    def examples(self) -> int:
        """Number of games of each kind of fault that are shown."""
        return EXAMPLES if len(self.faults) <= MANY_KINDS else 1

    @cached_property
    def race(self) -> Race:
        """Points round by round, without those of byes, which belong to no game."""
        rounds = sorted({game.round for game in self.games})
        by_round: dict[int, list[GameSummary]] = {number: [] for number in rounds}
        for game in self.games:
            by_round[game.round].append(game)
        tally = Tally(list(self.places))
        points: dict[str, list[float]] = {name: [] for name in self.places}
        for number in rounds:
            for game in by_round[number]:
                tally.add(game)
            for line in tally.table("points"):
                points[line.name].append(line.points)
        return Race(rounds, points)

    @cached_property
    def first_mover(self) -> Share:
        """Points of the bots that moved first."""
        return Share(sum(game.points[0] for game in self.games), len(self.games))

    @cached_property
    def swaps(self) -> Swaps | None:
        """Statistics of the pie rule; None if no bot ever swapped, as in games without the rule."""
        found = swaps_of(self.summary.bots, self.games)
        return found if found.overall.swaps else None

    def superiority(self, name: str, other: str) -> float | None:
        """Return the probability that a bot is the stronger one of two.

        It is None if one of them has no game that counts, or if pairings depended on results: then it would
        be much too close to 0 or 1.
        """
        if self.summary.is_adaptive or not {name, other} <= set(self.summary.estimates):
            return None
        number = self._numbers
        return float(self.summary.ratings.superiority[number[name], number[other]])

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.summary.bots)}

    def times_of(self, name: str) -> BotTimes:
        """Return the times of a bot's moves in games that count."""
        return BotTimes.of(
            (int(game.second == name), self.times[game.key])
            for game in self.games_of(name)
            if self.counts(game) and game.key in self.times
        )

    @cached_property
    def move_limit_us(self) -> int | None:
        """The limit of a move."""
        return next((times.move_limit_us for times in self.times.values()), None)


def heat(points: float, games: int) -> int:
    """Return the number of a cell's colour."""
    return round(HEAT_STEPS * points / games)
