"""The games of a practice ladder: their keys, and what was begun and not finished.  Pure."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from referee.games.catalog import parse_game
from referee.games.opening import OpeningError
from tournaments.game_summary import GameSummary
from tournaments.openings import random_openings
from tournaments.service.matchmaking import Tally

KEY = re.compile(r"p(\d{7,})-([12])")
OPENING_PLIES = 5
"""As `kalarena duel` has it; shorter where a game would be over by then."""


@dataclass(frozen=True, slots=True)
class PracticeGame:
    """One game that is to be played."""

    number: int
    """Of its pair, from 1; also decides the opening."""
    leg: int
    """1, or 2 for the return game."""
    first: str
    second: str
    opening: str

    @property
    def key(self) -> str:
        """Never used again."""
        return f"{self.pair}-{self.leg}"

    @property
    def pair(self) -> str:
        """What both games of a pair have in common."""
        return f"p{self.number:07d}"

    @property
    def names(self) -> tuple[str, str]:
        """Who plays."""
        return self.first, self.second

    def back(self) -> "PracticeGame | None":
        """The return game, with seats exchanged; None if this is it."""
        return None if self.leg == 2 else replace(self, leg=2, first=self.second, second=self.first)


def opening_of(game: str, number: int) -> str:
    """The opening of a pair: random, and another one for each number; empty if the game is too short."""
    rules = parse_game(game)
    for plies in range(OPENING_PLIES, 0, -1):
        try:
            return random_openings(rules, plies, number, 1)[0]
        except OpeningError:
            continue
    return ""


@dataclass
class Ledger:
    """What a store of practice games amounts to."""

    tally: Tally
    halves: list[PracticeGame]
    """Return games that are still to be played, oldest first."""
    next_number: int

    @classmethod
    def of(cls, games: Iterable[GameSummary]) -> "Ledger":
        """What these games amount to; in the order of their keys."""
        ledger = cls(Tally(), [], 1)
        halves: dict[int, PracticeGame] = {}
        for game in games:
            ledger.tally.add(game.first, game.second, game.winner)
            found = KEY.fullmatch(game.key)
            if found is None:
                continue
            number, leg = int(found[1]), int(found[2])
            ledger.next_number = max(ledger.next_number, number + 1)
            back = PracticeGame(number, leg, game.first, game.second, game.opening).back()
            if back is None:
                halves.pop(number, None)
            else:
                halves[number] = back
        ledger.halves = [halves[number] for number in sorted(halves)]
        return ledger
