"""Bradley-Terry model with draws and an advantage of the first move: its likelihood and its peak.

Two players with strengths s and t, the first to move with advantage a: with d = s - t + a,

    P(first wins) = exp(d/2) / Z,  P(second wins) = exp(-d/2) / Z,  P(draw) = nu / Z,
    Z = exp(d/2) + exp(-d/2) + nu.

Sources: Bradley and Terry 1952; draws: Davidson 1970, "On extending the Bradley-Terry model to accommodate
ties in paired comparison experiments"; the order of play: Davidson and Beaver 1977.  In strengths, advantage
and log(nu) the log-likelihood is concave, so Newton's method finds its one peak.  All strengths here are
natural logarithms of odds.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

GHOST_RESULTS = 0.5
"""Imaginary wins, and as many imaginary losses, of every player against an average one.  They keep every
strength finite.  With two players the prior falls off as Jeffreys' prior for a share does, whose
intervals are known to cover well (Brown, Cai and DasGupta 2001); PlackettLuce for R has the same default."""

GHOST_RESULTS_OF_ADAPTIVE = 1.0
"""The same where pairings depend on results (a Swiss): winners meet winners there, so that luck adds up.
Twice the imaginary results make up for a part of that."""

LONGEST_STEP = 3.0
"""Newton's steps are cut to this length in any one direction (520 Elo), where the curve is far from a
parabola."""

STEPS = 100
"""Newton steps; a dozen is normal.  An unpenalised fit whose peak is at infinity runs out of them."""

NEARLY = 1e-6
"""A last step shorter than this is near enough, too: a five-thousandth of one Elo."""

LEAST_CURVATURE = 1e-12
"""Stands for a curvature of zero, where the chances of all games are 0 or 1 to the last digit."""

EXACT = 1e-10
"""Steps shorter than this end the search: a fifty-millionth of one Elo."""


@dataclass(frozen=True)
class Results:
    """All games as sums, on which alone the likelihood depends; entry [i, j] is of games that i began."""

    wins: Array
    """Games that the first won, weighted; (players, players)."""
    draws: Array
    losses: Array
    """Games that the second won."""

    @property
    def games(self) -> Array:
        """Weighted number of games."""
        total: Array = self.wins + self.draws + self.losses
        return total

    @property
    def players(self) -> int:
        """Number of players, with and without games."""
        return len(self.wins)


class Peak(NamedTuple):
    """Values, slopes and curvature of the penalised log-likelihood, for several points at once."""

    height: Array
    """(points,)"""
    slope: Array
    """(points, parameters)"""
    curvature: Array
    """Negative second derivatives, positive definite; (points, parameters, parameters)."""


class PenalisedLikelihood(ABC):
    """A log-likelihood of results with a penalty; a subclass evaluates it in parameters of its own."""

    def __init__(self, results: Results, ghosts: float) -> None:
        self.results = results
        self.ghosts = ghosts
        self._games = results.games
        self._balance = (results.wins - results.losses) / 2

    def at(self, points: Array) -> Peak:
        """Return the log-likelihood with its penalty around points, (points, parameters)."""
        return self._evaluate(points, self.ghosts)

    def information(self, point: Array) -> Array:
        """Return the curvature at one point from the games alone, (parameters, parameters)."""
        curvature: Array = self._evaluate(point[None], None).curvature[0]
        return curvature

    @abstractmethod
    def _evaluate(self, points: Array, ghosts: float | None) -> Peak:
        """Return the log-likelihood with the penalty of ``ghosts``; None for no penalty and no fixed sum."""


class BradleyTerry(PenalisedLikelihood):
    """The penalised log-likelihood of results.

    A point is an array of parameters: the strengths, then the advantage if it is identifiable,
    then log(nu) if there were draws.  ``ghosts`` of 0 is plain maximum likelihood, with strengths that sum to
    0.
    """

    def __init__(self, results: Results, ghosts: float = GHOST_RESULTS, *, advantage: bool = True) -> None:
        super().__init__(results, ghosts)
        players = results.players
        self._drawn = float(results.draws.sum())
        self.advantage = players if advantage and _is_identifiable(self._games) else None
        """Index of the advantage among the parameters."""
        self.log_nu = players + (self.advantage is not None) if self._drawn else None
        """Index of log(nu)."""
        self.parameters = players + (self.advantage is not None) + (self.log_nu is not None)

    def start(self) -> Array:
        """Return the starting point of the search: equal strengths and the observed share of draws."""
        point = np.zeros(self.parameters)
        if self.log_nu is not None:
            decided = float(self._games.sum()) - self._drawn + 2 * self.ghosts
            point[self.log_nu] = np.log(2 * self._drawn / max(decided, 0.01 * self._drawn))
        return point

    def residuals(self, point: Array) -> tuple[Array, Array]:
        """Return the slopes of the log-likelihood of one game, for each result, at one point.

        The first are by the difference in strength, the second by log(nu); each is (3, players, players) for
        a loss, a draw and a win of the first player.
        """
        _, lead, drawn = self._shares(point[None])
        by_lead = np.array([-0.5, 0.0, 0.5])[:, None, None] - lead[0] / 2
        by_nu = np.array([0.0, 1.0, 0.0])[:, None, None] - drawn[0]
        return by_lead, by_nu

    def peak(self) -> Array:
        """Return the most likely point.  Raises ValueError as ``climb`` does."""
        return climb(self, self.start())

    def first_share(self, advantage: float, point: Array) -> float:
        """Return the expected score of the first of two equal players with this advantage."""
        win, loss, nu = np.exp(advantage / 2), np.exp(-advantage / 2), self.nu(point)
        return float((win + nu / 2) / (win + loss + nu))

    def nu(self, point: Array) -> float:
        """Return the draw parameter."""
        return 0.0 if self.log_nu is None else float(np.exp(point[self.log_nu]))

    def _shares(self, points: Array) -> tuple[Array, Array, Array]:
        """Return log(Z), P(win) - P(loss) and P(draw) of a game that i begins against j.

        Each has the shape (points, players, players).
        """
        players = self.results.players
        strengths = points[:, :players]
        difference = strengths[:, :, None] - strengths[:, None, :]
        if self.advantage is not None:
            difference = difference + points[:, self.advantage, None, None]
        half = np.abs(difference) / 2
        fall = np.exp(-half)
        drawn = fall * np.exp(points[:, self.log_nu, None, None]) if self.log_nu is not None else 0.0 * fall
        total = 1 + fall * fall + drawn
        return half + np.log(total), np.sign(difference) * (1 - fall * fall) / total, drawn / total

    def _evaluate(self, points: Array, ghosts: float | None) -> Peak:
        """Return the log-likelihood with the penalty of ``ghosts``; None for no penalty and no fixed sum."""
        players = self.results.players
        games, balance = self._games, self._balance
        log_total, lead, drawn = self._shares(points)
        strengths = points[:, :players]
        slopes = balance - games * lead / 2
        bends = games * (1 - drawn - lead * lead) / 4
        begun, answered = slopes.sum(axis=2), slopes.sum(axis=1)
        slope = np.zeros((len(points), self.parameters))
        curvature = np.zeros((len(points), self.parameters, self.parameters))
        slope[:, :players] = begun - answered
        mixed = bends + bends.transpose(0, 2, 1)
        own = np.arange(players)
        curvature[:, :players, :players] = -mixed
        curvature[:, own, own] += mixed.sum(axis=2)
        height = strengths @ (balance.sum(axis=1) - balance.sum(axis=0))
        height = height - log_total.reshape(len(points), -1) @ games.ravel()
        if self.advantage is not None:
            slope[:, self.advantage] = begun.sum(axis=1)
            pull = bends.sum(axis=2) - bends.sum(axis=1)
            curvature[:, :players, self.advantage] = pull
            curvature[:, self.advantage, :players] = pull
            curvature[:, self.advantage, self.advantage] = bends.sum(axis=(1, 2))
            height = height + points[:, self.advantage] * balance.sum()
        if self.log_nu is not None:
            expected = games * drawn
            slope[:, self.log_nu] = self._drawn - expected.sum(axis=(1, 2))
            twist = -expected * lead / 2
            pull = twist.sum(axis=2) - twist.sum(axis=1)
            curvature[:, :players, self.log_nu] = pull
            curvature[:, self.log_nu, :players] = pull
            if self.advantage is not None:
                curvature[:, self.advantage, self.log_nu] = twist.sum(axis=(1, 2))
                curvature[:, self.log_nu, self.advantage] = twist.sum(axis=(1, 2))
            curvature[:, self.log_nu, self.log_nu] = (expected * (1 - drawn)).sum(axis=(1, 2))
            height = height + points[:, self.log_nu] * self._drawn
        peak = Peak(height, slope, curvature)
        if ghosts is not None:
            add_ghosts(points, players, ghosts, peak)
        if ghosts and (self.advantage is not None or self.log_nu is not None):
            self._add_equal_ghosts(points, ghosts, peak)
        return peak

    def _add_equal_ghosts(self, points: Array, ghosts: float, peak: Peak) -> None:
        """Add imaginary results between two equal players, half won and half lost by the one that began.

        They keep advantage and draws finite.
        """
        height, slope, curvature = peak
        nobody = np.zeros(len(points))
        push = points[:, self.advantage] if self.advantage is not None else nobody
        fall = np.exp(-np.abs(push) / 2)
        draw = fall * np.exp(points[:, self.log_nu]) if self.log_nu is not None else nobody
        total = 1 + fall * fall + draw
        tilt, drawn = np.sign(push) * (1 - fall * fall) / total, draw / total
        weight = 2 * ghosts
        height -= weight * (np.abs(push) / 2 + np.log(total))
        if self.advantage is not None:
            slope[:, self.advantage] -= weight * tilt / 2
            curvature[:, self.advantage, self.advantage] += weight * (1 - drawn - tilt * tilt) / 4
        if self.log_nu is not None:
            slope[:, self.log_nu] -= weight * drawn
            curvature[:, self.log_nu, self.log_nu] += weight * drawn * (1 - drawn)
        if self.advantage is not None and self.log_nu is not None:
            curvature[:, self.advantage, self.log_nu] -= weight * drawn * tilt / 2
            curvature[:, self.log_nu, self.advantage] -= weight * drawn * tilt / 2


def solve(curvature: Array, sides: Array) -> Array:
    """Solve linear equations, also where games give no information on a direction."""
    try:
        return np.asarray(np.linalg.solve(curvature, sides), dtype=np.float64)
    except np.linalg.LinAlgError:
        tiny = LEAST_CURVATURE * max(1.0, float(np.abs(curvature).max()))
        curvature = curvature + tiny * np.eye(curvature.shape[-1])
        return np.asarray(np.linalg.solve(curvature, sides), dtype=np.float64)


class Likelihood(Protocol):
    """A penalised log-likelihood of parameters, the first of which are strengths."""

    parameters: int
    results: Results
    ghosts: float
    """Imaginary results of each player."""
    advantage: int | None
    """Index of the advantage among the parameters; None if it is not a parameter."""
    log_nu: int | None
    """Index of log(nu); None if it is not a parameter."""

    def at(self, points: Array) -> Peak:
        """Return the log-likelihood with its penalty around points, (points, parameters)."""
        ...

    def information(self, point: Array) -> Array:
        """Return the curvature at one point from the games alone, (parameters, parameters)."""
        ...

    def residuals(self, point: Array) -> tuple[Array, Array]:
        """Return the slopes of one game's log-likelihood by the difference in strength and by log(nu)."""
        ...


def climb(model: Likelihood, start: Array) -> Array:
    """Return the most likely point, by Newton's method from a start.

    Raises ValueError if there is none, which happens without ghosts only: when a group of players has won
    all, or none, of its games against the others.
    """
    point = start
    before = model.at(point[None])
    for _ in range(STEPS):
        try:
            step = np.linalg.solve(before.curvature[0], before.slope[0])
        except np.linalg.LinAlgError:
            if not model.ghosts:  # strengths run away
                break
            step = solve(before.curvature[0], before.slope[0])
        length = float(np.abs(step).max(initial=0.0))
        # With millions of games, rounding of slopes keeps steps from getting any shorter than this.
        gain = float(step @ before.slope[0])
        arrived = length < EXACT or (length < 1e5 * EXACT and gain < 1e-13 * abs(before.height[0]))
        step *= min(1.0, LONGEST_STEP / max(length, EXACT))
        after = model.at((point + step)[None])
        while after.height[0] < before.height[0] - 1e-9 * (1 + abs(before.height[0])):
            step /= 2
            after = model.at((point + step)[None])
        point = point + step
        before = after
        if arrived:
            return point
    else:
        if length < NEARLY:
            return point
    raise ValueError("the likelihood has no peak: some players won, or lost, all games against the others")


def add_ghosts(points: Array, players: int, ghosts: float, peak: Peak) -> None:
    """Add imaginary results of each player against an average one.

    Without ghosts, only differences of strengths matter; their sum is then held at 0, which changes none.
    """
    height, slope, curvature = peak
    strengths = points[:, :players]
    if not ghosts:
        total = strengths.sum(axis=1)
        height -= total * total / 2
        slope[:, :players] -= total[:, None]
        curvature[:, :players, :players] += 1.0
        return
    lead = np.tanh(strengths / 2)
    own = np.arange(players)
    height -= 2 * ghosts * np.logaddexp(strengths / 2, -strengths / 2).sum(axis=1)
    slope[:, :players] -= ghosts * lead
    curvature[:, own, own] += ghosts * (1 - lead * lead) / 2


def _is_identifiable(games: Array) -> bool:
    """Return whether an advantage of the first move can be distinguished from strengths.

    It cannot if strengths exist in which every game's first player is stronger by exactly one.
    """
    first, second = np.nonzero(games)
    if not len(first):
        return False
    if (games * games.T).any():
        return True
    rows = np.zeros((len(first), len(games)))
    rows[np.arange(len(first)), first] = 1.0
    rows[np.arange(len(first)), second] = -1.0
    ladder = np.linalg.lstsq(rows, np.ones(len(first)), rcond=None)[0]
    return bool(np.abs(rows @ ladder - 1).max() > 1e-6)
