"""Whether 95% intervals hold the truth in 95% of simulated tournaments.

``python -m tests.test_ratings_coverage`` prints the table of docs/statistics.md (a few minutes), from 2,000
tournaments for each number.  The test makes do with fewer: their mean is uncertain by half a percent, and
intervals that are too narrow or too wide by a tenth are off by twice that.
"""

from dataclasses import dataclass

import numpy as np
import pytest

from tournaments.evidence import Evidence
from tournaments.ratings.bradley_terry import Array
from tournaments.ratings.ratings import ELO, rate

RUNS = 700
"""Of the test."""
TABLE_RUNS = 2000
SPREAD_ELO = 150.0
"""Standard deviation of the bots' strengths, drawn anew for each run."""
BOTS = (2, 5, 10)
GAMES = (10, 100, 1000)


@dataclass(frozen=True)
class World:
    """How games come about."""

    draws: float
    """Share of draws between equal bots."""
    advantage: float
    """Of moving first, in Elo."""
    bound: float
    """Share of pairs whose two games hang on the same luck."""
    favours: str = "first"
    """Whether that luck is the first mover's or one bot's; each game alone has the model's probabilities."""


WORLDS = {
    "no draws, independent": World(0.0, 0.0, 0.0),
    "draws and advantage": World(0.3, 50.0, 0.0),
    "openings favour first": World(0.1, 50.0, 0.6),
    "openings favour a bot": World(0.1, 50.0, 0.6, "bot"),
}


def points_of(luck: Array, lead: Array, nu: float) -> Array:
    """Of the first player, for leads in strength and luck from 0 (best) to 1."""
    win, loss = np.exp(lead / 2), np.exp(-lead / 2)
    total = win + loss + nu
    points: Array = np.where(luck < win / total, 1.0, np.where(luck < (win + nu) / total, 0.5, 0.0))
    return points


def tournament(random: np.random.Generator, bots: int, games: int, world: World) -> tuple[Array, Evidence]:
    """True strengths in Elo, and the evidence of a round robin in pairs that ends after so many games."""
    strengths = random.normal(0.0, SPREAD_ELO, bots) / ELO
    upper = np.triu_indices(bots, 1)
    turn = np.arange(games // 2) % len(upper[0])
    shuffled = random.permutation(bots)
    one, other = shuffled[upper[0][turn]], shuffled[upper[1][turn]]
    luck, back_luck = random.random(len(turn)), random.random(len(turn))
    shared = luck if world.favours == "first" else 1 - luck
    back_luck = np.where(random.random(len(turn)) < world.bound, shared, back_luck)
    nu = 2 * world.draws / (1 - world.draws)
    lead = strengths[one] - strengths[other]
    push = world.advantage / ELO
    first, second = np.concatenate([one, other]), np.concatenate([other, one])
    played = np.bincount(np.concatenate([first, second]), minlength=bots)
    evidence = Evidence(
        names=tuple(f"bot {number}" for number in range(bots)),
        first=first,
        second=second,
        points=np.concatenate([points_of(luck, lead + push, nu), points_of(back_luck, push - lead, nu)]),
        weight=np.ones(len(first)),
        cluster=np.tile(np.arange(len(turn)), 2),
        cluster_weight=np.ones(len(turn)),
        played=played,
        unique=played,
    )
    return ELO * strengths, evidence


def share_covered(strengths: Array, evidence: Evidence, anchor: int | None) -> float:
    """Which share of the bots has its true rating inside its interval."""
    ratings = rate(evidence, anchor)
    known = evidence.unique > 0
    truth = strengths - (strengths[known].mean() if anchor is None else strengths[anchor])
    inside = (ratings.low <= truth) & (truth <= ratings.high)
    return float(inside.mean() if anchor is None else np.delete(inside, anchor).mean())


def coverage(world: World, games: int, bots: tuple[int, ...], runs: int, anchors: bool | None) -> float:
    """The mean over runs; ``anchors`` of None takes turns."""
    random = np.random.default_rng([games, *bots])
    total = 0.0
    for run in range(runs):
        strengths, evidence = tournament(random, bots[run % len(bots)], games, world)
        anchored = anchors if anchors is not None else run % 2 == 1
        total += share_covered(strengths, evidence, 0 if anchored else None)
    return total / runs


@pytest.mark.slow
@pytest.mark.parametrize("games", GAMES)
@pytest.mark.parametrize("name", WORLDS)
def test_intervals_hold_the_truth(name: str, games: int) -> None:
    found = coverage(WORLDS[name], games, BOTS, RUNS, None)
    assert found >= 0.935
    # With ten games, intervals may be wider than they need to be.
    assert found <= (0.965 if games > 10 else 1.0)


def table() -> None:
    for name, world in WORLDS.items():
        for bots in BOTS:
            # Of two bots, both scales say the same.
            for anchors in (False, True) if bots > 2 else (False,):
                shares = [coverage(world, games, (bots,), TABLE_RUNS, anchors) for games in GAMES]
                cells = [f"{100 * share:.1f}" for share in shares]
                who = "one is the anchor" if anchors else "average is 0"
                print("|", name, "|", bots, "|", who, "|", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    table()
