"""State of a running tournament.  Time is an argument, in seconds of any clock."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

from referee.judge.verdict_text import visible
from tournaments.analysis.standings import Tally
from tournaments.reporting.tables import Cells, people_columns
from tournaments.reporting.tournament_results import TournamentResults
from tournaments.results.game_summary import GameSummary
from tournaments.running.runner import RunReport

WINDOW_S = 30.0
"""Seconds over which the pace is measured: it follows a change and does not jump about."""
WINDOW_GAMES = 8
"""Least number of games over which it is measured: slow games end less often than that."""
REMEMBERED_FAULTS = 10
"""Number of the latest faults that are kept, more than a screen shows beside a table."""


class Pace:
    """Rate at which games end."""

    def __init__(self, began: float) -> None:
        self._mark = began
        self._ends: deque[float] = deque()

    def ended(self, now: float) -> None:
        """Record the end of a game."""
        self._ends.append(now)

    def per_second(self, now: float) -> float | None:
        """Return the recent games per second; None before the first one.

        The time is that from the end of the last game that is not counted any more, or from the start of the
        run, up to now, so that a pause is seen at once.
        """
        while len(self._ends) > WINDOW_GAMES and self._ends[0] < now - WINDOW_S:
            self._mark = self._ends.popleft()
        passed = now - self._mark
        return len(self._ends) / passed if self._ends and passed > 0 else None


@dataclass(frozen=True)
class Playing:
    """A game that is being played."""

    key: str
    first: str
    second: str
    for_s: int
    """Seconds since it began."""
    host: str = ""
    """Host of a cluster that plays it; empty if this machine does."""


@dataclass(frozen=True)
class Snapshot:
    """All data that a screen shows; never changes."""

    name: str
    about: str
    """The game that is played."""
    done: int
    total: int
    round: int
    """Last round of which a game was begun; 0 before the first game."""
    per_second: float | None
    elapsed_s: int
    left_s: int | None
    """Estimated seconds that are left: the remaining games at the recent pace."""
    table: Cells
    playing: Sequence[Playing]
    """Games under way, the longest one first."""
    places: int
    """Most games that were ever played at a time."""
    faults: Sequence[str]
    """The latest faults, and games that could not be played, the oldest first."""
    conclusion: str


class Progress:
    """State of a running tournament: updated with each game, read as snapshots.

    Counts are up to date with every game.  Values that take long to compute (ratings, places, the conclusion)
    are from the last call of ``take``.
    """

    def __init__(self, results: TournamentResults, report: RunReport, now: float) -> None:
        self._before = results
        self._added: list[GameSummary] = []
        self._shown = results
        self._report = report
        self._began = now
        self._pace = Pace(now)
        self._tally = Tally(results.bots, results.games)
        self._playing: dict[str, tuple[Playing, float]] = {}
        self._places = 0
        self._round = max((game.round for game in results.games), default=0)
        self._faults: deque[str] = deque(maxlen=REMEMBERED_FAULTS)

    def started(
        self, key: str, round_number: int, first: str, second: str, now: float, host: str = ""
    ) -> None:
        """Record the start of a game, perhaps once more; ``host`` plays it, if not this one."""
        self._round = max(self._round, round_number)
        self._playing.pop(key, None)
        self._playing[key] = (Playing(key, first, second, 0, visible(host)), now)
        self._places = max(self._places, len(self._playing))

    def ended(self, game: GameSummary, now: float, host: str = "") -> None:
        """Record the result of a game; ``host`` played it, if not this one."""
        self._playing.pop(game.key, None)
        self._pace.ended(now)
        self._tally.add(game)
        self._added.append(game)
        if game.fault is not None:
            self._faults.append(fault_line(game, host))

    def unplayed(self, key: str, why: str) -> None:
        """Record that a game could not be played."""
        self._playing.pop(key, None)
        self._faults.append(unplayed_line(key, why))

    def results(self) -> TournamentResults:
        """Return the results of all games until now.

        Their values are computed in another thread, see ``compute``, and then passed to ``take``.
        """
        return replace(self._before, kept=[*self._before.kept, *self._added])

    def take(self, results: TournamentResults) -> None:
        """Show the ratings, ranks and conclusion of these results from now on."""
        self._shown = results

    def snapshot(self, now: float) -> Snapshot:
        """Return the data to show."""
        report, shown, pace = self._report, self._shown, self._pace.per_second(now)
        done = report.before + report.played
        return Snapshot(
            name=shown.name,
            about=shown.game,
            done=done,
            total=report.total,
            round=self._round,
            per_second=pace,
            elapsed_s=int(now - self._began),
            left_s=None if pace is None else max(0, round((report.total - done) / pace)),
            table=people_columns(shown.standings_of(self._tally), shown.ranking),
            playing=tuple(replace(game, for_s=int(now - since)) for game, since in self._playing.values()),
            places=self._places,
            faults=tuple(self._faults),
            conclusion=shown.conclusion,
        )


def compute(results: TournamentResults) -> None:
    """Compute all values that a snapshot needs: up to 2 s for 100,000 games between 40 bots."""
    _ = results.estimates, results.places, results.byes, results.matches, results.conclusion


def fault_line(game: GameSummary, host: str = "") -> str:
    """Return a fault in one line, with the host where it happened if that is not this one."""
    where = f" on {visible(host)}" if host else ""
    return f"{game.key}{where}: {visible(game.detail)}"


def unplayed_line(key: str, why: str) -> str:
    """Return a line on a game that our side could not play."""
    return f"{key} could not be played: {visible(why)}"
