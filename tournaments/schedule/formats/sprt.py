"""Sequential probability ratio test as a format: a match that ends when a hypothesis is accepted."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from math import ceil
from typing import ClassVar, Literal, NamedTuple

from tournaments.schedule.formats.rounds import to_be_played
from tournaments.schedule.formats.sprt_statistics import Hypotheses, PairEvidence
from tournaments.schedule.pairing import Entrant, History, Pairing, Result, Schedule, pair_of_games

BATCHES_OF_COPIES = 2
"""Batches in a row without a new pair after which the match ends: the bots only repeat themselves."""


Stopped = Literal["", "accepted", "repeated", "limit", "withdrawn"]
"""Reason why a match ended; empty while games of it are missing."""


class Verdict(NamedTuple):
    """The state of a test in numbers."""

    pairs: int
    """Number of pairs."""
    unique: int
    """Number of different pairs that count."""
    ratio: float
    """The log-likelihood ratio of H1 to H0."""
    lower: float
    """At or below it H0 is accepted."""
    upper: float
    """At or above it H1 is."""
    accepted: int | None
    """0 or 1, None if nothing is accepted."""
    stopped: Stopped


class _State(NamedTuple):
    """The progress of the match."""

    batches: int
    """Number of paired batches."""
    evidence: PairEvidence
    """Evidence of all finished batches."""
    stopped: Stopped


@dataclass(frozen=True)
class Sprt(Schedule):
    """A sequential probability ratio test (A. Wald, 1945) between two bots.

    H0: the first bot is ``elo0`` Elo stronger than the second; H1: it is ``elo1`` stronger.  Pairs of games
    are played in batches, each pair from the next opening; its number, from 1, is its round.  After a whole
    batch the test evaluates all pairs in their order, so that the order in which games end does not matter:
    the first pair after which the log-likelihood ratio is at or beyond a bound decides, later ones do not
    count.  Copies of pairs from one start are no evidence, see ``PairEvidence``; pairs with a void game are
    left out.

    It ends undecided after ``max_games``, when a bot withdraws, or when two batches in a row brought no pair
    that was not there before: the bots play the same games again.  (A batch with nothing but void pairs is
    left out of this count.)

    Raises ValueError for invalid parameters.
    """

    PAIRS_ROUNDS: ClassVar[bool] = False
    entrants: Sequence[Entrant]
    """Two of them."""
    seed: int = 0
    """Not used: nothing is drawn."""
    width: int = 1
    """Digits of a bot's number in keys."""
    elo0: float = 0.0
    elo1: float = 50.0
    alpha: float = 0.05
    """The probability of accepting H1 although H0 is true."""
    beta: float = 0.05
    """The probability of accepting H0 although H1 is true."""
    max_games: int = 2000
    batch: int = 16
    """Games of a batch; even."""
    openings: int = 0
    """Number of openings; 0 if every game begins at the game's own start."""

    def __post_init__(self) -> None:
        if len(self.entrants) != 2:
            raise ValueError(f"a sequential test is between 2 bots, not {len(self.entrants)}")
        if not self.elo0 < self.elo1:
            raise ValueError(f"elo0 = {self.elo0:g} must be below elo1 = {self.elo1:g}")
        if not (0 < self.alpha < 0.5 and 0 < self.beta < 0.5):
            raise ValueError(f"alpha = {self.alpha:g} and beta = {self.beta:g} must be between 0 and 0.5")
        if self.batch < 2 or self.batch % 2:
            raise ValueError(f"batch = {self.batch} must be even and at least 2: games come in pairs")
        if self.max_games < 2:
            raise ValueError(f"max_games = {self.max_games} must be at least 2: games come in pairs")
        if self.openings < 0:
            raise ValueError(f"openings = {self.openings} is negative")

    def pairings(self, history: History) -> list[Pairing]:
        """Return the games of the paired batches, including those that a withdrawal left unplayed."""
        return self._games(0, self._state(history).batches)

    def total(self, history: History) -> int:
        """Return the number of games for a progress bar: exact once nothing is due, a forecast before.

        The forecast takes the ratio to go on towards a bound as fast as it did so far, so that the share of
        games played is about the ratio's share of its way.  It is in whole batches, at least the paired ones,
        at most ``max_games``, and ``max_games`` as long as the ratio is 0.  It changes only after whole
        batches, and may rise as well as fall.
        """
        state = self._state(history)
        if state.stopped:
            return len(to_be_played(self._games(0, state.batches), history, self.entrants))
        evidence, most = state.evidence, 2 * self._most_pairs
        if not evidence.ratio:
            return most
        lower, upper = self._hypotheses.bounds
        pairs = evidence.pairs * (upper if evidence.ratio > 0 else lower) / evidence.ratio
        return min(most, max(ceil(pairs / self._batch_pairs), state.batches) * self.batch)

    def conclusion(self, history: History) -> str:
        """Return a sentence on the accepted hypothesis, or why there is none; on the state before the end.

        The bots are ``{0}`` and ``{1}``.
        """
        state = self._state(history)
        evidence = state.evidence
        lower, upper = self._hypotheses.bounds
        figures = f"LLR {evidence.ratio:z.2f}, bounds {lower:.2f} and {upper:.2f}"
        games = f"{2 * evidence.pairs} games"
        if evidence.accepted == 1:
            return (
                f"H1 accepted after {games}: {{0}} is taken to be {stronger_than(self.elo0, 'more')} (if the "
                f"difference were {self.elo0:g} Elo, about {100 * self.alpha:.3g} % of such tests would end "
                f"so; {figures})"
            )
        if evidence.accepted == 0:
            return (
                f"H0 accepted after {games}: {{0}} is taken to be {stronger_than(self.elo1, 'less')} (if the "
                f"difference were {self.elo1:g} Elo, about {100 * self.beta:.3g} % of such tests would end "
                f"so; {figures})"
            )
        if state.stopped:
            why = {
                "repeated": "{0} and {1} play the same games again; different pairs: "
                f"{evidence.unique} of {evidence.counted}",
                "limit": "no more games are allowed",
            }.get(state.stopped) or f"{self._withdrawn} withdrew"
            return f"undecided after {games}: {why} ({figures})"
        return f"not yet decided after {games} ({figures})" if evidence.pairs else ""

    def verdict(self, history: History) -> Verdict:
        """Return the state of the test in numbers."""
        state = self._state(history)
        evidence = state.evidence
        lower, upper = self._hypotheses.bounds
        return Verdict(
            evidence.pairs, evidence.unique, evidence.ratio, lower, upper, evidence.accepted, state.stopped
        )

    @property
    def _hypotheses(self) -> Hypotheses:
        return Hypotheses(self.elo0, self.elo1, self.alpha, self.beta)

    @property
    def _batch_pairs(self) -> int:
        return self.batch // 2

    @property
    def _most_pairs(self) -> int:
        return self.max_games // 2

    @property
    def _withdrawn(self) -> str:
        gone = [number for number, entrant in enumerate(self.entrants) if entrant.until is not None]
        return " and ".join(f"{{{number}}}" for number in gone)

    def _games(self, first: int, end: int) -> list[Pairing]:
        """Return the games of the batches from ``first`` to before ``end``."""
        pairs = range(first * self._batch_pairs, min(end * self._batch_pairs, self._most_pairs))
        return [game for pair in pairs for game in self._pair(pair)]

    def _pair(self, pair: int) -> tuple[Pairing, Pairing]:
        return pair_of_games(pair + 1, 0, 1, self.width, opening=pair)

    def _state(self, history: History) -> _State:
        """Return the progress: each batch follows from the results at its time; no ruling takes it back."""
        rulings = sorted({time for changes in history.earlier.values() for time, _ in changes})
        progress, known = _Progress(PairEvidence(self._hypotheses)), 0
        for given in count():
            begins = given * self._batch_pairs + 1
            results = history.at(begins)
            if bisect_left(rulings, begins) != known:  # rulings may have changed the evidence so far
                progress, known = _Progress(PairEvidence(self._hypotheses)), bisect_left(rulings, begins)
            while progress.batches < given and self._add_batch(progress, results):
                pass
            stopped = self._stopped(progress, given)
            if stopped is not None:
                return _State(given, progress.evidence, stopped)
        raise AssertionError("the count has no end")

    def _add_batch(self, progress: "_Progress", results: Mapping[str, Result]) -> bool:
        """Add the next batch; return False if a result of it is missing."""
        games = self._games(progress.batches, progress.batches + 1)
        if any(game.key not in results for game in games):
            return False
        unique, counted = progress.evidence.unique, progress.evidence.counted
        for there, back in zip(games[::2], games[1::2], strict=True):
            start = there.opening % self.openings if self.openings else 0
            progress.evidence.add(start, results[there.key], results[back.key])
        if progress.evidence.counted > counted:
            progress.copies = 0 if progress.evidence.unique > unique else progress.copies + 1
        progress.batches += 1
        return True

    def _stopped(self, progress: "_Progress", given: int) -> Stopped | None:
        """Return the reason why no batch follows the paired ones; None if one follows."""
        gone = self._withdrawn
        if progress.batches < given:
            return "withdrawn" if gone else ""
        if progress.evidence.accepted is not None:
            return "accepted"
        if progress.copies >= BATCHES_OF_COPIES:
            return "repeated"
        if given * self._batch_pairs >= self._most_pairs:
            return "limit"
        begins = given * self._batch_pairs + 1
        return None if all(entrant.plays(begins) for entrant in self.entrants) else "withdrawn"


@dataclass
class _Progress:
    """The evidence of the whole batches so far."""

    evidence: PairEvidence
    batches: int = 0
    copies: int = 0
    """Number of latest batches in a row without a new pair."""


def stronger_than(elo: float, than: Literal["more", "less"]) -> str:
    """Return words for: the first bot's strength minus the second's, {1}, is more, or less, than this."""
    if not elo:
        return f"{'stronger' if than == 'more' else 'weaker'} than {{1}}"
    if elo < 0:
        return f"{'less' if than == 'more' else 'more'} than {-elo:g} Elo weaker than {{1}}"
    return f"{than} than {elo:g} Elo stronger than {{1}}"
