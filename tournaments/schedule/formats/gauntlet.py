"""Gauntlet: a few challengers against the whole field."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar

from tournaments.schedule.formats.rounds import drawn_lots, to_be_played
from tournaments.schedule.pairing import Entrant, History, Pairing, Schedule, pair_of_games


@dataclass(frozen=True)
class Gauntlet(Schedule):
    """Every challenger meets every other bot twice in each round, once from each side.

    Challengers do not meet one another, nor do the others.  A bot that joins late plays the games of all
    rounds: as a challenger if it is a new version of a challenger, else as one of the others.  Raises
    ValueError if a challenger is not among the entrants.
    """

    PAIRS_ROUNDS: ClassVar[bool] = False
    entrants: Sequence[Entrant]
    rounds: int
    seed: int = 0
    width: int = 1
    """Digits of a bot's number in keys."""
    challengers: tuple[int, ...] = field(kw_only=True)
    """Numbers of the challenging bots, without their new versions."""

    def __post_init__(self) -> None:
        strangers = sorted(set(self.challengers) - set(range(len(self.entrants))))
        if strangers:
            raise ValueError(f"challengers {strangers} are not among the {len(self.entrants)} entrants")

    def pairings(self, history: History) -> list[Pairing]:
        """Return the games by round; within a round, opponents by lot, each challenger beginning elsewhere.

        A bot that withdrew has the games that it played.  Games that the present roles would not pair come
        last; see ``_of_former_roles``.
        """
        games = to_be_played(self._all(), history, self.entrants)
        return [*games, *self._of_former_roles(history)]

    def total(self, history: History) -> int:
        """Return the number of games of all rounds."""
        # Making all games takes longer.
        if all(entrant.until is None and entrant.since <= 1 for entrant in self.entrants):
            challengers = len(set(self.challengers))
            return self.rounds * 2 * challengers * (len(self.entrants) - challengers)
        return len(self.pairings(history))

    @property
    def _all_challengers(self) -> tuple[int, ...]:
        """The challengers and their new versions, in ascending order."""
        found = set(self.challengers)
        for number, entrant in enumerate(self.entrants):  # a version comes after the bot that it replaces
            if entrant.replaces in found:
                found.add(number)
        return tuple(sorted(found))

    def _all(self) -> tuple[Pairing, ...]:
        return games_of(len(self.entrants), self._all_challengers, self.rounds, self.seed, self.width)

    def _of_former_roles(self, history: History) -> list[Pairing]:
        """Return the games of two challengers, or two others, that have met while one had another role.

        Earlier versions of Kalarena paired a new version of a challenger with the other challengers.  If the
        replaced bot is restored, its new version, which has withdrawn, is a challenger no more.
        """
        late = {number for number, entrant in enumerate(self.entrants) if entrant.since > 1}
        if not late or history.results.keys() <= {game.key for game in self._all()}:
            return []
        challengers = set(self._all_challengers)
        games: list[Pairing] = []
        for bot in sorted(late):
            for other in range(len(self.entrants)):
                is_skipped = other == bot or (other in late and other > bot)  # each pair once
                if is_skipped or (bot in challengers) != (other in challengers):
                    continue
                between = [
                    game
                    for number in range(1, self.rounds + 1)
                    for game in pair_of_games(number, bot, other, self.width)
                ]
                if any(game.key in history.results for game in between):
                    games += between
        return sorted(to_be_played(games, history, self.entrants), key=lambda game: game.round)


@lru_cache(maxsize=8)
def games_of(
    count: int, challengers: tuple[int, ...], rounds: int, seed: int, width: int
) -> tuple[Pairing, ...]:
    """Return the games of all rounds; cached, since thousands of them take a while."""
    games: list[Pairing] = []
    for number in range(1, rounds + 1):
        lots = drawn_lots(count, f"{seed}/{number}")
        others = sorted(set(range(count)) - set(challengers), key=lots.__getitem__)
        for turn in range(len(others)):
            for seat, challenger in enumerate(challengers):
                ahead = seat * len(others) // len(challengers)  # spread out, so that all bots play early
                games += pair_of_games(number, challenger, others[(turn + ahead) % len(others)], width)
    return tuple(games)
