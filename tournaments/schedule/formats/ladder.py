"""Ladder: an order of bots that goes on for as long as there are rounds.

The bots begin in the order of the entrants.  In each round, neighbours meet: places 1 and 2, 3 and 4 and so
on in odd rounds, 2 and 3, 4 and 5 and so on in even rounds, so that a bot can get anywhere; if there are only
two, they meet in every round.  A match is ``pairs`` pairs of games.  The bot with more points takes the
higher one of the two places; with equal points, both stay.  A void game gives no points.  A match that a
withdrawal cut short changes no place.

**New bots are placed first.**  A bot that joins at a later round than the first starts at the bottom; if it
``replaces`` one that plays no more, it takes that one's place.  Before the neighbours of that round meet, all
that are new in it find their place:

- a new bot challenges the one above it again and again, until it does not win;
- if it won nothing at all, it meets the one below it, again and again, until it does not lose.  Thus a new
  version that is worse than the old one leaves its place soon;
- a defeat by another new bot from below ends no climb, and one that withdraws is passed over.

Several new bots are placed at the same time as far as they are not in each other's way, the higher ones
first.  These matches are part of the round: two that met in one of them do not meet again in the same round.

**A bot that withdraws** is out of the order from the next round on.  Its place is kept for a version that
replaces it, even one that comes weeks later; until then those behind it move up.

**A ruling** counts for the order if the next round was not yet paired when it was made.  Later rulings change
no place: the next matches show a bot's strength.  A game that is to be played again is waited for all the
same.

``rounds`` can be raised at any time: one round a week, or a hundred at once.  There is no chance in a ladder,
and so no seed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tournaments.schedule.formats.rounds import half_points, match_of, to_be_played, unplayed, withdrawn
from tournaments.schedule.pairing import Entrant, History, Pairing, Result

Match = tuple[Pairing, ...]
"""The games of one match; the first bot of the first one was the lower of the two on the ladder."""


@dataclass
class Newcomer:
    """The directions in which a new bot may still challenge others to find its place."""

    climbs: bool = True
    sinks: bool = True
    passed: set[int] = field(default_factory=set)
    """Opponents that it does not meet again, because one of the two withdrew."""


@dataclass
class Climb:
    """The matches of a round that are paired, and the order that they lead to."""

    order: list[int]
    matches: list[Match] = field(default_factory=list)
    complete: bool = False
    """True if the last matches of the round are paired."""


@dataclass(frozen=True)
class Ladder:
    """See the module."""

    entrants: Sequence[Entrant]
    rounds: int
    width: int = 1
    """Digits of a bot's number in keys."""
    pairs: int = 1
    """Pairs of games in a match: 2 * pairs games."""

    def pairings(self, history: History) -> list[Pairing]:
        """All rounds so far; in each, new bots' matches first, then from the top down."""
        return self._walk(history)[0]

    def due(self, history: History) -> list[Pairing]:
        """Return the paired games without a result between bots that did not withdraw."""
        return unplayed(self.pairings(history), history, self.entrants)

    def total(self, history: History) -> int:
        """Games of all rounds, without those that newcomers will need to find their places."""
        games, _, complete = self._walk(history)
        later = range(complete + 1, self.rounds + 1)
        matches = sum(len(neighbours(self._playing(number), number)) for number in later)
        return to_be_played(games, history, self.entrants) + 2 * self.pairs * matches

    def places(self, history: History) -> dict[int, int]:
        """The ladder as it stands; bots that withdrew or did not join yet share the place after the last."""
        _, order, _ = self._walk(history)
        active = [bot for bot in order if self.entrants[bot].until is None]
        return {
            bot: active.index(bot) + 1 if bot in active else len(active) + 1
            for bot in range(len(self.entrants))
        }

    def byes(self, history: History) -> dict[int, float]:
        """Return no byes: the ladder decides, not points."""
        return {}

    def conclusion(self, history: History) -> str:
        """Return no conclusion beside the ladder."""
        return ""

    def _playing(self, number: int) -> list[int]:
        return [bot for bot, entrant in enumerate(self.entrants) if entrant.plays(number)]

    def _walk(self, history: History) -> tuple[list[Pairing], list[int], int]:
        """The games so far, the order now, and the last round that is paired completely."""
        games: list[Pairing] = []
        order = [bot for bot, entrant in enumerate(self.entrants) if entrant.since <= 1]
        for number in range(1, self.rounds + 1):
            newcomers = self._join(order, number)
            climb = self._round(number, order, newcomers, known_in(number, history))
            of_round = [game for match in climb.matches for game in match]
            games += of_round
            # The next round is paired from the results known at its time, which may differ from this round's.
            later = history.at(number + 1)
            for match in climb.matches:
                self._move(order, match, later)
            # Without rulings, the games of earlier rounds are known to be complete.
            if not climb.complete or self._waits(games if history.earlier else of_round, later):
                return games, order, number if climb.complete else number - 1
        return games, order, self.rounds

    def _join(self, order: list[int], number: int) -> list[int]:
        """Put the new bots of a round into the order and return them."""
        if number == 1:
            return []
        newcomers = [bot for bot, entrant in enumerate(self.entrants) if entrant.since == number]
        for bot in newcomers:
            before = self.entrants[bot].replaces
            if before is not None and before in order and not self.entrants[before].plays(number):
                order[order.index(before)] = bot
            else:
                order.append(bot)
        return newcomers

    def _round(
        self, number: int, begin: Sequence[int], newcomers: Sequence[int], results: Mapping[str, Result]
    ) -> Climb:
        """Return the matches of a round as far as the results determine them."""
        climb = Climb(list(begin))
        placing = {bot: Newcomer() for bot in newcomers if self.entrants[bot].plays(number)}
        met: set[frozenset[int]] = set()
        gone: set[int] = set()
        while wanted := self._placement(climb.order, number, placing, met):
            matches = [match_of(number, lower, upper, self.width, self.pairs) for lower, upper in wanted]
            met |= {frozenset(pair) for pair in wanted}
            for match in matches:
                bots = {match[0].first, match[0].second}
                # Matches after the last one of a bot that withdrew are left out.
                if bots.isdisjoint(gone) or any(game.key in results for game in match):
                    climb.matches.append(match)
                if not is_complete(match, results):
                    gone |= {bot for bot in bots & placing.keys() if self.entrants[bot].until is not None}
            if any(self._waits(match, results) for match in matches):
                return climb
            for match in matches:
                self._placed(match, placing, results)
                self._move(climb.order, match, results)
        active = [bot for bot in climb.order if self.entrants[bot].plays(number)]
        climb.matches += [
            match_of(number, lower, upper, self.width, self.pairs)
            for upper, lower in neighbours(active, number)
            if frozenset((upper, lower)) not in met
        ]
        climb.complete = True
        return climb

    def _placement(
        self,
        order: Sequence[int],
        number: int,
        placing: Mapping[int, Newcomer],
        met: set[frozenset[int]],
    ) -> list[tuple[int, int]]:
        """The next matches of new bots, (lower, upper) each; none when all have their place."""
        active = [bot for bot in order if self.entrants[bot].plays(number)]
        busy: set[int] = set()
        wanted = []
        for place, bot in enumerate(active):
            newcomer = placing.get(bot)
            if newcomer is None or bot in busy:
                continue
            passed = placing[bot].passed
            above = next((one for one in reversed(active[:place]) if one not in passed), None)
            below = next((one for one in active[place + 1 :] if one not in passed), None)
            if newcomer.climbs and above is not None and frozenset((bot, above)) not in met:
                pair = (bot, above)
            elif newcomer.sinks and below is not None and frozenset((bot, below)) not in met:
                pair = (below, bot)
            else:
                continue
            if busy.isdisjoint(pair):
                wanted.append(pair)
                busy |= set(pair)
        return wanted

    def _placed(self, match: Match, placing: Mapping[int, Newcomer], results: Mapping[str, Result]) -> None:
        """Update the directions of the new bots that played a match."""
        lower, upper = match[0].first, match[0].second
        if not is_complete(match, results):
            # Both are passed, so that the rest of the round stays the same if the other one withdraws, too.
            for bot, other in ((lower, upper), (upper, lower)):
                if bot in placing:
                    placing[bot].passed.add(other)
            return
        ahead = self._lead(match, results)
        if lower in placing:
            if ahead > 0:
                placing[lower].sinks = False
            else:
                placing[lower].climbs = False
        if upper in placing and ahead <= 0:
            placing[upper].sinks = False

    def _move(self, order: list[int], match: Match, results: Mapping[str, Result]) -> None:
        """Give the winner of a complete match the higher one of the two places."""
        if is_complete(match, results) and self._lead(match, results) > 0:
            lower, upper = order.index(match[0].first), order.index(match[0].second)
            if lower > upper:
                order[lower], order[upper] = order[upper], order[lower]

    def _lead(self, match: Match, results: Mapping[str, Result]) -> int:
        """Half points by which the lower bot of a match leads."""
        lead = 0
        for game in match:
            one, other = half_points(game, results, self.entrants) or (0, 0)
            lead += one - other if game.first == match[0].first else other - one
        return lead

    def _waits(self, games: Iterable[Pairing], results: Mapping[str, Result]) -> bool:
        return any(game.key not in results and not withdrawn(game, self.entrants) for game in games)


def is_complete(match: Match, results: Mapping[str, Result]) -> bool:
    """Return whether all games of a match have a result: a withdrawal cuts a match short."""
    return all(game.key in results for game in match)


def known_in(number: int, history: History) -> Mapping[str, Result]:
    """Return the results that a round's own later matches are paired from.

    These are ``History.at`` and the first result of each game that is missing there.  Otherwise, a game whose
    first result was a ruling would be waited for without end.
    """
    seen = history.at(number)
    if not history.earlier:
        return seen
    known = dict(seen)
    for key in history.earlier.keys() - seen.keys():
        for result in (*(result for _, result in history.earlier[key]), history.results.get(key)):
            if result is not None:
                known[key] = result
                break
    return known


def neighbours(active: Sequence[int], number: int) -> list[tuple[int, int]]:
    """Return the pairs of bots that meet in a round, the upper bot first."""
    begin = 0 if number % 2 or len(active) == 2 else 1
    return list(zip(active[begin::2], active[begin + 1 :: 2], strict=False))
