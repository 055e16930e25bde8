"""A tournament's results as a whole: what the store holds, put into every form in which it is read."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tournaments import tables
from tournaments.config import Tournament
from tournaments.schedule import schedule_of
from tournaments.standings import GameSummary, Standing, standings
from tournaments.store import Store


@dataclass
class Summary:
    """All that tables and reports show."""

    name: str
    game: str
    """Canonical spec text."""
    control: str
    """The time control, in words."""
    bots: Sequence[str]
    ranking: str
    total: int
    """Games of the whole tournament."""
    games: Sequence[GameSummary] = field(default_factory=list)

    @classmethod
    def load(cls, store: Store) -> "Summary":
        """The summary of what a store holds.  Raises StoreError."""
        return cls(**store.config(), games=store.games())

    @classmethod
    def of(cls, tournament: Tournament) -> "Summary":
        """The summary of a tournament before its first game."""
        return cls(
            name=tournament.name,
            game=tournament.game,
            control=str(tournament.control),
            bots=tournament.names,
            ranking=tournament.ranking.value,
            total=len(schedule_of(len(tournament.bots), tournament.rounds).all()),
        )

    def config(self) -> dict[str, Any]:
        """What the store notes beside the name, for ``load``."""
        return {
            "game": self.game,
            "control": self.control,
            "bots": list(self.bots),
            "ranking": self.ranking,
            "total": self.total,
        }

    @property
    def table(self) -> list[Standing]:
        """The standings."""
        return standings(self.bots, self.games, self.ranking)

    @property
    def about(self) -> str:
        """One line on what was played."""
        confined = f", sandbox {self.sandbox}" if self.games else ""
        return f"{self.game}, {self.control}, {len(self.games)} of {self.total} games{confined}"

    @property
    def sandbox(self) -> str:
        """How the bots of the games so far were confined; each tier with its games if there are several."""
        tiers = Counter(game.sandbox or "unknown" for game in self.games)
        if len(tiers) == 1:
            return next(iter(tiers))
        return " and ".join(f"{tier} ({count} games)" for tier, count in sorted(tiers.items()))

    def to_json(self) -> dict[str, Any]:
        """The table for scripts."""
        about = {
            "tournament": self.name,
            "game": self.game,
            "time_control": self.control,
            "games": len(self.games),
            "games_total": self.total,
            "sandbox": self.sandbox,
        }
        return tables.to_json(self.table, self.ranking, about)

    def render(self, form: str, width: int | None = None) -> str:
        """The table as one of ``tables.FORMATS``; ``width`` is the terminal's, for text."""
        match form:
            case "csv":
                return tables.to_csv(self.table, self.ranking).rstrip("\n")
            case "json":
                return tables.json_text(self.to_json())
            case "html":
                return tables.to_html(self.name, self.about, self.table, self.games, self.ranking)
            case "text":
                return tables.to_text(self.name, self.about, self.table, self.ranking, width)
        raise ValueError(f"no format {form!r}; there are {', '.join(tables.FORMATS)}")
