"""Matches of a knockout, some pairs of games between two bots, and the bracket that they form."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from tournaments.schedule.formats.rounds import to_be_played
from tournaments.schedule.pairing import Entrant, History, Pairing, Result, pair_of_games


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
    """``History.at`` of the match's round: later rulings do not take back extra pairs."""
    after: Mapping[str, Result]
    """``History.at`` of the next round; these results decide the match."""


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
    """Number of the better seed; None if no bot reached the match."""
    worse: int | None
    entrants: Sequence[Entrant]
    rules: MatchRules
    opening: int = 0
    """Number of the first pair's opening; each further pair has the next one."""
    width: int = 1
    """Digits of a bot's number in keys."""

    @property
    def players(self) -> tuple[int, ...]:
        """The bots that have not withdrawn when the match begins, better seed first."""
        return tuple(bot for bot in self._entered if self._until(bot) >= self.round)

    def games(self, view: MatchView) -> list[tuple[Pairing, Pairing]]:
        """Return the pairs so far: the regular ones at once, an extra one while the match is level."""
        if len(self.players) < 2:
            return []
        given = [self._pair(leg) for leg in range(self.rules.pairs)]
        for leg in range(self.rules.pairs, self.rules.openings):
            pair = self._pair(leg)
            # By either view: a ruling takes back no pair that results made necessary.  It may make another
            # pair necessary, which a second ruling may take back before the pair begins.
            needed = any(self._lead(given, results) == 0 for results in view)
            if not needed and not any(game.key in results for game in pair for results in view):
                break
            given.append(pair)
        return given

    def outcome(self, view: MatchView) -> Outcome | None:
        """Return the outcome of the match; None as long as it is open.

        Points decide, then the sum of the games' margins, then the better seed.  A bot that withdrew loses a
        match that was not played to its end.
        """
        players = self.players
        if len(players) < 2:
            winner = players[0] if players else None
            return Outcome(winner, tuple(bot for bot in self._entered if bot != winner), "walkover")
        games = self.games(view)
        lead = self._lead(games, view.after)
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
            self._sign(game) * view.after[game.key].margin
            for pair in games
            for game in pair
            if view.after[game.key].counts
        )
        return self._won(margin > 0, "margin") if margin else self._won(True, "seed")

    def points(self, view: MatchView) -> dict[int, float]:
        """Return bot -> points in the games so far that count; empty before the first of them."""
        found: dict[int, float] = {}
        for pair in self.games(view):
            for game in pair:
                result = view.after.get(game.key)
                if result is None or not result.counts:
                    continue
                for index, bot in enumerate((game.first, game.second)):
                    won = 0.5 if result.winner is None else float(result.winner == index)
                    found[bot] = found.get(bot, 0.0) + won
        return found

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


class BracketRound(NamedTuple):
    """One round as far as it was paired."""

    matches: list[Match]
    """Matches from the top of the bracket to its bottom."""
    outcomes: list[Outcome | None]
    """None for a match that is open."""
    view: MatchView
    third: Match | None = None
    """The match for the third place, in the final's round."""

    @property
    def third_outcome(self) -> Outcome | None:
        """Outcome of the match for the third place; None if it is open, or there is none."""
        return None if self.third is None else self.third.outcome(self.view)


@dataclass(frozen=True)
class Bracket:
    """A knockout among some bots of a tournament, possibly after rounds of another format.

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
        """Return the paired rounds; the last one may be open."""
        places: dict[int, int] = dict(enumerate(self.seeds))
        slots = [places.get(seed) for seed in standard_order(len(self.seeds))]
        rounds: list[BracketRound] = []
        while len(slots) > 1:
            number = self.first_round + len(rounds)
            view = MatchView(history.at(number), history.at(number + 1))
            matches = [self._match(number, *two) for two in zip(slots[::2], slots[1::2], strict=True)]
            third = None
            if self.third_place and len(matches) == 1 and rounds:
                third = self._match(number, *(_only_loser(outcome) for outcome in rounds[-1].outcomes))
            outcomes = [match.outcome(view) for match in matches]
            rounds.append(BracketRound(matches, outcomes, view, third))
            decided = [outcome for outcome in outcomes if outcome is not None]
            if len(decided) < len(outcomes):
                break
            slots = [outcome.winner for outcome in decided]
        return rounds

    def pairings(self, history: History) -> list[Pairing]:
        """Return the games by round; within a round the first pair of each match, then the second, and so on.

        Games that a withdrawal left unplayed are included: they were paired.
        """
        games = []
        for row in self.rounds(history):
            matches = [*row.matches, *([] if row.third is None else [row.third])]
            legs = [match.games(row.view) for match in matches]
            for leg in range(self.rules.openings):
                games += [game for pairs in legs for game in pairs[leg : leg + 1]]
        return [game for pair in games for game in pair]

    def total(self, history: History) -> int:
        """Return the number of games played or due, and of the regular games of later matches."""
        known = to_be_played(self.pairings(history), history, self.entrants)
        return len(known) + 2 * self.rules.pairs * self._matches_ahead(history)

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

    def standing_order(self, history: History) -> dict[int, int]:
        """Return the decided places, and an order of the others as long as the bracket is played.

        Those that won in the current round come first, then those whose match is open, and before the losers
        of earlier rounds those that play for the third place.
        """
        rounds = self.rounds(history)
        if not rounds:
            return self.places(history)
        order: dict[int, int] = {}
        if self.third_place:
            semi_finals = [row for row in rounds if len(row.matches) == 2]
            outcomes = [outcome for row in semi_finals for outcome in row.outcomes if outcome is not None]
            order |= dict.fromkeys((bot for outcome in outcomes for bot in outcome.losers), 3)
        for match, outcome in zip(rounds[-1].matches, rounds[-1].outcomes, strict=True):
            if outcome is None:
                order |= dict.fromkeys(match.players, 2)
            elif outcome.winner is not None:
                order[outcome.winner] = 1
        return order | self.places(history)

    def _match(self, number: int, one: int | None, other: int | None) -> Match:
        better, worse = sorted((one, other), key=lambda bot: float("inf") if bot is None else self._rank[bot])
        opening = self.first_opening + (number - self.first_round) * self.rules.openings
        return Match(number, better, worse, self.entrants, self.rules, opening, self.width)

    @property
    def _rank(self) -> dict[int, int]:
        return {bot: seed for seed, bot in enumerate(self.seeds)}

    def _matches_ahead(self, history: History) -> int:
        """Return the number of matches of two bots in later rounds, as far as withdrawals are known."""
        rounds = self.rounds(history)
        if not rounds:
            return 0
        outcomes = rounds[-1].outcomes
        coming = [outcome is None or self._is_active(outcome.winner) for outcome in outcomes]
        losing = [outcome is None or self._is_active(_only_loser(outcome)) for outcome in outcomes]
        count = 0
        while len(coming) > 1:
            count += len(coming) == 2 and self.third_place and all(losing)
            losing = [one and other for one, other in zip(coming[::2], coming[1::2], strict=True)]
            coming = [one or other for one, other in zip(coming[::2], coming[1::2], strict=True)]
            count += sum(losing)
        return count

    def _is_active(self, bot: int | None) -> bool:
        return bot is not None and self.entrants[bot].until is None


def standard_order(count: int) -> list[int]:
    """Return the seeds, counted from 0, from the top of the bracket to its bottom, for ``count`` bots.

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
    """Return the number of matches of two bots among ``count``; with three, the third place needs none."""
    return max(count - 1, 0) + (third_place and count > 3)


def _only_loser(outcome: Outcome | None) -> int | None:
    """Return the loser of a decided match; None if there is none, or both withdrew from it."""
    return outcome.losers[0] if outcome is not None and len(outcome.losers) == 1 else None
