"""Tables from results (pure)."""

from collections import defaultdict
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


class _Meeting:
    """Sums over games with the same first and second bot; lists have an entry for each bot."""

    __slots__ = ("charged_us", "draws", "faults", "moves", "unique", "wins")

    def __init__(self) -> None:
        self.draws = self.unique = 0
        self.wins = [0, 0]
        self.faults = [0, 0]
        """Wins because of the opponent's fault."""
        self.moves = [0, 0]
        self.charged_us = [0, 0]


class Tally:
    """Table of the games so far; games are added one by one."""

    def __init__(self, names: Sequence[str], games: Iterable[GameSummary] = ()) -> None:
        self._lines = {
            name: Standing(name, versus={other: Versus() for other in names if other != name})
            for name in names
        }
        self._seen: set[tuple[str, str, str, str]] = set()
        self.add_all(games)

    def add(self, game: GameSummary) -> None:
        """Count a game."""
        self.add_all((game,))

    def add_all(self, games: Iterable[GameSummary]) -> None:
        """Count games.  There may be 100,000, so they are first summed by first and second bot."""
        meetings: defaultdict[tuple[str, str], _Meeting] = defaultdict(_Meeting)
        seen = self._seen
        for game in games:
            first, second = game.first, game.second
            meeting = meetings[first, second]
            likeness = game.likeness
            known = len(seen)
            seen.add((first, second, game.opening, likeness))
            meeting.unique += not likeness or len(seen) > known
            winner = game.winner
            if winner is None:
                meeting.draws += 1
            else:
                meeting.wins[winner] += 1
                if game.fault is not None:
                    meeting.faults[winner] += 1
            one, other = game.moves
            meeting.moves[0] += one
            meeting.moves[1] += other
            one, other = game.charged_us
            meeting.charged_us[0] += one
            meeting.charged_us[1] += other
        for (first, second), meeting in meetings.items():
            self._count(0, first, second, meeting)
            self._count(1, second, first, meeting)

    def _count(self, player: int, name: str, opponent: str, meeting: "_Meeting") -> None:
        line = self._lines[name]
        wins, losses = meeting.wins[player], meeting.wins[1 - player]
        for record in (line, line.versus[opponent]):
            record.wins += wins
            record.draws += meeting.draws
            record.losses += losses
        line.forfeits += meeting.faults[1 - player]
        line.unique += meeting.unique
        line.moves += meeting.moves[player]
        line.charged_us += meeting.charged_us[player]

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
