"""Designs of simulated tournaments, and the coverage of their 95 % intervals."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations, product
from math import lgamma

import numpy as np

from benchmarks.coverage.worlds import World, game, games_between, half_points, pair_chances
from tournaments.analysis.comparison import compare
from tournaments.analysis.evidence import evidence_of
from tournaments.analysis.ratings.bradley_terry import GHOST_RESULTS_OF_ADAPTIVE
from tournaments.analysis.ratings.pentanomial import of_pairs
from tournaments.analysis.ratings.ratings import rate
from tournaments.results.game_summary import GameSummary
from tournaments.schedule.formats.sprt_statistics import bounds, log_likelihood_ratio
from tournaments.server.practice.matchmaking import Candidate, Tally, next_match
from tournaments.server.practice.practice_results import INTERVAL_WIDENING

SPREAD_ELO = 150.0
"""Standard deviation of the bots' strengths in a field."""
MATCH_ELO = (0.0, 50.0, 100.0, 200.0, 400.0, 600.0)
"""Differences between the bots of a match; the runs take turns."""
SPRT_ELO = (0.0, 25.0, 50.0, 100.0)
"""Differences in a sequential test of 0 against 50 Elo; the runs take turns."""
MOST_SPRT_PAIRS = 1000
LADDER_REFERENCES, LADDER_VERSIONS = 3, 3
"""Reference players of a practice ladder, and moments at which teams have new versions."""
EXACT_PAIRS = 10
"""Matches of at most so many pairs are not simulated: they have at most 1,001 results."""
WORLDS = tuple(
    World(draws, advantage, shared)
    for draws, advantage, shared in product((0.0, 0.1, 0.3), (0.0, 100.0, 300.0), (0.0, 0.5, -0.5))
)
FIELD_WORLDS = (
    World(),
    World(0.3, 100.0),
    World(0.1, 100.0, 0.5),
    World(0.1, 100.0, -0.5),
    World(0.0, 300.0),
)

Run = Callable[[np.random.Generator, int], tuple[int, int]]
"""(random generator, number of the run) -> (intervals that held the truth, all intervals)."""


@dataclass(frozen=True)
class Design:
    """A kind of tournament in one world."""

    kind: str
    size: str
    world: World
    run: Run

    def coverage(self, runs: int, seed: int = 0) -> float:
        """Return the share of intervals that hold the truth in so many simulated tournaments."""
        random = np.random.default_rng(seed)
        held = total = 0
        for number in range(runs):
            inside, of = self.run(random, number)
            held, total = held + inside, total + of
        return held / total


@dataclass(frozen=True)
class ShortMatch:
    """A match with few possible results: its coverage is computed, not simulated."""

    pairs: int
    world: World
    kind: str = "match"

    @property
    def size(self) -> str:
        return f"{2 * self.pairs} games"

    def coverage(self, runs: int = 0, seed: int = 0) -> float:
        """Return the chance that the interval holds the truth, with all differences equally likely."""
        results = [counts for counts in product(range(self.pairs + 1), repeat=5) if sum(counts) == self.pairs]
        found = [of_pairs(counts) for counts in results]
        logs = np.array(
            [lgamma(self.pairs + 1) - sum(lgamma(each + 1) for each in counts) for counts in results]
        )
        held = 0.0
        for elo in MATCH_ELO:
            with np.errstate(divide="ignore"):
                chance = np.log(pair_chances(self.world, elo))
            likely = np.exp(logs + np.array([_log_likelihood(counts, chance) for counts in results]))
            held += sum(
                share
                for share, match in zip(likely.tolist(), found, strict=True)
                if match.elo_low <= elo <= match.elo_high
            )
        return float(held / len(MATCH_ELO))


def _log_likelihood(counts: tuple[int, ...], log_chances: np.ndarray) -> float:
    return float(sum(count * log for count, log in zip(counts, log_chances.tolist(), strict=True) if count))


def match(world: World, pairs: int) -> Design | ShortMatch:
    """Return a match of two bots."""
    if pairs <= EXACT_PAIRS:
        return ShortMatch(pairs, world)

    def run(random: np.random.Generator, number: int) -> tuple[int, int]:
        elo = MATCH_ELO[number % len(MATCH_ELO)]
        points = half_points(random, world, elo, pairs).sum(axis=1)
        found = of_pairs(np.bincount(points, minlength=5).tolist())
        return int(found.elo_low <= elo <= found.elo_high), 1

    return Design("match", f"{2 * pairs} games", world, run)


def sequential_test(world: World) -> Design:
    """Return a match that a sequential test of 0 against 50 Elo ends."""
    lower, upper = bounds(0.05, 0.05)

    def run(random: np.random.Generator, number: int) -> tuple[int, int]:
        elo = SPRT_ELO[number % len(SPRT_ELO)]
        counts = [0.0] * 5
        for points in half_points(random, world, elo, MOST_SPRT_PAIRS).sum(axis=1).tolist():
            counts[points] += 1
            if not lower < log_likelihood_ratio(counts, 0.0, 50.0) < upper:
                break
        found = of_pairs(counts, was_stopped=True)
        return int(found.elo_low <= elo <= found.elo_high), 1

    return Design("sequential test", "0 against 50 Elo", world, run)


def _held(
    names: list[str], strengths: np.ndarray, games: list[GameSummary], anchor: int | None
) -> tuple[int, int]:
    found = rate(evidence_of(names, games), anchor)
    truth = strengths - (strengths.mean() if anchor is None else strengths[anchor])
    inside = (found.low <= truth) & (truth <= found.high)
    if anchor is not None:
        inside = np.delete(inside, anchor)
    return int(inside.sum()), len(inside)


def field(world: World, bots: int, rounds: int) -> Design:
    """Return a round robin; the runs take turns to fix the average rating and the first bot's rating."""
    names = [f"bot {number}" for number in range(bots)]

    def run(random: np.random.Generator, number: int) -> tuple[int, int]:
        strengths = random.normal(0.0, SPREAD_ELO, bots)
        games = []
        for one, other in combinations(range(bots), 2):
            elo = strengths[one] - strengths[other]
            games += games_between(random, world, (names[one], names[other]), elo, rounds, f"{one} {other}")
        return _held(names, strengths, games, None if number % 2 else 0)

    return Design("round robin", f"{bots} bots, {rounds} rounds", world, run)


def gauntlet(world: World, opponents: int, rounds: int) -> Design:
    """Return a gauntlet of one bot, the anchor, against all others."""
    names = [f"bot {number}" for number in range(opponents + 1)]

    def run(random: np.random.Generator, number: int) -> tuple[int, int]:
        strengths = random.normal(0.0, SPREAD_ELO, opponents + 1)
        games = []
        for other in range(1, opponents + 1):
            elo = strengths[0] - strengths[other]
            games += games_between(random, world, (names[0], names[other]), elo, rounds, str(other))
        return _held(names, strengths, games, 0)

    return Design("gauntlet", f"{opponents} opponents, {rounds} rounds", world, run)


def copies(world: World, bots: int, rounds: int, *, varied: bool) -> Design:
    """Return a round robin of bots without chance and without openings: every round is the same.

    With ``varied``, the first bot plays at random once its games are decided, so that its games all differ.
    """
    names = [f"bot {number}" for number in range(bots)]

    def run(random: np.random.Generator, number: int) -> tuple[int, int]:
        strengths = random.normal(0.0, SPREAD_ELO, bots)
        games: list[GameSummary] = []
        for one, other in combinations(range(bots), 2):
            elo = strengths[one] - strengths[other]
            [[forth, back]] = half_points(random, world, elo, 1).tolist()
            for turn in range(rounds):
                pair = f"r{turn} {one} {other}"
                both = (
                    game(names[one], names[other], forth, pair, f"{one} {other}"),
                    game(names[other], names[one], 2 - back, pair, f"{other} {one}"),
                )
                if varied and one == 0:
                    both = (both[0]._replace(fingerprint=pair), both[1]._replace(fingerprint=pair))
                games += both
        return _held(names, strengths, games, None)

    kind = "copies, one bot varied" if varied else "copies"
    return Design(kind, f"{bots} bots, {rounds} rounds", world, run)


def compared(world: World, rounds: int) -> Design:
    """Return a comparison (``kalarena tournament compare``) of two bots of a field of five."""
    names = [f"bot {number}" for number in range(5)]

    def run(random: np.random.Generator, number: int) -> tuple[int, int]:
        strengths = random.normal(0.0, SPREAD_ELO, 5)
        games = []
        for one, other in combinations(range(5), 2):
            elo = strengths[one] - strengths[other]
            games += games_between(random, world, (names[one], names[other]), elo, rounds, f"{one} {other}")
        found = compare(names, games, names[0], names[1])
        assert found.difference is not None
        truth = strengths[0] - strengths[1]
        alone = found.match.elo_low <= truth <= found.match.elo_high
        return int(alone) + int(found.difference.low <= truth <= found.difference.high), 2

    return Design("compare", f"two of 5 bots, {rounds} rounds", world, run)


def practice_ladder(world: World, teams: int, pairs: int, spread_elo: float) -> Design:
    """Return a practice ladder, on which matchmaking chooses the pairings from the results so far.

    Each team begins with a version, and replaces it with chance 1/2 at each of two later moments.  Between
    them every bot plays ``pairs`` pairs.  All versions are rated together.
    """

    def run(random: np.random.Generator, number: int) -> tuple[int, int]:
        strengths = {f"reference {one}": random.normal(0.0, spread_elo) for one in range(LADDER_REFERENCES)}
        own = random.normal(0.0, spread_elo, teams)
        current: dict[int, str] = {}
        tally, games = Tally(), list[GameSummary]()
        for version in range(LADDER_VERSIONS):
            for team in range(teams):
                if version == 0 or random.random() < 0.5:
                    own[team] += random.normal(0.1 * spread_elo, 0.3 * spread_elo)
                    current[team] = f"team {team} v{version}"
                    strengths[current[team]] = own[team]
            names = [*list(strengths)[:LADDER_REFERENCES], *current.values()]
            candidates = [Candidate(name, takes_openings=True) for name in names]
            for _ in range(len(candidates) * pairs // 2):
                match = next_match(candidates, tally)
                if match is None or match.is_leisure:
                    break
                both = (match.first, match.second)
                elo = strengths[match.first] - strengths[match.second]
                played = games_between(random, world, both, elo, 1, f"pair {len(games)}")
                for one in played:
                    tally.add(one.first, one.second, one.winner)
                games += played
        found = rate(
            evidence_of(list(strengths), games),
            ghosts=GHOST_RESULTS_OF_ADAPTIVE,
            widening=INTERVAL_WIDENING,
        )
        truth = np.array(list(strengths.values()))
        truth -= truth.mean()
        inside = (found.low <= truth) & (truth <= found.high)
        return int(inside.sum()), len(inside)

    size = f"{teams} teams, {pairs} pairs, {spread_elo:g} Elo"
    return Design("practice ladder", size, world, run)


def designs() -> Iterator[Design | ShortMatch]:
    """Yield all designs, the quick ones first."""
    for pairs in (2, 5, 10, 25, 50, 100):
        yield from (match(world, pairs) for world in WORLDS)
    yield from (sequential_test(world) for world in FIELD_WORLDS)
    for world in FIELD_WORLDS:
        yield compared(world, 10)
        yield gauntlet(world, 6, 10)
        for bots, rounds in ((2, 10), (5, 5), (5, 25), (10, 3), (10, 10)):
            yield field(world, bots, rounds)
    for teams, pairs in ((10, 5), (20, 5), (20, 15)):
        for spread_elo in (SPREAD_ELO, 50.0, 0.0):
            yield practice_ladder(World(0.1, 100.0), teams, pairs, spread_elo)
    for varied in (False, True):
        yield copies(World(), 6, 10, varied=varied)
        yield copies(World(0.1, 100.0, -0.5), 12, 10, varied=varied)
