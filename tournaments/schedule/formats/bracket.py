"""The bracket of a knockout."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tournaments.schedule.formats.match import Match, MatchRules, MatchView, Outcome
from tournaments.schedule.formats.rounds import to_be_played, unplayed
from tournaments.schedule.pairing import Entrant, History, Pairing


class BracketRound(NamedTuple):
    """One round as far as it went."""

    matches: list[Match]
    """Matches from the top of the bracket to its bottom."""
    outcomes: list[Outcome | None]
    """None for a match that is open."""
    sight: MatchView
    third: Match | None = None
    """The match for the third place, in the final's round."""

    @property
    def third_outcome(self) -> Outcome | None:
        """The outcome of the match for the third place; None if it is open, or there is none."""
        return None if self.third is None else self.third.outcome(self.sight)


@dataclass(frozen=True)
class Bracket:
    """A knockout among some bots of a tournament, maybe after rounds of another kind.

    A round is paired when every match of the round before it is decided.
    """

    seeds: Sequence[int]
    """Numbers of the bots, the best seed first."""
    entrants: Sequence[Entrant]
    """All bots of the tournament."""
    rules: MatchRules
    third_place: bool = True
    first_round: int = 1
    first_opening: int = 0
    width: int = 1

    def rounds(self, history: History) -> list[BracketRound]:
        """The rounds that were paired, the last one maybe open."""
        places: dict[int, int] = dict(enumerate(self.seeds))
        slots = [places.get(seed) for seed in standard_order(len(self.seeds))]
        rounds: list[BracketRound] = []
        while len(slots) > 1:
            number = self.first_round + len(rounds)
            sight = MatchView(history.at(number), history.at(number + 1))
            matches = [self._match(number, *two) for two in zip(slots[::2], slots[1::2], strict=True)]
            third = None
            if self.third_place and len(matches) == 1 and rounds:
                third = self._match(number, *(_only_loser(outcome) for outcome in rounds[-1].outcomes))
            outcomes = [match.outcome(sight) for match in matches]
            rounds.append(BracketRound(matches, outcomes, sight, third))
            decided = [outcome for outcome in outcomes if outcome is not None]
            if len(decided) < len(outcomes):
                break
            slots = [outcome.winner for outcome in decided]
        return rounds

    def pairings(self, history: History) -> list[Pairing]:
        """Round by round; within a round the first pair of each match, then the second pairs, and so on.

        Games that a withdrawal left unplayed are among them: they were paired.
        """
        games = []
        for row in self.rounds(history):
            matches = [*row.matches, *([] if row.third is None else [row.third])]
            legs = [match.games(row.sight) for match in matches]
            for leg in range(self.rules.openings):
                games += [game for pairs in legs for game in pairs[leg : leg + 1]]
        return [game for pair in games for game in pair]

    def due(self, history: History) -> list[Pairing]:
        """The games without a result between bots that did not withdraw."""
        return unplayed(self.pairings(history), history, self.entrants)

    def total(self, history: History) -> int:
        """Games that were played or are due, and the regular games of the matches that will come."""
        known = to_be_played(self.pairings(history), history, self.entrants)
        return known + 2 * self.rules.pairs * self._matches_ahead(history)

    def final(self, history: History) -> Outcome | None:
        """Return the outcome of the final; None if it is open.  A single bot wins without a game."""
        if len(self.seeds) == 1:
            return Outcome(self.seeds[0], (), "walkover")
        rounds = self.rounds(history)
        return rounds[-1].outcomes[0] if rounds and len(rounds[-1].matches) == 1 else None

    def places(self, history: History) -> dict[int, int]:
        """Return the decided places.

        They are 1 to 4, or 3 shared without a match for it; then the losers of each round share one: 5 in
        the quarter finals, 9 in the round before, and so on.
        """
        places: dict[int, int] = {}
        rounds = self.rounds(history)
        for row in rounds:
            if len(row.matches) == 2 and self.third_place:
                continue  # decided in the final's round
            for outcome in row.outcomes:
                if outcome is not None:
                    places |= dict.fromkeys(outcome.losers, len(row.matches) + 1)
        third = rounds[-1].third_outcome if rounds else None
        if third is not None:
            losers = [bot for outcome in rounds[-2].outcomes if outcome is not None for bot in outcome.losers]
            places |= dict.fromkeys(losers, 3 if third.winner is None else 4)
            if third.winner is not None:
                places[third.winner] = 3
        final = self.final(history)
        if final is not None and final.winner is not None:
            places[final.winner] = 1
        return places

    def _match(self, number: int, one: int | None, other: int | None) -> Match:
        better, worse = sorted((one, other), key=lambda bot: float("inf") if bot is None else self._rank[bot])
        opening = self.first_opening + (number - self.first_round) * self.rules.openings
        return Match(number, better, worse, self.entrants, self.rules, opening, self.width)

    @property
    def _rank(self) -> dict[int, int]:
        return {bot: seed for seed, bot in enumerate(self.seeds)}

    def _matches_ahead(self, history: History) -> int:
        """Matches with two bots in the rounds that were not yet paired, as far as withdrawals are known."""
        rounds = self.rounds(history)
        if not rounds:
            return 0
        outcomes = rounds[-1].outcomes
        coming = [outcome is None or self._here(outcome.winner) for outcome in outcomes]
        losing = [outcome is None or self._here(_only_loser(outcome)) for outcome in outcomes]
        count = 0
        while len(coming) > 1:
            count += len(coming) == 2 and self.third_place and all(losing)
            losing = [one and other for one, other in zip(coming[::2], coming[1::2], strict=True)]
            coming = [one or other for one, other in zip(coming[::2], coming[1::2], strict=True)]
            count += sum(losing)
        return count

    def _here(self, bot: int | None) -> bool:
        return bot is not None and self.entrants[bot].until is None


def standard_order(count: int) -> list[int]:
    """The seeds, counted from 0, from the top of the bracket to its bottom, for that many bots.

    There are as many slots as the next power of two; seeds without a bot are byes of their opponents, which
    are the best seeds.  Two neighbours meet; if the better seed always wins, so do the best and the worst of
    each round.  It is the usual seeding: 1 v 16, 8 v 9, 4 v 13, 5 v 12, and so on.
    """
    order = [0]
    while len(order) < count:
        last = 2 * len(order) - 1
        order = [seed for better in order for seed in (better, last - better)]
    return order


def matches_of(count: int, third_place: bool) -> int:
    """Matches with two bots in a knockout of ``count`` bots; with three, the third place needs none."""
    return max(count - 1, 0) + (third_place and count > 3)


def _only_loser(outcome: Outcome | None) -> int | None:
    """The loser of a decided match; None if there is none, or both withdrew from it."""
    return outcome.losers[0] if outcome is not None and len(outcome.losers) == 1 else None
