"""What a tournament would be, before it is made: who plays, how many games, and about how long.  Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from referee.results import CAPABILITIES, Player
from tournaments.game_summary import GameSummary
from tournaments.service.line_up import Candidate, fix, tournament_of
from tournaments.service.tournament_spec import TournamentSpec
from tournaments.summary import Summary
from tournaments.tournament_file import LimitsTable

AROUND_A_GAME_S = 0.1
"""Starting two confined bots and keeping the game, beside what the bots take."""


@dataclass(frozen=True)
class Preview:
    """See above."""

    names: Sequence[str]
    games: int
    """As far as the format can foresee them."""
    seconds: float | None
    """About how long it takes; None if nothing is known of games here."""
    measured: int
    """From how many practice games that is told."""
    places: int
    """Games at a time."""

    @property
    def lasts(self) -> str:
        """The time in words."""
        if self.seconds is None:
            return "unknown: no practice games were played yet"
        return in_words(self.seconds)


def preview(
    spec: TournamentSpec, chosen: Sequence[Candidate], practice: Sequence[GameSummary], places: int
) -> Preview:
    """The preview.  Raises TournamentSpecError with what is wrong, but for what only the bots can tell.

    ``practice`` are games of the same bots, from which the time is told.
    """
    players = {one.name: _stand_in(one) for one in chosen}
    tournament = tournament_of(fix(spec, chosen, players, LimitsTable(), "required"), players)
    games = Summary.of(tournament).total
    at_a_time = min(places, spec.concurrency or places)
    mean = mean_game_s(practice)
    seconds = None if mean is None else games * mean / at_a_time
    return Preview(tournament.names, games, seconds, len(practice), at_a_time)


def _stand_in(candidate: Candidate) -> Player:
    """A bot that is not built yet: all that a schedule asks for is its name."""
    digest = candidate.version.digest if candidate.version is not None else None
    return Player(candidate.name, ("/",), "/", digest or "", tuple(CAPABILITIES))


def mean_game_s(games: Sequence[GameSummary]) -> float | None:
    """How long a game takes; None without any."""
    if not games:
        return None
    return sum(sum(game.wall_us) for game in games) / len(games) / 1e6 + AROUND_A_GAME_S


def in_words(seconds: float) -> str:
    """A time for people: ``40 s``, ``3 min``, ``2 h 10 min``, ``3 days``."""
    if seconds < 60:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {rest} min" if rest else f"{hours} h"
    return f"{round(hours / 24)} days"
