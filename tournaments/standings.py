"""Tables from results.  Pure."""

from collections.abc import Iterable, Mapping, Sequence

from tournaments.game_summary import GameSummary
from tournaments.rankings import criteria_of, order
from tournaments.standing import Estimate, Standing, Versus


class Tally:
    """The table of the games so far; takes one game after the other."""

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
        same = (game.first, game.second, game.opening, game.fingerprint)
        unique = not game.fingerprint or same not in self._seen
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
    ) -> list[Standing]:
        """The table, best first, ordered by the criteria of ``ranking`` (a preset's name or a list, see
        tournaments/rankings.py).

        ``places`` come before all of them, where the format itself decides places; bots without one come
        last.  Within a shared rank, by name.
        """
        lines = list(self._lines.values())
        left = set(withdrawn)
        for line in lines:
            line.bye_points = (byes or {}).get(line.name, 0.0)
            line.rating = (ratings or {}).get(line.name)
            line.withdrawn = line.name in left
        order(lines, criteria_of(ranking), places or {})
        return sorted(lines, key=lambda line: (line.rank, line.name))


def standings(
    names: Sequence[str], games: Iterable[GameSummary], ranking: str | Sequence[str]
) -> list[Standing]:
    """The table of these games; see ``Tally.table``."""
    return Tally(names, games).table(ranking)
