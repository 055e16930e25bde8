"""Tables from results (pure)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tournaments.analysis.standing import Estimate, Standing, Versus
from tournaments.analysis.tie_breaks import criteria_of, order
from tournaments.results.game_summary import GameSummary


class NamedMatch(NamedTuple):
    """A ``MatchScore`` with the bots' names."""

    names: tuple[str, str | None]
    """Names of both bots; None is the opponent in a bye."""
    points: tuple[int, int]
    is_played: bool


class Tally:
    """Table of the games so far; games are added one by one."""

    def __init__(self, names: Sequence[str], games: Iterable[GameSummary] = ()) -> None:
        self._lines = {
            name: Standing(name, versus={other: Versus() for other in names if other != name})
            for name in names
        }
        self._seen: set[tuple[str, str, str, str]] = set()
        for game in games:
            self.add(game)

    def add(self, game: GameSummary) -> None:
        """Count a game."""
        same = (game.first, game.second, game.opening, game.likeness)
        unique = not game.likeness or same not in self._seen
        self._seen.add(same)
        one, other = self._lines[game.first], self._lines[game.second]
        against_other, against_one = one.versus[other.name], other.versus[one.name]
        if game.winner is None:
            one.draws += 1
            other.draws += 1
            against_other.draws += 1
            against_one.draws += 1
        elif game.winner == 0:
            one.wins += 1
            other.losses += 1
            against_other.wins += 1
            against_one.losses += 1
            other.forfeits += game.fault is not None
        else:
            one.losses += 1
            other.wins += 1
            against_other.losses += 1
            against_one.wins += 1
            one.forfeits += game.fault is not None
        for line, moves, charged_us in zip((one, other), game.moves, game.charged_us, strict=True):
            line.unique += unique
            line.moves += moves
            line.charged_us += charged_us

    def table(
        self,
        ranking: str | Sequence[str],
        *,
        places: Mapping[str, int] | None = None,
        byes: Mapping[str, float] | None = None,
        ratings: Mapping[str, Estimate] | None = None,
        withdrawn: Iterable[str] = (),
        matches: Iterable[NamedMatch] | None = None,
    ) -> list[Standing]:
        """Return the table, best first, ordered by the criteria of ``ranking``.

        ``ranking`` is a preset's name or a list, see tournaments/analysis/tie_breaks.py.  ``places`` take
        precedence over all criteria, where the format itself decides ranks; bots without one are last.  Bots
        with the same rank are ordered by name.  ``matches`` are the finished ones, if points are given for
        matches.
        """
        lines = list(self._lines.values())
        left = set(withdrawn)
        for line in lines:
            line.bye_points = (byes or {}).get(line.name, 0.0)
            line.rating = (ratings or {}).get(line.name)
            line.withdrawn = line.name in left
        self._count_matches(matches)
        order(lines, criteria_of(ranking), places or {})
        return sorted(lines, key=lambda line: (line.rank, line.name))

    def _count_matches(self, matches: Iterable[NamedMatch] | None) -> None:
        """Set the match points of every line; None if points are given for games."""
        for line in self._lines.values():
            line.match_points = None if matches is None else 0
            line.bye_matches = 0
            for versus in line.versus.values():
                versus.matches = versus.match_points = 0
        for names, all_points, is_played in matches or ():
            for name, opponent, points in zip(names, reversed(names), all_points, strict=True):
                if name is None:
                    continue
                line = self._lines[name]
                line.match_points = (line.match_points or 0) + points
                if is_played and opponent is not None:
                    line.versus[opponent].matches += 1
                    line.versus[opponent].match_points += points
                elif points:
                    line.bye_matches += 1
