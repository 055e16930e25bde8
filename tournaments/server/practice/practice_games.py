"""Games of a practice ladder: their keys, and the pairs that are not finished (pure)."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from tournaments.config.openings import OpeningBook
from tournaments.results.game_summary import GameSummary
from tournaments.server.practice.matchmaking import Tally

KEY = re.compile(r"p(\d{7,})-([12])")


@dataclass(frozen=True, slots=True)
class PracticeGame:
    """A practice game to be played."""

    number: int
    """Number of the pair, from 1; it also determines the opening."""
    leg: int
    """1, or 2 for the return game."""
    first: str
    second: str
    opening: str

    @property
    def key(self) -> str:
        """Key of the game, which is never used again."""
        return f"{self.pair}-{self.leg}"

    @property
    def pair(self) -> str:
        """Common name of both games of a pair."""
        return f"p{self.number:07d}"

    @property
    def names(self) -> tuple[str, str]:
        """Names of both players."""
        return self.first, self.second

    def back(self) -> "PracticeGame | None":
        """Return the return game, with seats exchanged; None if this is a return game."""
        return None if self.leg == 2 else replace(self, leg=2, first=self.second, second=self.first)


def opening_of(game: str, number: int) -> str:
    """Return the random opening of a pair, which depends on its number; empty if the game is too short."""
    return next(iter(OpeningBook.short(game, number, 1).texts), "")


@dataclass
class PracticeHistory:
    """State of a practice ladder, derived from its stored games."""

    tally: Tally
    return_games: list[PracticeGame]
    """Return games that are still to be played, oldest first."""
    next_number: int

    @classmethod
    def from_games(cls, games: Iterable[GameSummary]) -> "PracticeHistory":
        """Create the state from games in the order of their keys."""
        history = cls(Tally(), [], 1)
        missing: dict[int, PracticeGame] = {}
        for game in games:
            history.tally.add(game.first, game.second, game.winner)
            found = KEY.fullmatch(game.key)
            if found is None:
                continue
            number, leg = int(found[1]), int(found[2])
            history.next_number = max(history.next_number, number + 1)
            back = PracticeGame(number, leg, game.first, game.second, game.opening).back()
            if back is None:
                missing.pop(number, None)
            else:
                missing[number] = back
        history.return_games = [missing[number] for number in sorted(missing)]
        return history
