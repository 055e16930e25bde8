"""The table of a practice ladder: who plays now, and what they have shown against one another."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from tournaments.game_summary import GameSummary
from tournaments.plan import Plan
from tournaments.schedule import History, Pairing, Schedule
from tournaments.store import Store
from tournaments.summary import Summary

PRACTICE = "practice"
"""The name of what is no format: games are chosen one by one, and there is no last one."""

RANKING = "rating"
"""Bots come and go, so that some have played more games than others: points would say who came first."""

LATE_KEYS = 20_000
"""A game may end after this many that were begun later, and is still seen: there are far fewer at a time, and
a slow game takes minutes in which quick ones are played by the thousand."""


@dataclass(frozen=True)
class OpenSchedule:
    """Games of which nobody knows beforehand."""

    def pairings(self, history: History) -> Sequence[Pairing]:
        """None: matchmaking chooses."""
        return ()

    def due(self, history: History) -> Sequence[Pairing]:
        """None."""
        return ()

    def total(self, history: History) -> int:
        """Those that were played."""
        return len(history.results)

    def places(self, history: History) -> dict[int, int]:
        """None: the table decides."""
        return {}

    def byes(self, history: History) -> dict[int, float]:
        """None."""
        return {}

    def conclusion(self, history: History) -> str:
        """Nothing beside the table."""
        return ""


@dataclass
class PracticeSummary(Summary):
    """A summary of games that no schedule has.

    ``file_bots`` are those that play now, ``kept`` the games among them.
    """

    ranking: str | Sequence[str] = RANKING
    plan: Plan = field(default_factory=lambda: Plan({"kind": PRACTICE}))

    @cached_property
    def schedule(self) -> Schedule:
        """Who meets whom is not known beforehand."""
        return OpenSchedule()

    @property
    def is_adaptive(self) -> bool:
        """Bots of like strength meet more often."""
        return True

    @property
    def about(self) -> str:
        """One line on what is played."""
        games = "1 game" if len(self.games) == 1 else f"{len(self.games)} games"
        return f"{PRACTICE}, {self.game}, {self.control}, {games}"


class PracticeGames:
    """The games among those who play now.  A ladder goes on for months: only what is new is read."""

    def __init__(self) -> None:
        self._names: frozenset[str] = frozenset()
        self._games: dict[str, GameSummary] = {}
        self._known: set[str] = set()
        """Keys that were looked at, of the last LATE_KEYS and more."""
        self._after = ""
        """All games up to this key were looked at."""

    def read(self, store: Store, names: Sequence[str]) -> bool:
        """Bring it up to date; whether anything changed.  For one thread at a time.  Raises StoreError."""
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
        """In the order of their keys."""
        return [self._games[key] for key in sorted(self._games)]
