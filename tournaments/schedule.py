"""Who meets whom: what every tournament format is to the runner.

A format is a pure function of the results so far.  It is asked anew whenever games have ended, so that a
tournament that was killed goes on as if nothing had happened.  Three things make that work:

- a pairing's key never changes, and a game that is due stays due until it has a result;
- in formats that pair round by round, a round is paired from the results of the rounds before it alone, all
  of which must be there; the order in which games end plays no part;
- what a lecturer rules later (a void game, a game to be played again, a bot that withdraws or joins) changes
  the rounds that were not yet paired when it was ruled, and never those that were: see ``History.at``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol


@dataclass(frozen=True, slots=True)
class Pairing:
    """One game to be played."""

    key: str
    """Identifies it within the tournament, and never changes."""
    round: int
    """Counted from 1."""
    first: int
    """Number of the bot that moves first: its index among the entrants."""
    second: int
    pair: str = ""
    """What this game and its return game, from the same start with sides exchanged, have in common."""
    opening: int = 0
    """Number of the opening, counted from 0; taken modulo the number of openings that there are."""


class Result(NamedTuple):
    """What a format needs to know of a game."""

    winner: int | None
    """0 is the bot that moved first, 1 the other, None a draw."""
    margin: int = 0
    """Score of the first minus that of the second; 0 if the game was not played to its end."""
    fingerprint: str = ""
    """Equal for identical games; empty if not known."""
    counts: bool = True
    """False for a game that was ruled void: nobody's result, and not to be played again."""


@dataclass(frozen=True, slots=True)
class Entrant:
    """How long a bot takes part.  Its number is its index among the entrants; numbers are never reused."""

    since: int = 1
    """The first round that it may be paired in."""
    until: int | None = None
    """The last round that it was paired in before it withdrew; of that one it plays nothing more."""
    replaces: int | None = None
    """Number of the bot whose newer version it is."""

    def plays(self, round_number: int) -> bool:
        """Whether it may be paired in a round."""
        return self.since <= round_number and (self.until is None or round_number <= self.until)


@dataclass(frozen=True)
class History:
    """The results so far."""

    results: Mapping[str, Result] = field(default_factory=dict)
    """Key of a game -> its result as it stands now."""
    earlier: Mapping[str, Sequence[tuple[int, Result | None]]] = field(default_factory=dict)
    """Key -> what stood before rulings on it, oldest first: (the round that was under way when it was ruled
    otherwise, the result until then)."""

    def at(self, round_number: int) -> Mapping[str, Result]:
        """The results that a round is paired from: rulings made while it, or a later one, was under way
        are not in them.
        """
        if not self.earlier:
            return self.results
        seen = dict(self.results)
        for key, changes in self.earlier.items():
            for under_way, result in changes:
                if round_number <= under_way:
                    seen.pop(key, None)
                    if result is not None:
                        seen[key] = result
                    break
        return seen


class Schedule(Protocol):
    """A tournament format with its entrants.

    Contract, tested for every registered format in tests/test_formats_contract.py: all of these are pure
    functions; ``due`` is a part of ``pairings``, in its order, without the games that have a result; when
    every due game gets a result, again and again, that ends; the order in which results come in, and asking
    in between, change nothing.
    """

    def pairings(self, history: History) -> Sequence[Pairing]:
        """Every game that was paired so far, played or not, in the order of play."""
        ...

    def due(self, history: History) -> Sequence[Pairing]:
        """The games that can be started now: paired, without a result, and between bots that still play."""
        ...

    def total(self, history: History) -> int:
        """Games of the whole tournament as far as they can be foreseen; exact once nothing is due."""
        ...

    def places(self, history: History) -> Mapping[int, int]:
        """Number of a bot -> its place (from 1, ties share one), where the format itself decides places, as a
        knockout does; empty where the table does.
        """
        ...

    def byes(self, history: History) -> Mapping[int, float]:
        """Number of a bot -> points that it got without a game.  Bots without any may be missing."""
        ...

    def conclusion(self, history: History) -> str:
        """What there is to say of the tournament beside its table, in one sentence; empty if nothing is."""
        ...


def round_under_way(schedule: Schedule, history: History) -> int:
    """The last round that was paired; 1 before the first game."""
    return max((pairing.round for pairing in schedule.pairings(history)), default=1)


def key_of(round_number: int, first: int, second: int, width: int, leg: int = 0) -> str:
    """The key of a game: ``r002-1v3``; with more than one pair a round, ``r002-1v3.2`` is of the second.

    ``width`` is the number of digits of the bots' numbers, ``leg`` counts the pairs of a round from 0.
    """
    behind = f".{leg + 1}" if leg else ""
    return f"r{round_number:03d}-{first + 1:0{width}d}v{second + 1:0{width}d}{behind}"


def pair_of_games(
    round_number: int, first: int, second: int, width: int, leg: int = 0, opening: int | None = None
) -> tuple[Pairing, Pairing]:
    """Two games from the same start, each bot moving first once.

    ``opening`` is the round's own unless another is given.
    """
    low, high = sorted((first, second))
    pair = key_of(round_number, low, high, width, leg).replace("v", "+")
    number = round_number - 1 if opening is None else opening
    one, other = (
        Pairing(key_of(round_number, *bots, width, leg), round_number, *bots, pair, number)
        for bots in ((first, second), (second, first))
    )
    return one, other
