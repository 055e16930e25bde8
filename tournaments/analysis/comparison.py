"""Comparison of the strength of two bots of a tournament (pure)."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any

from tournaments.analysis.evidence import evidence_of, unique_games
from tournaments.analysis.ratings.bradley_terry import GHOST_RESULTS
from tournaments.analysis.ratings.pentanomial import MatchScore, game_counts, of_games, of_pairs, pair_counts
from tournaments.analysis.ratings.ratings import rate
from tournaments.analysis.standing import Estimate
from tournaments.results.game_summary import GameSummary

PAIR_POINTS = ("0", "0.5", "1", "1.5", "2")
"""Points that a pair of games can give."""


@dataclass(frozen=True)
class Comparison:
    """Results and statistics of ``one`` against ``other``."""

    one: str
    other: str
    wins: int
    """Number of games that ``one`` won, of those between the two that count."""
    draws: int
    losses: int
    unique: int
    """Number of these games that differ from all others from the same start."""
    pairs: tuple[float, ...]
    """Different pairs of games by the points of ``one``: 0, 0.5, 1, 1.5, 2."""
    match: MatchScore
    """Statistics of whole pairs, or of single games if there is no whole pair."""
    difference: Estimate | None
    """Elo of ``one`` minus Elo of ``other`` from all games of the tournament; None if one has no game.

    If all games are between the two, this is the difference of the match.
    """
    superiority: float | None
    """Probability that ``one`` is the stronger one, from all games of the tournament.

    None where pairings depended on results: the probability would be overconfident.
    """

    def to_json(self) -> dict[str, Any]:
        """Return the comparison for scripts; numbers that do not exist (without a common game) are null."""
        match = _finite(asdict(self.match))
        return {
            "one": self.one,
            "other": self.other,
            "games": self.wins + self.draws + self.losses,
            "unique": self.unique,
            "wins": self.wins,
            "draws": self.draws,
            "losses": self.losses,
            "pairs": list(self.pairs),
            "match": match,
            "difference": None if self.difference is None else _finite(self.difference._asdict()),
            "likelihood_of_superiority": self.superiority,
        }

    def pairs_text(self) -> str:
        """Return the numbers of different pairs by their points; empty if there is no whole pair."""
        if not sum(self.pairs):
            return ""
        counts = [f"{points}: {count:g}" for points, count in zip(PAIR_POINTS, self.pairs, strict=True)]
        return f"different pairs by points  {', '.join(counts)}"

    def to_text(self) -> str:
        """Return the comparison for people."""
        games = self.wins + self.draws + self.losses
        lines = [
            f"{self.one} against {self.other}: {games} games, {self.unique} of them unique",
            f"  won {self.wins}, drawn {self.draws}, lost {self.losses}",
        ]
        if pairs := self.pairs_text():
            lines.append(f"  {pairs}")
        match = self.match
        if isfinite(match.elo):
            unit = "pairs" if sum(self.pairs) else "games"
            lines.append(
                f"  from these {unit} alone    Elo {match.elo:+z.0f}, 95 % interval {match.elo_low:+z.0f} to "
                f"{match.elo_high:+z.0f}; superior with {percent(match.superiority)}"
            )
        if self.difference is not None:
            value, low, high = self.difference
            line = f"  from the whole tournament  Elo {value:+z.0f}"
            if self.difference.has_interval:
                line += f", 95 % interval {low:+z.0f} to {high:+z.0f}"
            if self.superiority is not None:
                line += f"; superior with {percent(self.superiority)}"
            lines.append(line)
        return "\n".join(lines)


def compare(
    names: Sequence[str],
    games: Sequence[GameSummary],
    one: str,
    other: str,
    ghosts: float = GHOST_RESULTS,
    *,
    is_adaptive: bool = False,
    was_stopped: bool = False,
) -> Comparison:
    """Compare two different bots.

    Args:
        names: All bots of the tournament.
        games: Its games that count.
        one: The bot whose strength is judged.
        other: The bot that it is compared with.
        ghosts: Imaginary results of each bot (tournaments/analysis/ratings/bradley_terry.py).
        is_adaptive: Whether pairings depended on results; then the whole tournament gives no interval.
        was_stopped: Whether a sequential test decided when the match ended.

    Raises:
        ValueError: ``names`` lacks one of the two.
    """
    first, second = names.index(one), names.index(other)
    between = [game for game in games if {game.first, game.second} == {one, other}]
    evidence = evidence_of(names, games)
    pairs = pair_counts(evidence, first, second)
    if sum(pairs):
        match = of_pairs(pairs, was_stopped=was_stopped)
    else:
        match = of_games(game_counts(evidence, first, second))
    played = {name for game in games for name in (game.first, game.second)}
    difference = None
    superiority: float | None = None if is_adaptive else 0.5
    if played == {one, other}:
        difference = Estimate(match.elo, match.elo_low, match.elo_high)
        superiority = match.superiority
    elif {one, other} <= played:
        intervals = () if is_adaptive else (first,)
        ratings = rate(evidence, anchor=second, ghosts=ghosts, intervals=intervals)
        difference = Estimate(*(float(ends[first]) for ends in (ratings.rating, ratings.low, ratings.high)))
        if not is_adaptive:
            superiority = ratings.likelihood_of_superiority(first, second)
    points = [game.points[int(game.second == one)] for game in between]
    return Comparison(
        one=one,
        other=other,
        wins=points.count(1.0),
        draws=points.count(0.5),
        losses=points.count(0.0),
        unique=unique_games(between),
        pairs=pairs,
        match=match,
        difference=difference,
        superiority=superiority,
    )


def _finite(values: dict[str, float]) -> dict[str, float | None]:
    """Return numbers for JSON; None replaces infinite ones, which JSON does not have."""
    return {name: value if isfinite(value) else None for name, value in values.items()}


def percent(share: float) -> str:
    """Return a percentage, but never 0 or 100, which no number of games can show."""
    return f"{min(max(100 * share, 0.01), 99.99):.4g} %"
