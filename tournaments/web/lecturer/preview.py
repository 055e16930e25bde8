"""Preview of a tournament before it is made: entrants, number of games, estimated duration.  Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from tournaments.config.tournament_file import LimitsTable
from tournaments.reporting.tournament_results import TournamentResults
from tournaments.results.game_summary import GameSummary
from tournaments.server.competitions.entrants import Candidate, fix, placeholder, planned
from tournaments.server.competitions.tournament_spec import TournamentSpec

AROUND_A_GAME_S = 0.1
"""Seconds for starting two confined bots and storing the game, in addition to the bots' own time."""


@dataclass(frozen=True)
class Preview:
    """Entrants, number of games and estimated duration of a tournament."""

    names: Sequence[str]
    games: int
    """Number of games, as far as the format can foresee it."""
    seconds: float | None
    """Estimated duration in seconds; None without practice games."""
    measured: int
    """Number of practice games from which the duration is estimated."""
    slots: int
    """Games at a time."""
    without_result: Sequence[str] = ()
    """Names of versions that take part instead if they qualify before the tournament is created."""

    @property
    def lasts(self) -> str:
        """The estimated duration in words."""
        if self.seconds is None:
            return "unknown: no practice games were played yet"
        return in_words(self.seconds)


def preview_of(
    spec: TournamentSpec, chosen: Sequence[Candidate], practice: Sequence[GameSummary], slots: int
) -> Preview:
    """Return the preview of a tournament; ``practice`` are games from which its duration is estimated.

    Raises TournamentSpecError with all problems, except those that show only once the bots are built.
    """
    digests = {one.name: one.version.digest or "" if one.version is not None else "" for one in chosen}
    players = {name: placeholder(name, digest) for name, digest in digests.items()}
    tournament = planned(fix(spec, chosen, players, LimitsTable(), "required"))
    games = TournamentResults.of(tournament).total
    at_a_time = min(slots, spec.concurrency or slots)
    mean = mean_game_s(practice)
    seconds = None if mean is None else games * mean / at_a_time
    return Preview(tournament.names, games, seconds, len(practice), at_a_time)


def mean_game_s(games: Sequence[GameSummary]) -> float | None:
    """Return the mean duration of a game in seconds; None without games."""
    if not games:
        return None
    return sum(sum(game.wall_us) for game in games) / len(games) / 1e6 + AROUND_A_GAME_S


def in_words(seconds: float) -> str:
    """Return a duration in words: ``40 s``, ``3 min``, ``2 h 10 min``, ``3 days``."""
    if seconds < 60:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {rest} min" if rest else f"{hours} h"
    return f"{round(hours / 24)} days"
