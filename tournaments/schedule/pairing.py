"""Interface between tournament formats and the runner: pairings, results and schedules.

A format is a pure function of the results so far.  It is called again whenever games have ended, so that a
tournament that was killed continues as if nothing had happened.  It has these guarantees:

- a pairing's key never changes, and a game that is due stays due until it has a result;
- in formats that pair round by round, a round is paired from the results of the rounds before it alone, all
  of which must exist; the order in which games end does not matter;
- later rulings (a void game, a game to be replayed, a bot that withdraws or joins) change the rounds that
  were not yet paired at that time, and never those that were: see ``History.at``;
- the organiser fixes and forbids pairings only in rounds of which no game has a result yet.
"""

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import ClassVar, NamedTuple, Protocol, runtime_checkable

NOBODY = -1
"""The opponent of a bot that has a bye."""


@dataclass(frozen=True, slots=True)
class Pairing:
    """One game to be played."""

    key: str
    """Unique key within the tournament, which never changes."""
    round: int
    """Number of the round, counted from 1."""
    first: int
    """Number of the bot that moves first: its index among the entrants."""
    second: int
    pair: str = ""
    """Common name of this game and its return game, which has the same start and exchanged sides."""
    opening: int = 0
    """Number of the opening, counted from 0; taken modulo the number of openings."""


class Result(NamedTuple):
    """Result of a game for a format."""

    winner: int | None
    """Index of the winner: 0 is the bot that moved first, 1 the other, None a draw."""
    margin: int = 0
    """Score of the first minus that of the second; 0 if the game was not played to its end."""
    line: str = ""
    """Digest equal for games that count once (tournaments/results/game_summary.py); empty if not known."""
    counts: bool = True
    """False for a game that was ruled void: it counts for neither bot, and is not replayed."""


class MatchScore(NamedTuple):
    """The match points of a match, which is all games of two bots in a round, or of a bye."""

    first: int
    second: int
    """NOBODY in a bye."""
    points: tuple[int, int]
    is_played: bool
    """False for a bye, and for a match of which no game counts."""


@dataclass(frozen=True, slots=True)
class Entrant:
    """Rounds of a bot's participation.

    Its number is its index among the entrants; numbers are never reused.
    """

    since: int = 1
    """First round in which it may be paired."""
    until: int | None = None
    """Last round in which it was paired before it withdrew.

    Its remaining games of that round are not played.
    """
    replaces: int | None = None
    """Number of the bot that it replaces as a newer version."""

    def plays(self, round_number: int) -> bool:
        """Return whether it may be paired in a round."""
        return self.since <= round_number and (self.until is None or round_number <= self.until)


@dataclass(frozen=True, slots=True)
class ForbiddenPairing:
    """Two bots that the organiser forbids to meet."""

    bots: frozenset[int]
    since: int
    """First round in which they do not meet."""
    until: int | None = None
    """Last such round; None if the ruling was not taken back."""


@dataclass(frozen=True, slots=True)
class ManualPairings:
    """The pairings that the organiser fixed or forbade, each before its round began."""

    fixed: Mapping[int, Sequence[tuple[int, int]]] = field(default_factory=dict)
    """Round -> pairs of bots, by number; the opponent in a bye is NOBODY."""
    forbidden: Sequence[ForbiddenPairing] = ()

    def fixed_in(self, round_number: int, playing: Collection[int]) -> tuple[tuple[int, int], ...]:
        """Return the fixed pairings of a round.

        Pairings of bots that are not among ``playing``, since they have withdrawn before, are left out.
        """
        present = {*playing, NOBODY}
        return tuple(pair for pair in self.fixed.get(round_number, ()) if present.issuperset(pair))

    def forbidden_in(self, round_number: int) -> frozenset[frozenset[int]]:
        """Return the pairs of bots that do not meet in a round."""
        return frozenset(
            one.bots
            for one in self.forbidden
            if one.since <= round_number and (one.until is None or round_number <= one.until)
        )


@dataclass(frozen=True)
class History:
    """Results so far, and the organiser's rulings on pairings."""

    results: Mapping[str, Result] = field(default_factory=dict)
    """Key of a game -> its current result.  Games may be added later; the results of the others stay."""
    earlier: Mapping[str, Sequence[tuple[int, Result | None]]] = field(default_factory=dict)
    """Key -> results before rulings on it, oldest first.

    Each is (the round at the time of the ruling, the result until then).
    """
    manual: ManualPairings = field(default_factory=ManualPairings)
    _seen: dict[int, tuple[int, Mapping[str, Result]]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """Cache of ``at``: number of earlier rounds with rulings -> size of ``results``, and the answer."""

    def at(self, round_number: int) -> Mapping[str, Result]:
        """Return the results from which a round is paired.

        Rulings made during this round, or a later one, are ignored.  Rounds between two rulings share one
        mapping.
        """
        rulings = sorted({under_way for changes in self.earlier.values() for under_way, _ in changes})
        passed = bisect_left(rulings, round_number)
        if passed == len(rulings):
            return self.results
        count, found = self._seen.get(passed, (-1, self.results))
        if count == len(self.results):
            return found
        seen = dict(self.results)
        for key, changes in self.earlier.items():
            # A restored bot's entry has the round of its withdrawal, so that entries after it may be of
            # earlier rounds than those before it.
            later = list(takewhile(lambda change: round_number <= change[0], reversed(changes)))
            if later:
                seen.pop(key, None)
                if (result := later[-1][1]) is not None:
                    seen[key] = result
        self._seen[passed] = (len(self.results), seen)
        return seen


def withdrawn(game: Pairing, entrants: Sequence[Entrant]) -> bool:
    """Return whether one of a game's bots withdrew, so that the game, if it has no result, will have none."""
    return entrants[game.first].until is not None or entrants[game.second].until is not None


class Schedule(Protocol):
    """A tournament format with its entrants; formats inherit the defaults.

    Contract, tested for every registered format in tests/schedule/test_formats_contract.py: all of these are
    pure functions; ``due`` is a part of ``pairings``, in its order, without the games that have a result; if
    every due game gets a result, the tournament ends; the order in which results arrive, and calls in
    between, change nothing.
    """

    PAIRS_ROUNDS: ClassVar[bool] = True
    """True if each round is paired from the results of the earlier rounds."""
    entrants: Sequence[Entrant]

    def pairings(self, history: History) -> Sequence[Pairing]:
        """Return every game that was paired so far, played or not, in the order of play."""
        ...

    def due(self, history: History) -> Sequence[Pairing]:
        """Return the games that can be started now: paired, without a result, and between active bots."""
        paired = self.pairings(history)
        return [
            game for game in paired if game.key not in history.results and not withdrawn(game, self.entrants)
        ]

    def total(self, history: History) -> int:
        """Return the number of all games as far as they can be foreseen; exact once nothing is due."""
        ...

    def places(self, history: History) -> Mapping[int, int]:
        """Return bot number -> rank (from 1, ties share one), where the format itself decides ranks.

        A knockout does so.  Empty by default: the table decides.
        """
        return {}

    def standing_order(self, history: History) -> Mapping[int, int]:
        """Return bot number -> number by which the table is ordered first, the least first.

        These are the ``places``, and numbers for bots that are still in while the others have places.
        """
        return self.places(history)

    def byes(self, history: History) -> Mapping[int, float]:
        """Return bot number -> points without a game.  Bots without such points may be missing."""
        return {}

    def conclusion(self, history: History) -> str:
        """Return a remark on the tournament beside its table, in one sentence; empty by default."""
        return ""


@runtime_checkable
class MatchScoring(Protocol):
    """A format that can give points for matches instead of games."""

    def matches(self, history: History) -> Sequence[MatchScore] | None:
        """Return the matches that are over, byes included; None if points are given for games."""
        ...


def round_under_way(schedule: Schedule, history: History) -> int:
    """Return the last round that was paired; 1 before the first game."""
    return max((pairing.round for pairing in schedule.pairings(history)), default=1)


def key_of(round_number: int, first: int, second: int, width: int, leg: int = 0) -> str:
    """Return the key of a game, such as ``r002-1v3``.

    With more than one pair a round, ``r002-1v3.2`` is of the second.  ``width`` is the number of digits of
    the bots' numbers, ``leg`` counts the pairs of a round from 0.
    """
    behind = f".{leg + 1}" if leg else ""
    return f"r{round_number:03d}-{first + 1:0{width}d}v{second + 1:0{width}d}{behind}"


def pair_of_games(
    round_number: int, first: int, second: int, width: int, leg: int = 0, opening: int | None = None
) -> tuple[Pairing, Pairing]:
    """Return two games from the same start, in each of which another bot moves first.

    ``opening`` is the round's own by default.
    """
    low, high = sorted((first, second))
    pair = key_of(round_number, low, high, width, leg).replace("v", "+")
    number = round_number - 1 if opening is None else opening
    one, other = (
        Pairing(key_of(round_number, *bots, width, leg), round_number, *bots, pair, number)
        for bots in ((first, second), (second, first))
    )
    return one, other
