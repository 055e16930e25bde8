"""Statistics of the pie rule: the swaps of each bot and the scores with and without them."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tournaments.results.game_summary import GameSummary


@dataclass
class SwapRecord:
    """Swaps of one bot, or of all; different games, identical ones count once."""

    chances: float = 0.0
    """Games in which it could have swapped: those in which it moved second."""
    swaps: float = 0.0
    """Games of these in which it did."""
    points_with: float = 0.0
    """Its points, 1 for a win and 0.5 for a draw, in games in which it swapped."""
    points_without: float = 0.0
    """Its points in the other ones of its chances."""

    @property
    def share(self) -> float | None:
        """The share of its chances in which it swapped, 0 to 1; None without a chance."""
        return self.swaps / self.chances if self.chances else None

    @property
    def score_with(self) -> float | None:
        """Its share of the points when it swapped; None if it never did."""
        return self.points_with / self.swaps if self.swaps else None

    @property
    def score_without(self) -> float | None:
        """Its share of the points when it could have swapped and did not; None if there is no such game."""
        kept = self.chances - self.swaps
        return self.points_without / kept if kept > 0 else None


@dataclass(frozen=True)
class Swaps:
    """Use of the pie rule in a tournament."""

    overall: SwapRecord = field(default_factory=SwapRecord)
    """All bots together; all zeros in a game without the rule."""
    bots: Mapping[str, SwapRecord] = field(default_factory=dict)


def swaps_of(names: Sequence[str], games: Iterable[GameSummary]) -> Swaps:
    """Count swaps of the bots with these names.

    Of identical games each counts a part, together one.  The first mover cannot swap; a record in which it
    did counts as one more chance of the first mover.
    """
    listed = list(games)
    copies: Counter[tuple[str, str, str]] = Counter()
    kinds: set[tuple[str, str, str, str | int]] = set()
    for serial, game in enumerate(listed):
        copies[game.first, game.second, game.opening] += 1
        kinds.add((game.first, game.second, game.opening, game.likeness or serial))
    different = Counter(kind[:3] for kind in kinds)
    bots = {name: SwapRecord() for name in names}
    overall = SwapRecord()
    for game in listed:
        start = (game.first, game.second, game.opening)
        weight = different[start] / copies[start]
        player = 0 if game.swapped == 0 else 1
        points = game.points[player] * weight
        records = [overall]
        own = bots.get((game.first, game.second)[player])
        if own is not None:
            records.append(own)
        for record in records:
            record.chances += weight
            if game.swapped is None:
                record.points_without += points
            else:
                record.swaps += weight
                record.points_with += points
    return Swaps(overall, bots)
