"""Estimate of a bot's position on a ladder of players with a known order (pure).

All games of the bot together give one Bradley-Terry fit (tournaments/analysis/ratings), which gives the
difference between the bot and each level, with an interval.  Of the levels only their order is presupposed,
and that each is at least ``LEAST_STEP_ELO`` stronger than the one below: their real distances depend on the
game and on the time control.  Therefore

- a bot that is stronger than a level is by so much more stronger than all levels below, and results against
  one level hold for others as well;
- estimates that fall by less than they should are averaged with their neighbours (isotonic regression by
  pooling adjacent violators: Ayer and others 1955; Barlow and others 1972), weighted by their precision;
- between two levels, a difference in Elo is taken to fall along a straight line.  The bot's place is where
  that line is at 0.

The ends of the interval leave out the places at which the bot is shown to be stronger, or weaker, than a
player of that place would be.  They are where the lines through the lower and the upper ends of the
differences are at 0.  The evidence of the levels adds up: a bot is above a level, too, if the evidence that
it is stronger than this level and those above it (the sum of the squared standard deviations by which each of
them supports that) exceeds what one interval needs.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from statistics import NormalDist
from typing import Any

from tournaments.analysis.evidence import evidence_of, unique_games
from tournaments.analysis.ratings.bradley_terry import GHOST_RESULTS
from tournaments.analysis.ratings.ratings import quantile, rate
from tournaments.analysis.standing import Estimate
from tournaments.results.game_summary import GameSummary

LEAST_STEP_ELO = 50.0
"""Minimum difference in Elo between neighbouring levels: an expected score of 57 %.

The ladder's own table (sample_bots/README.md) has 65 % and more; other games and times may bring levels
closer together.
"""

LEAST_CHANCE = 1e-12
"""Minimum distance of likelihoods of superiority from 0 and 1.

It is 7 standard deviations, far more than any interval needs.
"""


@dataclass(frozen=True)
class LevelResult:
    """Result of a bot against one level."""

    level: int
    name: str
    """Name of the player of that level."""
    wins: int
    """Number of games that the bot won."""
    draws: int
    losses: int
    unique: int
    """Number of games that differ from all others from the same start."""
    difference: Estimate | None
    """Elo of the bot minus that of the level, with its 95 % interval; None without a game."""

    @property
    def games(self) -> int:
        """Number of games played."""
        return self.wins + self.draws + self.losses

    @property
    def score(self) -> float | None:
        """Share of the points, 0 to 1; None without a game."""
        return (self.wins + self.draws / 2) / self.games if self.games else None

    def to_json(self) -> dict[str, Any]:
        """Return the result for scripts."""
        return {
            "level": self.level,
            "name": self.name,
            "games": self.games,
            "unique": self.unique,
            "wins": self.wins,
            "draws": self.draws,
            "losses": self.losses,
            "score": self.score,
            "difference": None if self.difference is None else self.difference._asdict(),
        }


@dataclass(frozen=True)
class LadderPosition:
    """A place on the ladder, as a level number."""

    bot: str
    results: tuple[LevelResult, ...]
    """Results by level, the lowest first."""
    value: float
    """Level; minus or plus infinity for below or above all levels that it met, or if it met none."""
    low: float
    """Lower end of the 95 % interval; minus infinity if it is open."""
    high: float
    against_order: bool = False
    """True if the results do not fit the order of the levels.

    One of them shows that the bot is weaker than a place, and another that it is stronger than that.
    """

    @property
    def met(self) -> list[LevelResult]:
        """Levels with a game."""
        return [result for result in self.results if result.games]

    @property
    def nearest(self) -> LevelResult | None:
        """Level below the place, or the lowest one if there is none; None without a game."""
        below = [result for result in self.met if result.level <= self.value]
        return below[-1] if below else next(iter(self.met), None)

    @property
    def known(self) -> bool:
        """True if the games give any information on the place."""
        return self.low > -inf or self.high < inf

    def to_json(self) -> dict[str, Any]:
        """Return the place for scripts; infinite values are null, and ``position`` gives the direction."""
        nearest = self.nearest
        return {
            "position": self.position,
            "level": self.value if isfinite(self.value) else None,
            "level_low": self.low if isfinite(self.low) else None,
            "level_high": self.high if isfinite(self.high) else None,
            "relative_to": None if nearest is None else nearest.level,
            "difference": None
            if nearest is None or nearest.difference is None
            else nearest.difference._asdict(),
            "against_order": self.against_order,
        }

    @property
    def position(self) -> str:
        """``between`` (or at a level), ``below`` or ``above`` the levels, ``unknown`` without a game."""
        if not self.met:
            return "unknown"
        return "between" if isfinite(self.value) else "above" if self.value > 0 else "below"

    def sentences(self) -> list[str]:
        """Return the place in words."""
        if not self.met or (nearest := self.nearest) is None or nearest.difference is None:
            return [f"{self.bot}: no game was played that counts."]
        lowest, highest = self.met[0].level, self.met[-1].level
        if self.position == "above":
            which = "the highest one that it met" if len(self.met) > 1 else "the only one that it met"
            where = f"stands above level {highest}, {which}"
        elif self.position == "below":
            which = "the lowest one that it met" if len(self.met) > 1 else "the only one that it met"
            where = f"stands below level {lowest}, {which}"
        elif exact := [result.level for result in self.met if result.level == self.value]:
            where = f"stands at level {exact[0]}"
        else:
            above = next(result.level for result in self.met if result.level > self.value)
            where = f"stands between level {nearest.level} and level {above}, at level {_level(self.value)}"
        value, low, high = nearest.difference
        lines = [
            f"{self.bot} {where} ({self._interval(lowest, highest)}).",
            f"Against level {nearest.level} its rating is {value:+z.0f} Elo "
            f"(95 % interval {low:+z.0f} to {high:+z.0f}).",
        ]
        if not self.known:
            lines += self._advice()
        if self.against_order:
            lines.append(
                "Its results do not fit the order of the levels: read them level by level, no single number "
                "describes its strength."
            )
        return lines

    def _seen(self) -> str:
        """Return the levels between which the scores place the bot, where there is no interval."""
        better = [result.level for result in self.met if (result.score or 0) > 0.5]
        worse = [result.level for result in self.met if (result.score or 0) < 0.5]
        ends = [f"at least level {max(better)}"] if better else []
        ends += [f"at most level {min(worse)}"] if worse else []
        if better and worse and max(better) > min(worse):
            return "its scores do not fit the order of the levels"
        return "by its scores " + (", ".join(ends) or "as strong as the levels that it met")

    def _advice(self) -> list[str]:
        """Return advice for a better answer, where games were repeated."""
        repeated = [str(result.level) for result in self.met if result.games > result.unique]
        if not repeated:
            return ["More games give an interval: --games."]
        which = f"level {repeated[0]}" if len(repeated) == 1 else f"levels {', '.join(repeated)}"
        return [
            f"Games against {which} were repetitions, which count once: let the bot take openings "
            '(capabilities = ["openings"] in its bot.toml), or give it chance.'
        ]

    def _interval(self, lowest: int, highest: int) -> str:
        if not self.known:
            return f"{self._seen()}; too few different games for an interval"
        if self.low == inf:
            return f"95 % interval: above level {highest}"
        if self.high == -inf:
            return f"95 % interval: below level {lowest}"
        if not isfinite(self.low):
            return f"95 % interval: below level {_level(self.high)}"
        if not isfinite(self.high):
            return f"95 % interval: above level {_level(self.low)}"
        return f"95 % interval {_level(self.low)} to {_level(self.high)}"


def _level(value: float) -> str:
    """Return a level number for people; a whole one has no decimals."""
    return f"{value:.0f}" if value == int(value) else f"{value:.1f}"


def ladder_position(
    bot: str,
    levels: Mapping[int, str],
    games: Sequence[GameSummary],
    rungs: Iterable[int] = (),
    ghosts: float = GHOST_RESULTS,
) -> LadderPosition:
    """Return the place of a bot on a ladder, by the games that count.

    ``levels`` has the players' names by their levels; a higher level is a stronger player.  ``rungs`` are
    further existing levels.  Raises ValueError if two names are the same.
    """
    of_level = {name: level for level, name in levels.items()}
    between: dict[int, list[GameSummary]] = {level: [] for level in sorted(levels)}
    for game in games:
        if bot in (game.first, game.second):
            level = of_level.get(game.second if game.first == bot else game.first)
            if level is not None:
                between[level].append(game)
    met = [level for level, played in between.items() if played]
    names = [bot, *(levels[level] for level in met)]
    differences: dict[int, Estimate] = {}
    roots: list[float] = []
    needed = 0.0
    if met:
        evidence = evidence_of(names, [game for level in met for game in between[level]])
        found = rate(evidence, anchor=0, ghosts=ghosts)
        needed = quantile(evidence)
        for number, level in enumerate(met, 1):
            ends = (-float(side[number]) for side in (found.rating, found.high, found.low))
            differences[level] = Estimate(*ends)
            roots.append(_deviations(found.likelihood_of_superiority(0, number)))
    results = tuple(
        _level_result(bot, level, levels[level], played, differences.get(level))
        for level, played in between.items()
    )
    return _placed(bot, results, sorted({*rungs, *levels}), roots, needed)


def _deviations(chance: float) -> float:
    """Return the standard deviations by which results indicate that the bot is the stronger one."""
    return NormalDist().inv_cdf(min(max(chance, LEAST_CHANCE), 1 - LEAST_CHANCE))


def _level_result(
    bot: str, level: int, name: str, played: Sequence[GameSummary], difference: Estimate | None
) -> LevelResult:
    points = [game.points[int(game.second == bot)] for game in played]
    counts = (points.count(1.0), points.count(0.5), points.count(0.0))
    return LevelResult(level, name, *counts, unique_games(played), difference)


def _placed(
    bot: str, results: tuple[LevelResult, ...], rungs: Sequence[int], roots: Sequence[float], needed: float
) -> LadderPosition:
    """Return the place from the results.

    ``roots`` are the standard deviations by which each level that was met supports the bot, ``needed`` is the
    sum of their squares that an end of the interval needs.
    """
    met = {result.level: result.difference for result in results if result.difference is not None}
    if not met:
        return LadderPosition(bot, results, inf, -inf, inf)
    levels = list(met)
    # Once the least step is taken out, differences must only not rise.
    flat = {level: Estimate(*(end + LEAST_STEP_ELO * level for end in met[level])) for level in levels}
    # A wide interval weighs little: as in all averages of estimates, by the inverse of the variance.
    weights = [1 / max(found.high - found.low, 1e-9) ** 2 for found in flat.values()]
    values = falling([found.value for found in flat.values()], weights)
    lows = [max((flat[level].low for level in levels if level >= rung), default=-inf) for rung in rungs]
    highs = [min((flat[level].high for level in levels if level <= rung), default=inf) for rung in rungs]
    value = crossing(levels, _sloping(levels, values))
    low, high = crossing(rungs, _sloping(rungs, lows)), crossing(rungs, _sloping(rungs, highs))
    for index, level in enumerate(levels):
        if sum(max(root, 0.0) ** 2 for root in roots[index:]) >= needed:
            low = max(low, level)
        if sum(min(root, 0.0) ** 2 for root in roots[: index + 1]) >= needed:
            high = min(high, level)
    against_order = low > high
    low, high = min(low, high), max(low, high)
    if isfinite(value):
        value = min(max(value, low), high)
    return LadderPosition(bot, results, value, low, high, against_order)


def _sloping(levels: Sequence[int], values: Sequence[float]) -> list[float]:
    """Return the differences with the least step in them again."""
    return [value - LEAST_STEP_ELO * level for level, value in zip(levels, values, strict=True)]


def falling(values: Sequence[float], weights: Sequence[float]) -> list[float]:
    """Return the values that never rise and are nearest to these, by weighted squares.

    Neighbours that rise are averaged.
    """
    blocks: list[tuple[float, float, int]] = []
    """Average, weight, length."""
    for value, weight in zip(values, weights, strict=True):
        block = (value, weight, 1)
        while blocks and blocks[-1][0] < block[0]:
            before = blocks.pop()
            total = before[1] + block[1]
            block = ((before[0] * before[1] + block[0] * block[1]) / total, total, before[2] + block[2])
        blocks.append(block)
    return [value for value, _, length in blocks for _ in range(length)]


def crossing(levels: Sequence[int], values: Sequence[float]) -> float:
    """Return the level at which values that never rise are at 0, on straight lines between neighbours.

    The result is the middle, if they are at 0 for a while; minus infinity if all are below 0, plus infinity
    if all are above.
    """
    above = [index for index, value in enumerate(values) if value > 0]
    below = [index for index, value in enumerate(values) if value < 0]
    level = [index for index, value in enumerate(values) if value == 0]
    if level:
        return (levels[level[0]] + levels[level[-1]]) / 2
    if not above or not below:
        return inf if above else -inf
    left, right = above[-1], below[0]
    if not isfinite(values[right]):
        return float(levels[left])
    if not isfinite(values[left]):
        return float(levels[right])
    share = values[left] / (values[left] - values[right])
    return levels[left] + share * (levels[right] - levels[left])
