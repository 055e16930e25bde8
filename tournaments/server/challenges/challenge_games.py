"""Games of a challenge: their keys, seats and results (pure)."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from tournaments.course.model import Challenge
from tournaments.results.game_summary import GameSummary

KEY = re.compile(r"c(\d{7,})-(\d{2})-([12])")


@dataclass(frozen=True, slots=True)
class ChallengeGame:
    """A game of a challenge."""

    challenge_id: int
    pair: int
    """Number of the pair, from 1."""
    leg: int
    """1, in which the team's own bot moves first, or 2 for the return game."""

    @property
    def key(self) -> str:
        """Key of the game, which is never used again."""
        return f"{self.pair_name}-{self.leg}"

    @property
    def pair_name(self) -> str:
        """Common name of both games of a pair."""
        return f"c{self.challenge_id:07d}-{self.pair:02d}"

    @property
    def own(self) -> int:
        """Index of the player that is the team's own bot."""
        return self.leg - 1


def game_of(key: str) -> ChallengeGame | None:
    """Return the game with a key; None if the key is of no challenge."""
    found = KEY.fullmatch(key)
    return None if found is None else ChallengeGame(int(found[1]), int(found[2]), int(found[3]))


def games_of(challenge: Challenge) -> list[ChallengeGame]:
    """Return all games of a challenge, in the order in which they are played."""
    pairs = range(1, challenge.pairs + 1)
    return [ChallengeGame(challenge.id, pair, leg) for pair in pairs for leg in (1, 2)]


@dataclass(frozen=True)
class Score:
    """Numbers of games that the team's own bot has won, drawn and lost."""

    wins: int = 0
    draws: int = 0
    losses: int = 0

    @classmethod
    def of(cls, games: Iterable[GameSummary]) -> "Score":
        """Count the games of one challenge."""
        results = [0, 0, 0]
        for game in games:
            found = game_of(game.key)
            if found is not None:
                results[1 if game.winner is None else 0 if game.winner == found.own else 2] += 1
        return cls(*results)
