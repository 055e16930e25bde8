"""Games between bots of known strength, drawn without the model that rates them.

Strength is in Elo: in every world, the difference determines the expected score of a pair of games, one from
each side.  Draws, the advantage of the first move, and luck that both games of a pair share differ from world
to world.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from referee.judge.results import Reason
from tournaments.results.game_summary import GameSummary
from tournaments.schedule.formats.sprt_statistics import expected_score

Array = npt.NDArray[np.float64]

FARTHEST_ELO = 6000.0
"""Leads are searched up to here."""
HALVINGS = 60
"""Halvings of that range, which leave less than a hundred-millionth of one Elo."""


@dataclass(frozen=True)
class World:
    """Properties of games other than the strengths of the bots."""

    draws: float = 0.0
    """Share of draws between equal bots without advantage."""
    advantage: float = 0.0
    """Advantage of moving first, in Elo of a game without draws."""
    shared: float = 0.0
    """Share of pairs whose games depend on the same luck: of one bot, or, if negative, of the first mover."""

    def __str__(self) -> str:
        return f"draws {self.draws:.0%}, advantage {self.advantage:g}, shared luck {self.shared:+.0%}"


def chances(world: World, elo: float) -> tuple[Array, Array]:
    """Return the chances of a loss, a draw and a win, as first and as second player."""
    low, high = -FARTHEST_ELO, FARTHEST_ELO
    for _ in range(HALVINGS):
        lead = (low + high) / 2
        score = (expected_score(lead + world.advantage) + expected_score(lead - world.advantage)) / 2
        low, high = (lead, high) if score < expected_score(elo) else (low, lead)
    return _game(world, lead + world.advantage), _game(world, lead - world.advantage)


def _game(world: World, lead: float) -> Array:
    score = expected_score(lead)
    drawn = min(4 * world.draws * score * (1 - score), 2 * min(score, 1 - score))
    return np.array([1 - score - drawn / 2, drawn, score - drawn / 2])


def pair_chances(world: World, elo: float) -> Array:
    """Return the chances of 0 to 4 half points in a pair of games."""
    first, second = chances(world, elo)
    found = (1 - abs(world.shared)) * np.convolve(first, second)
    ends = np.cumsum(first), np.cumsum(second)
    # Between two of these values of the shared luck, the points of both games stay the same.
    own = ends[1] if world.shared > 0 else 1 - ends[1]
    steps = np.sort(np.clip(np.concatenate([[0.0, 1.0], ends[0], own]), 0.0, 1.0))
    for low, high in pairwise(steps.tolist()):
        luck = (low + high) / 2
        other_luck = luck if world.shared > 0 else 1 - luck
        points = int(np.searchsorted(ends[0], luck) + np.searchsorted(ends[1], other_luck))
        found[min(points, 4)] += abs(world.shared) * (high - low)
    return found


def half_points(random: np.random.Generator, world: World, elo: float, pairs: int) -> npt.NDArray[np.int64]:
    """Return half points (0, 1, 2) of one bot as first and as second player, (pairs, 2)."""
    first, second = chances(world, elo)
    luck, other_luck = random.random((2, pairs))
    is_shared = random.random(pairs) < abs(world.shared)
    other_luck = np.where(is_shared, luck if world.shared > 0 else 1 - luck, other_luck)
    sides = [
        (drawn > chance[0]).astype(np.int64) + (drawn > chance[0] + chance[1])
        for drawn, chance in ((luck, first), (other_luck, second))
    ]
    return np.stack(sides, axis=1)


def game(first: str, second: str, half: int, pair: str, line: str) -> GameSummary:
    """Return a game in which the first bot got ``half`` half points."""
    winner = {0: 1, 1: None, 2: 0}[half]
    return GameSummary(
        key=f"{pair} {first}",
        round=1,
        first=first,
        second=second,
        winner=winner,
        reason=Reason.SCORE,
        fault=None,
        detail="",
        score=None,
        moves=(1, 1),
        wall_us=(1, 1),
        charged_us=(1, 1),
        sandbox="none",
        pair=pair,
        fingerprint=line,
        line=line,
    )


def games_between(
    random: np.random.Generator, world: World, names: tuple[str, str], elo: float, pairs: int, name: str
) -> list[GameSummary]:
    """Return ``pairs`` pairs of different games between two bots; ``name`` makes their keys unique."""
    found = []
    for number, (forth, back) in enumerate(half_points(random, world, elo, pairs).tolist()):
        pair = f"{name} {number}"
        found.append(game(*names, forth, pair, f"{pair} a"))
        found.append(game(*names[::-1], 2 - back, pair, f"{pair} b"))
    return found
