"""Ratings on the scale of expected scores, the definition of Elo.

In the Bradley-Terry model with draws and an advantage of the first move (bradley_terry.py), a difference in
strength determines the expected score only if draws and advantage are known: 100 would mean 64 % in one
tournament and 57 % in another one.  Here strengths s and t mean that the expected score, averaged over both
sides, is 1 / (1 + exp(t - s)) (Elo 1978), whatever the share of draws and the order of play.

The chances of a single game are those of that model for the lead d in strength that gives this expected
score.  Advantage and draws are those that fit the games best in it.
"""

from typing import NamedTuple

import numpy as np

from tournaments.analysis.ratings.bradley_terry import (
    Array,
    BradleyTerry,
    Peak,
    PenalisedLikelihood,
    add_ghosts,
    climb,
)

WIDEST = 200.0
"""Differences in strength beyond this (35,000 Elo) are taken for as much: their chances are the same."""
LEAD_STEPS = 60
"""Newton steps for a lead; four to eight are normal.  A step out of the known bounds halves them instead."""
LEAD_EXACT = 1e-13
"""Shorter steps end the search."""


class ScoreScale(PenalisedLikelihood):
    """The penalised log-likelihood of strengths on the scale of expected scores.

    A point is an array of strengths, (players,).

    Args:
        model: The model that advantage and draws are taken from; its results and its imaginary ones.
        peak: Its most likely point.
    """

    advantage: int | None = None
    """Not among the parameters."""
    log_nu: int | None = None
    """Not among the parameters."""

    def __init__(self, model: BradleyTerry, peak: Array) -> None:
        super().__init__(model.results, model.ghosts)
        self.parameters = model.results.players
        self._push = 0.0 if model.advantage is None else float(peak[model.advantage])
        self._nu = model.nu(peak)
        pairings = np.triu_indices(self.parameters)
        self._pairings = pairings
        """Both players of each pairing, i <= j; the leads of j against i are opposite."""
        self._pairing_of = np.empty((self.parameters, self.parameters), dtype=np.intp)
        self._pairing_of[pairings] = self._pairing_of[pairings[::-1]] = np.arange(len(pairings[0]))
        self._sign = np.where(np.tri(self.parameters, k=-1, dtype=bool), -1.0, 1.0)
        strengths = peak[: self.parameters]
        won, lost, _ = _scores(strengths, self._push, self._nu)
        self._start: Array = np.log(won / lost)

    def peak(self) -> Array:
        """Return the most likely strengths.  Raises ValueError as ``BradleyTerry.peak`` does."""
        return climb(self, self._start)

    def residuals(self, point: Array) -> tuple[Array, Array]:
        """Return slopes of the log-likelihood of one game, for each result, at one point.

        The first are by the difference in strength, (3, players, players) for a loss, a draw and a win of the
        first player.  The second are zeros, since draws have no parameter here.
        """
        chances = self._chances(point[None])
        slope = np.array([-0.5, 0.0, 0.5])[:, None, None] - chances.balance[0] / 2
        return slope * chances.rise[0], np.zeros_like(slope)

    def _chances(self, points: Array) -> "_Chances":
        one, other = self._pairings
        lead, rise, bend = (
            np.take(of_pairings, self._pairing_of, axis=1)
            for of_pairings in leads(points[:, one] - points[:, other], self._push, self._nu)
        )
        lead, bend = lead * self._sign, bend * self._sign
        ahead = lead + self._push
        half = np.abs(ahead) / 2
        fall = np.exp(-half)
        drawn = fall * self._nu
        total = 1 + fall * fall + drawn
        balance = np.sign(ahead) * (1 - fall * fall) / total
        return _Chances(ahead, half + np.log(total), balance, drawn / total, rise, bend)

    def _evaluate(self, points: Array, ghosts: float | None) -> Peak:
        """Return the log-likelihood with the penalty of ``ghosts``; None for no penalty and no fixed sum."""
        games, chances = self._games, self._chances(points)
        by_lead = self._balance - games * chances.balance / 2
        rises = by_lead * chances.rise
        expected = games * (1 - chances.drawn - chances.balance**2) / 4 * chances.rise**2
        slope = rises.sum(axis=2) - rises.sum(axis=1)
        height = (chances.ahead * self._balance - chances.log_total * games).sum(axis=(1, 2))
        peak = Peak(height, slope, _curvature(expected - by_lead * chances.bend))
        if ghosts is None:
            return peak._replace(curvature=_curvature(expected))
        add_ghosts(points, self.parameters, ghosts, peak)
        # Far from the peak the observed curvature leads Newton's method astray; the expected one does not.
        is_hill = np.linalg.eigvalsh(peak.curvature)[:, 0] > 0
        if not is_hill.all():
            other = Peak(np.zeros_like(height), np.zeros_like(slope), _curvature(expected))
            add_ghosts(points, self.parameters, ghosts, other)
            peak.curvature[~is_hill] = other.curvature[~is_hill]
        return peak


class _Chances(NamedTuple):
    """Games that i begins against j, each (points, players, players)."""

    ahead: Array
    """The lead with the advantage."""
    log_total: Array
    """log(Z)."""
    balance: Array
    """P(first wins) - P(second wins)."""
    drawn: Array
    """P(draw)."""
    rise: Array
    """Derivative of the lead by the difference in strength."""
    bend: Array
    """Second derivative."""


def _curvature(bends: Array) -> Array:
    """Return the curvature in strengths from that in the lead of each pairing, (points, players, players)."""
    mixed = bends + bends.transpose(0, 2, 1)
    own = np.arange(bends.shape[1])
    curvature = -mixed
    curvature[:, own, own] += mixed.sum(axis=2)
    return curvature


def leads(difference: Array, push: float, nu: float) -> tuple[Array, Array, Array]:
    """Return the leads that give the expected scores of differences in strength.

    With S(u) = P(win) + P(draw) / 2 at a lead of u with the advantage, and F(d) = (S(d + a) + S(d - a)) / 2,
    a lead solves log(F / (1 - F)) = difference.

    Returns:
        The leads, and their first and second derivatives by the difference.
    """
    if not push and not nu:
        return difference, np.ones_like(difference), np.zeros_like(difference)
    wanted = np.minimum(np.abs(difference), WIDEST)
    odds = np.exp(wanted)
    # Without advantage, x = exp(d/2) solves x^2 - c (odds - 1) x - odds = 0 with c = nu / 2.  Both games of a
    # pair are at least as good as that for a lead that is greater by the advantage.
    bend = nu / 2 * (odds - 1)
    lead = 2 * np.log((bend + np.sqrt(bend * bend + 4 * odds)) / 2)
    low, high = np.zeros_like(lead), lead + abs(push)
    for _ in range(LEAD_STEPS if push else 1):
        won, lost, rise = _scores(lead, push, nu)
        missing = wanted - np.log(won / lost)
        low, high = np.where(missing > 0, lead, low), np.where(missing > 0, high, lead)
        nearer = lead + missing * won * lost / rise
        nearer = np.where((low <= nearer) & (nearer <= high), nearer, (low + high) / 2)
        change = np.abs(nearer - lead)
        lead = nearer
        if float(change.max(initial=0.0)) < LEAD_EXACT:
            break
    won, lost, rise = _scores(lead, push, nu)
    bend = _bends(lead, push, nu)
    by_difference = won * lost / rise
    # In this order: the square of a small rise would vanish.
    by_lead = (lost - won) - (won / rise) * bend * (lost / rise)
    return np.sign(difference) * lead, by_difference, np.sign(difference) * by_lead * by_difference


def _scores(lead: Array, push: float, nu: float) -> tuple[Array, Array, Array]:
    """Return the expected scores over both sides, 1 - expected scores, and the derivatives by the leads."""
    won, lost, rise = np.zeros((3, *lead.shape))
    for ahead in (lead + push, lead - push):
        fall = np.exp(-np.abs(ahead) / 2)
        drawn = fall * nu
        square = fall * fall
        total = 1 + square + drawn
        better, worse = (1 + drawn / 2) / total, (square + drawn / 2) / total
        is_ahead = ahead >= 0
        won += np.where(is_ahead, better, worse) / 2
        lost += np.where(is_ahead, worse, better) / 2
        rise += _steep(fall, drawn) / (8 * total * total)
    return won, lost, rise


def _steep(fall: Array, drawn: Array) -> Array:
    """Return (1 - P(draw) - (P(win) - P(loss))^2) Z^2 exp(-|u|), without differences of near equals.

    ``fall`` is exp(-|u| / 2) and ``drawn`` is nu times that, at a lead of u with the advantage.
    """
    square = fall * fall
    steep: Array = 4 * square + drawn * (1 + square)
    return steep


def _bends(lead: Array, push: float, nu: float) -> Array:
    """Return the second derivatives of the expected scores over both sides by leads."""
    bend = np.zeros(lead.shape)
    for ahead in (lead + push, lead - push):
        fall = np.exp(-np.abs(ahead) / 2)
        drawn = fall * nu
        total = 1 + fall * fall + drawn
        steep = _steep(fall, drawn)
        by_fall = ((8 * fall + nu + 3 * drawn * fall) * total - 2 * steep * (2 * fall + nu)) / (8 * total**3)
        bend += np.where(ahead >= 0, -fall / 2, fall / 2) * by_fall
    return bend
