"""Results of a practice ladder: of the games among its current bots, and of all games since its beginning."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from tournaments.analysis.standing import Estimate
from tournaments.reporting.tournament_results import TournamentResults
from tournaments.results.game_summary import GameSummary
from tournaments.results.store import Store
from tournaments.schedule.pairing import Entrant, History, Pairing, Schedule
from tournaments.schedule.plan import Plan

PRACTICE = "practice"
"""Format name of practice ladders, which have no schedule and no last game."""

RANKING = "rating"
"""Criterion of the table.  Bots have played different numbers of games, so points would reward the oldest."""

LATE_KEYS = 20_000
"""Number of latest keys that are checked again, since games may end in another order than they began.

There are far fewer games at a time; a slow game takes minutes in which quick ones are played by the thousand.
"""


@dataclass(frozen=True)
class OpenSchedule(Schedule):
    """Schedule of games that are not known beforehand: matchmaking chooses them."""

    entrants: Sequence[Entrant] = ()

    def pairings(self, history: History) -> Sequence[Pairing]:
        """Return no pairings."""
        return ()

    def total(self, history: History) -> int:
        """Return the number of games played."""
        return len(history.results)


@dataclass
class PracticeResults(TournamentResults):
    """Results of games that have no schedule.

    ``file_bots`` are the bots that currently play, ``kept`` the games among them.
    """

    ranking: str | Sequence[str] = RANKING
    plan: Plan = field(default_factory=lambda: Plan({"kind": PRACTICE}))

    @cached_property
    def schedule(self) -> Schedule:
        """Schedule without known pairings."""
        return OpenSchedule()

    @property
    def is_adaptive(self) -> bool:
        """True: bots of like strength meet more often."""
        return True

    @property
    def about(self) -> str:
        """Description of the competition, in one line."""
        games = "1 game" if len(self.games) == 1 else f"{len(self.games)} games"
        return f"{PRACTICE}, {self.game}, {self.control}, {games}"


INTERVAL_WIDENING = 1.5
"""Factor by which the intervals of a ladder's history are widened, because pairings depended on results.

Measured with ``python -m benchmarks.coverage --kind "practice ladder"``; docs/statistics.md has the figures.
Without it, the intervals of 10 to 20 equal bots contain the truth in 67 to 87 of 100 cases.
"""


class LadderHistory(PracticeResults):
    """Results of all bots that ever played on a practice ladder, so that versions can be compared.

    The versions of a team hardly meet.  They are comparable because all ratings come from one model of all
    games.  The table has no intervals: those of hundreds of versions take minutes, and a page shows the
    intervals of one team's versions only.
    """

    @property
    def widening(self) -> float:
        """Factor by which the intervals of ratings are widened."""
        return INTERVAL_WIDENING

    def estimates_of(self, names: Collection[str], relative_to: str | None = None) -> Mapping[str, Estimate]:
        """Return the rating, with its interval, of each of these bots that has games.

        With ``relative_to``, the difference to the rating of that bot.
        """
        source = self if relative_to is None else replace(self, anchor=relative_to, anchor_rating=0.0)
        numbers = [number for number, bot in enumerate(source.bots) if bot in names]
        estimates = source._estimates(source._rate(numbers))
        return {bot: estimate for bot, estimate in estimates.items() if bot in names}


class PracticeGames:
    """Games among the current bots.  A ladder goes on for months: only new games are read."""

    def __init__(self) -> None:
        self._names: frozenset[str] = frozenset()
        self._games: dict[str, GameSummary] = {}
        self._known: set[str] = set()
        """Keys that were read, among them the last LATE_KEYS."""
        self._after = ""
        """Key up to which all games were read."""

    def read(self, store: Store, names: Sequence[str]) -> bool:
        """Read new games; return whether anything changed.  For one thread at a time.  Raises StoreError."""
        wanted = frozenset(names)
        if not wanted <= self._names:
            self._known, self._after, self._games = set(), "", {}
        changed = wanted != self._names
        new = store.played(self._after) - self._known
        found = store.games(new if self._known else None) if new else []
        added = {game.key: game for game in found if game.first in wanted and game.second in wanted}
        if changed:
            self._games = {
                key: game
                for key, game in self._games.items()
                if game.first in wanted and game.second in wanted
            }
        self._games |= added
        self._names = wanted
        self._known |= new
        if len(self._known) > 2 * LATE_KEYS:
            latest = sorted(self._known)[-LATE_KEYS:]
            self._after, self._known = latest[0], set(latest)
        return changed or bool(added)

    @property
    def games(self) -> list[GameSummary]:
        """All games, in the order of their keys."""
        return [self._games[key] for key in sorted(self._games)]
