"""Results of a tournament: the store's contents in all forms of output."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import attrgetter
from typing import Any, Self

from threadpoolctl import threadpool_limits

from tournaments.analysis.evidence import evidence_of
from tournaments.analysis.ratings.bradley_terry import GHOST_RESULTS, GHOST_RESULTS_OF_ADAPTIVE
from tournaments.analysis.ratings.ratings import Ratings, rate
from tournaments.analysis.standing import Estimate, Standing
from tournaments.analysis.standings import NamedMatch, Tally
from tournaments.analysis.tie_breaks import criteria_of
from tournaments.config.tournament_config import TournamentConfig
from tournaments.reporting import tables
from tournaments.results.chain import Head
from tournaments.results.game_summary import GameSummary
from tournaments.results.journal import Entry
from tournaments.results.rulings import Rulings
from tournaments.results.store import Store
from tournaments.schedule.pairing import NOBODY, History, MatchScoring, Schedule
from tournaments.schedule.plan import pairs_rounds

CAVEAT = (
    "pairings depended on results, so that luck adds up: read these ratings as a guide; they have no "
    "interval, and do not show that two bots differ"
)
"""Caveat for ratings from a Swiss and its like; docs/statistics.md has the figures."""
SPRT_CAVEAT = (
    "use the decision, not the Elo: the test stopped the match at a favourable moment, so the estimate is "
    "too far from 0 on average"
)
"""Caveat for ratings after a sequential test."""
ANCHOR_CAVEAT = "no game of the anchor {} counts, so that the average of all is 0"
"""Caveat for ratings that refer to no anchor."""


@dataclass
class TournamentResults(TournamentConfig):
    """Data for all tables and reports.  Values are cached: create a new object when games were added."""

    kept: Sequence[GameSummary] = field(default_factory=list)
    """Every game that was ever played, those that were set aside too."""
    journal: Sequence[Entry] = field(default_factory=list)
    head: Head | None = field(default=None, compare=False)
    """Head of the store's chain when it was read; None if there is no chain."""

    @classmethod
    def load(cls, store: Store) -> Self:
        """Create the results of a store.  Raises StoreError."""
        head = store.head()  # before the games, so that all games that it covers are shown
        return cls.from_json(store.config(), kept=store.games(), journal=store.journal(), head=head)

    def before_rulings(self, number: int) -> Self:
        """Return the results of the same games with the first ``number`` rulings alone."""
        return replace(self, journal=self.journal[:number])

    def with_rounds(self, rounds: int) -> Self:
        """Return the results of the same games in a tournament with another number of rounds."""
        return replace(self, plan=replace(self.plan, rounds=rounds))

    @cached_property
    def rulings(self) -> Rulings:
        """Rulings, which decide about the games that count."""
        return Rulings(self.file_bots, self.kept, self.journal)

    @property
    def bots(self) -> list[str]:
        """Names of all bots, by their numbers."""
        return self.rulings.bots

    @cached_property
    def games(self) -> list[GameSummary]:
        """Games that count."""
        return self.rulings.counted

    @cached_property
    def schedule(self) -> Schedule:
        """Schedule of the tournament."""
        return self.plan.schedule(self.bots, self.rulings.entrants)

    @property
    def history(self) -> History:
        """History for the schedule."""
        return self.rulings.history

    @cached_property
    def total(self) -> int:
        """Estimated number of games of the whole tournament, exact once nothing is due."""
        return self.schedule.total(self.history)

    @property
    def done(self) -> int:
        """Number of these games that have a result, or were ruled void."""
        return len(self.rulings.results)

    @cached_property
    def conclusion(self) -> str:
        """Remark on the tournament beside the table; empty if there is none."""
        return self.schedule.conclusion(self.history).format(*self.bots)

    @property
    def remarks(self) -> list[str]:
        """Remarks below a table for people: the conclusion and the caveat, as far as there are any."""
        return [text for text in (self.conclusion, self.caveat and f"Ratings: {self.caveat}.") if text]

    @cached_property
    def places(self) -> Mapping[str, int]:
        """Bot -> number that orders the table before all criteria, where the format decides ranks."""
        order = self.schedule.standing_order(self.history)
        return {self.bots[number]: place for number, place in order.items()}

    @cached_property
    def byes(self) -> Mapping[str, float]:
        """Bot -> points without a game."""
        return {self.bots[number]: points for number, points in self.schedule.byes(self.history).items()}

    @cached_property
    def matches(self) -> Sequence[NamedMatch] | None:
        """Matches that are over, byes included; None where points are given for games."""
        scores = self.schedule.matches(self.history) if isinstance(self.schedule, MatchScoring) else None
        if scores is None:
            return None
        return [
            NamedMatch((self.bots[first], None if second == NOBODY else self.bots[second]), points, is_played)
            for first, second, points, is_played in scores
        ]

    @cached_property
    def ratings(self) -> Ratings:
        """Ratings from the games that count, in Elo; with infinite intervals unless ``has_intervals``."""
        return self._rate(None if self.has_intervals else ())

    @cached_property
    def anchored(self) -> str | None:
        """The anchor; None if no game of it counts, although games count: the average of all is 0 then.

        Relative to a bot without games, all ratings would be as uncertain as the rating of that bot.
        """
        names = {name for game in self.games for name in (game.first, game.second)}
        return self.anchor if self.anchor in names or not names else None

    def _rate(self, intervals: Collection[int] | None) -> Ratings:
        """Return the ratings, with the intervals of these bots; None is all bots."""
        anchor = None if self.anchored is None else self.bots.index(self.anchored)
        # More threads make this small problem slower, and take cores from the bots of a running game.
        with threadpool_limits(1):
            return rate(
                evidence_of(self.bots, self.games),
                anchor,
                self.anchor_rating,
                ghosts=self.ghosts,
                widening=self.widening,
                intervals=intervals,
            )

    @property
    def is_adaptive(self) -> bool:
        """True if pairings depend on results, which biases ratings."""
        return pairs_rounds(self.plan.kind)

    @property
    def has_intervals(self) -> bool:
        """True if ratings have intervals."""
        return not self.is_adaptive

    @property
    def widening(self) -> float:
        """Factor by which the intervals of ratings are widened."""
        return 1.0

    @property
    def caveat(self) -> str:
        """Caveats for the ratings; empty if there are none."""
        if not self.games:
            return ""
        of_format = CAVEAT if self.is_adaptive else SPRT_CAVEAT if self.was_stopped else ""
        of_anchor = "" if self.anchored == self.anchor else ANCHOR_CAVEAT.format(self.anchor)
        return "; ".join(filter(None, (of_format, of_anchor)))

    @property
    def was_stopped(self) -> bool:
        """True if a sequential test decides when the games end."""
        return self.plan.kind == "sprt"

    @property
    def ghosts(self) -> float:
        """Imaginary results of each bot, see tournaments/analysis/ratings/bradley_terry.py."""
        return GHOST_RESULTS_OF_ADAPTIVE if self.is_adaptive else GHOST_RESULTS

    @cached_property
    def estimates(self) -> Mapping[str, Estimate]:
        """Bot -> rating, for bots with a game that counts; without interval in most adaptive formats."""
        return self._estimates(self.ratings) if self.games else {}

    def _estimates(self, found: Ratings) -> Mapping[str, Estimate]:
        """Return bot -> rating, for bots with a game that counts."""
        values = zip(found.rating.tolist(), found.low.tolist(), found.high.tolist(), strict=True)
        rows = zip(self.bots, values, found.games.tolist(), strict=True)
        # A hundredth of an Elo is far below the precision of any interval, and noise is far below that. 0.0
        # is added lest -0.0 be shown.
        return {
            name: Estimate(*(round(elo, 2) + 0.0 for elo in estimate))
            for name, estimate, games in rows
            if games
        }

    @cached_property
    def table(self) -> list[Standing]:
        """Standings."""
        return self.standings_of(Tally(self.bots, self.games))

    def standings_of(self, tally: Tally) -> list[Standing]:
        """Return the table of a tally of this tournament's games."""
        return tally.table(
            self.ranking,
            places=self.places,
            byes=self.byes,
            ratings=self.estimates,
            withdrawn=self.rulings.withdrawn,
            matches=self.matches,
        )

    @property
    def criteria(self) -> tuple[str, ...]:
        """Criteria that order the table."""
        return criteria_of(self.ranking)

    @property
    def about(self) -> str:
        """Description of the tournament, in one line."""
        confined = f", sandbox {self.sandbox}" if self.games else ""
        kind = "" if self.plan.kind == "round-robin" else f"{self.plan.kind}, "
        aside = len(self.kept) - len(self.games)
        without = f" ({aside} set aside)" if aside else ""
        return f"{kind}{self.game}, {self.control}, {self.done} of {self.total} games{without}{confined}"

    @property
    def sandbox(self) -> str:
        """Confinement of the bots in the games so far; if there are several tiers, each with its games."""
        tiers: Counter[str] = Counter(map(attrgetter("sandbox"), self.games))
        if "" in tiers:
            tiers["unknown"] += tiers.pop("")
        if len(tiers) == 1:
            return next(iter(tiers))
        return " and ".join(
            f"{tier} ({count} game{'' if count == 1 else 's'})" for tier, count in sorted(tiers.items())
        )

    def to_json(self) -> dict[str, Any]:
        """Return the table for scripts; keys are only ever added."""
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
            "anchor": self.anchored,
            "ratings_caveat": self.caveat,
        }
        return tables.to_json(self.table, self.ranking, about)

    def render(
        self, form: str, width: int | None = None, has_folder: Callable[[str], bool] = lambda _: True
    ) -> str:
        """Return the table as one of ``tables.FORMATS``.

        Args:
            form: The format.
            width: Width of the terminal, for text.
            has_folder: Function that returns whether a game's files are in a folder, given the game's key.
                Only then does HTML link to them.
        """
        match form:
            case "csv":
                return tables.to_csv(self.table, self.ranking, self.caveat).rstrip("\n")
            case "json":
                return tables.json_text(self.to_json())
            case "html":
                # Imported here, since Jinja takes a while and the other formats do not need it.
                from tournaments.reporting.site.pages import standings_page

                return standings_page(
                    self.name, self.about, self.table, self.games, self.ranking, self.remarks, has_folder
                )
            case "text":
                text = tables.to_text(self.name, self.about, self.table, self.ranking, width)
                return "\n\n".join([text, *self.remarks])
        raise ValueError(f"no format {form!r}; there are {', '.join(tables.FORMATS)}")
