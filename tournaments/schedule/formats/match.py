"""A match of a knockout: some pairs of games between two bots, one of which goes on."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from tournaments.schedule.pairing import Entrant, Pairing, Result, pair_of_games


@dataclass(frozen=True, slots=True)
class MatchRules:
    """The length of matches.  Raises ValueError for numbers that make no match."""

    pairs: int = 1
    """Pairs of games of every match."""
    extra_pairs: int = 2
    """Pairs that may follow one after another as long as the match is level."""

    def __post_init__(self) -> None:
        if self.pairs < 1:
            raise ValueError(f"a match needs at least one pair of games: pairs = {self.pairs}")
        if self.extra_pairs < 0:
            raise ValueError(f"extra_pairs = {self.extra_pairs} is negative")

    @property
    def openings(self) -> int:
        """The number of openings that a match may need: one for each pair."""
        return self.pairs + self.extra_pairs


class MatchView(NamedTuple):
    """The results by which a match is continued and decided."""

    before: Mapping[str, Result]
    """``History.at`` of its round: extra pairs that were given stay given, whatever was ruled since."""
    after: Mapping[str, Result]
    """``History.at`` of the round after it; these results decide the match."""


class Outcome(NamedTuple):
    """The outcome of a match."""

    winner: int | None
    """The bot that goes on; None if neither does."""
    losers: tuple[int, ...]
    """Two if both withdrew; none if there was but one bot."""
    by: Literal["points", "margin", "seed", "walkover"]
    """The criterion that decided the match."""


@dataclass(frozen=True)
class Match:
    """Two bots, or one with a bye, in one round."""

    round: int
    better: int | None
    """Number of the better seed; None if no bot came that far."""
    worse: int | None
    entrants: Sequence[Entrant]
    rules: MatchRules
    opening: int = 0
    """Number of the first pair's opening; each further pair has the next one."""
    width: int = 1
    """Digits of a bot's number in keys."""

    @property
    def players(self) -> tuple[int, ...]:
        """The bots that are still there when the match begins, better seed first."""
        return tuple(bot for bot in self._entered if self._until(bot) >= self.round)

    def games(self, sight: MatchView) -> list[tuple[Pairing, Pairing]]:
        """The pairs of games so far: the regular ones at once, an extra one when all before it are level."""
        if len(self.players) < 2:
            return []
        given = [self._pair(leg) for leg in range(self.rules.pairs)]
        for leg in range(self.rules.pairs, self.rules.openings):
            pair = self._pair(leg)
            # By either sight: a ruling takes no pair back that results made necessary, and may make another
            # one necessary, which a second ruling may take back before it is begun.
            needed = any(self._lead(given, results) == 0 for results in sight)
            if not needed and not any(game.key in results for game in pair for results in sight):
                break
            given.append(pair)
        return given

    def outcome(self, sight: MatchView) -> Outcome | None:
        """Return the outcome of the match; None as long as it is open.

        Points decide, then the sum of the games' margins, then the better seed.  A bot that withdrew loses a
        match that was not played to its end.
        """
        players = self.players
        if len(players) < 2:
            winner = players[0] if players else None
            return Outcome(winner, tuple(bot for bot in self._entered if bot != winner), "walkover")
        games = self.games(sight)
        lead = self._lead(games, sight.after)
        if lead is None:
            here = [bot for bot in players if self._until(bot) > self.round]
            if len(here) == 2:
                return None
            return Outcome(
                here[0] if here else None, tuple(bot for bot in players if bot not in here), "walkover"
            )
        if lead:
            return self._won(lead > 0, "points")
        margin = sum(
            self._sign(game) * sight.after[game.key].margin
            for pair in games
            for game in pair
            if sight.after[game.key].counts
        )
        return self._won(margin > 0, "margin") if margin else self._won(True, "seed")

    @property
    def _entered(self) -> tuple[int, ...]:
        return tuple(bot for bot in (self.better, self.worse) if bot is not None)

    def _until(self, bot: int) -> float:
        until = self.entrants[bot].until
        return float("inf") if until is None else until

    def _pair(self, leg: int) -> tuple[Pairing, Pairing]:
        first, second = self._entered
        return pair_of_games(self.round, first, second, self.width, leg, self.opening + leg)

    def _sign(self, game: Pairing) -> int:
        return 1 if game.first == self.better else -1

    def _lead(self, pairs: Iterable[tuple[Pairing, Pairing]], results: Mapping[str, Result]) -> int | None:
        """Games won by the better seed minus those lost; None if a result is missing."""
        lead = 0
        for pair in pairs:
            for game in pair:
                result = results.get(game.key)
                if result is None:
                    return None
                if result.counts and result.winner is not None:
                    lead += self._sign(game) * (1 if result.winner == 0 else -1)
        return lead

    def _won(self, better: bool, by: Literal["points", "margin", "seed"]) -> Outcome:
        first, second = self._entered
        return Outcome(first, (second,), by) if better else Outcome(second, (first,), by)
