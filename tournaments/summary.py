"""A tournament's results as a whole: what the store holds, put into every form in which it is read."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from threadpoolctl import threadpool_limits

from tournaments import tables
from tournaments.cluster.fairness import ScaledControl
from tournaments.evidence import evidence_of
from tournaments.format_tables import FORMAT_TABLES
from tournaments.game_summary import GameSummary
from tournaments.journal import Entry
from tournaments.plan import Plan
from tournaments.rankings import criteria_of
from tournaments.ratings.bradley_terry import GHOST_RESULTS, GHOST_RESULTS_OF_ADAPTIVE
from tournaments.ratings.ratings import Ratings, rate
from tournaments.rulings import Rulings
from tournaments.schedule import History, Schedule
from tournaments.standing import Estimate, Standing
from tournaments.standings import Tally
from tournaments.store import Store

if TYPE_CHECKING:  # it reads tournament files and finds bots, which nobody does who looks at results
    from tournaments.config import Tournament

CAVEAT = (
    "who met whom depended on results, so that luck adds up: read these ratings as a guide, differences as "
    "smaller than they look, and do not take two bots for different because of them"
)
"""What must be known of ratings from a Swiss and its like; docs/statistics.md has the figures."""


@dataclass
class Summary:
    """All that tables and reports show.  What it computes is kept: make a new one when games were added."""

    name: str
    game: str
    """Canonical spec text."""
    control: str
    """The time control, in words."""
    file_bots: Sequence[str]
    """Names of the bots of the tournament's file."""
    ranking: str | Sequence[str]
    """A preset of tournaments/rankings.py, or criteria."""
    plan: Plan = field(default_factory=Plan)
    anchor: str | None = None
    """The bot that ratings are told from; None: the average of all is 0."""
    anchor_rating: float = 0.0
    untrusted: bool = False
    """Whether bots must be confined."""
    scaled: ScaledControl | None = None
    """The time control on each host; None if it is the same on all."""
    kept: Sequence[GameSummary] = field(default_factory=list)
    """Every game that was ever played, those that were set aside too."""
    journal: Sequence[Entry] = field(default_factory=list)

    @classmethod
    def load(cls, store: Store) -> "Summary":
        """The summary of what a store holds.  Raises StoreError."""
        config = store.config()
        return cls(
            name=config["name"],
            game=config["game"],
            control=config["control"],
            file_bots=config["bots"],
            ranking=config["ranking"],
            plan=Plan.from_json(config),
            anchor=config.get("anchor"),
            anchor_rating=config.get("anchor_rating", 0.0),
            untrusted=config.get("untrusted", False),
            scaled=ScaledControl.from_json(config["scaled"]) if config.get("scaled") else None,
            kept=store.games(),
            journal=store.journal(),
        )

    @classmethod
    def of(cls, tournament: "Tournament") -> "Summary":
        """The summary of a tournament before its first game."""
        return cls(
            name=tournament.name,
            game=tournament.game,
            control=str(tournament.control),
            file_bots=tournament.names,
            ranking=tournament.ranking,
            plan=tournament.plan,
            anchor=tournament.anchor,
            anchor_rating=tournament.anchor_rating,
            untrusted=tournament.untrusted,
            scaled=tournament.scaled_control,
        )

    def config(self) -> dict[str, Any]:
        """What the store notes beside the name, for ``load``."""
        return {
            "game": self.game,
            "control": self.control,
            "bots": list(self.file_bots),
            "ranking": self.ranking,
            "anchor": self.anchor,
            "anchor_rating": self.anchor_rating,
            "untrusted": self.untrusted,
            "scaled": None if self.scaled is None else self.scaled.to_json(),
            **self.plan.to_json(),
        }

    @cached_property
    def rulings(self) -> Rulings:
        """Which of the games count."""
        return Rulings(self.file_bots, self.kept, self.journal)

    @property
    def bots(self) -> list[str]:
        """Names of all bots, by their numbers."""
        return self.rulings.bots

    @cached_property
    def games(self) -> list[GameSummary]:
        """The games that count."""
        return self.rulings.counted

    @cached_property
    def schedule(self) -> Schedule:
        """Who meets whom."""
        return self.plan.schedule(self.bots, self.rulings.entrants)

    @property
    def history(self) -> History:
        """What the schedule is told."""
        return self.rulings.history

    @cached_property
    def total(self) -> int:
        """Games of the whole tournament, as far as they can be foreseen."""
        return self.schedule.total(self.history)

    @property
    def done(self) -> int:
        """Games of these that have a result, or were ruled void."""
        return len(self.rulings.results)

    @cached_property
    def conclusion(self) -> str:
        """What there is to say beside the table."""
        return self.schedule.conclusion(self.history).format(*self.bots)

    @cached_property
    def places(self) -> Mapping[str, int]:
        """Bot -> place, where the format decides that."""
        return {self.bots[number]: place for number, place in self.schedule.places(self.history).items()}

    @cached_property
    def byes(self) -> Mapping[str, float]:
        """Bot -> points without a game."""
        return {self.bots[number]: points for number, points in self.schedule.byes(self.history).items()}

    @cached_property
    def ratings(self) -> Ratings:
        """What the games that count say of the bots' strengths, in Elo."""
        anchor = None if self.anchor is None else self.bots.index(self.anchor)
        # More threads make this small problem slower, and take cores from the bots of a running game.
        with threadpool_limits(1):
            return rate(evidence_of(self.bots, self.games), anchor, self.anchor_rating, ghosts=self.ghosts)

    @property
    def is_adaptive(self) -> bool:
        """Whether who meets whom depends on results, which ratings cannot quite make up for."""
        return FORMAT_TABLES[self.plan.kind].PAIRS_ROUNDS

    @property
    def ghosts(self) -> float:
        """Imaginary results of each bot, see tournaments/ratings/bradley_terry.py."""
        return GHOST_RESULTS_OF_ADAPTIVE if self.is_adaptive else GHOST_RESULTS

    @cached_property
    def estimates(self) -> Mapping[str, Estimate]:
        """Bot -> its rating, of those with a game that counts."""
        if not self.games:
            return {}
        found = self.ratings
        values = zip(found.rating.tolist(), found.low.tolist(), found.high.tolist(), strict=True)
        rows = zip(self.bots, values, found.games.tolist(), strict=True)
        # A hundredth of an Elo is far below what any interval allows to tell, and noise is far below that.
        # 0.0 is added lest -0.0 be shown.
        return {
            name: Estimate(*(round(elo, 2) + 0.0 for elo in estimate))
            for name, estimate, games in rows
            if games
        }

    @cached_property
    def table(self) -> list[Standing]:
        """The standings."""
        return self.standings_of(Tally(self.bots, self.games))

    def standings_of(self, tally: Tally) -> list[Standing]:
        """The table of a tally of this tournament's games."""
        return tally.table(
            self.ranking,
            places=self.places,
            byes=self.byes,
            ratings=self.estimates,
            withdrawn=self.rulings.withdrawn,
        )

    @property
    def criteria(self) -> tuple[str, ...]:
        """What the table is ordered by."""
        return criteria_of(self.ranking)

    @property
    def about(self) -> str:
        """One line on what was played."""
        confined = f", sandbox {self.sandbox}" if self.games else ""
        kind = "" if self.plan.kind == "round-robin" else f"{self.plan.kind}, "
        aside = len(self.kept) - len(self.games)
        without = f" ({aside} set aside)" if aside else ""
        return f"{kind}{self.game}, {self.control}, {self.done} of {self.total} games{without}{confined}"

    @property
    def sandbox(self) -> str:
        """How the bots of the games so far were confined; each tier with its games if there are several."""
        tiers: Counter[str] = Counter(map(attrgetter("sandbox"), self.games))
        if "" in tiers:
            tiers["unknown"] += tiers.pop("")
        if len(tiers) == 1:
            return next(iter(tiers))
        return " and ".join(
            f"{tier} ({count} game{'' if count == 1 else 's'})" for tier, count in sorted(tiers.items())
        )

    def to_json(self) -> dict[str, Any]:
        """The table for scripts; only ever added to."""
        about = {
            "tournament": self.name,
            "game": self.game,
            "time_control": self.control,
            "games": len(self.games),
            "games_total": self.total,
            "games_done": self.done,
            "games_set_aside": len(self.kept) - len(self.games),
            "sandbox": self.sandbox,
            "format": dict(self.plan.format),
            "rounds": self.plan.rounds,
            "seed": self.plan.seed,
            "conclusion": self.conclusion,
            "anchor": self.anchor,
            "ratings_caveat": CAVEAT if self.is_adaptive else "",
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
                text = tables.to_text(self.name, self.about, self.table, self.ranking, width)
                return f"{text}\n\n{self.conclusion}" if self.conclusion else text
        raise ValueError(f"no format {form!r}; there are {', '.join(tables.FORMATS)}")
