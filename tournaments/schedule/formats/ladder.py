"""Ladder: an order of bots that matches between neighbours change round by round.

The bots begin in the order of the entrants.  In each round, neighbours meet: places 1 and 2, 3 and 4 and so
on in odd rounds, 2 and 3, 4 and 5 and so on in even rounds, so that a bot can get anywhere; if there are only
two, they meet in every round.  A match is ``pairs`` pairs of games.  The bot with more points takes the
higher one of the two places; with equal points, both stay.  A void game gives no points.  A match that a
withdrawal cut short changes no place.

**New bots are placed first.**  A bot that joins at a later round than the first starts at the bottom; if it
``replaces`` one that plays no more, it takes that one's place.  Before the neighbours of that round meet, all
bots that are new in it are placed:

- a new bot challenges the one above it again and again, until it does not win;
- if it won nothing at all, it meets the one below it, again and again, until it does not lose.  Thus a new
  version that is worse than the old one leaves its place soon;
- a defeat by another new bot from below ends no climb, and a bot that withdraws is skipped.

Several new bots are placed at the same time where their matches share no bot, the higher ones first.  These
matches are part of the round: two that met in one of them do not meet again in the same round.

**A bot that withdraws** is out of the order from the next round on.  Its place is kept for a version that
replaces it, even one that comes weeks later; until then those behind it move up.

**A ruling** counts for the order if the next round was not yet paired when it was made.  Later rulings change
no place: the next matches show a bot's strength.  The ladder still waits for a game that is to be
played again.

``rounds`` can be raised at any time: one round a week, or a hundred at once.  A ladder draws nothing by lot,
and so has no seed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tournaments.schedule.formats.rounds import half_points, match_of, to_be_played
from tournaments.schedule.pairing import Entrant, History, Pairing, Result, Schedule, withdrawn

Match = tuple[Pairing, ...]
"""The games of one match; the first bot of the first one was the lower of the two on the ladder."""


@dataclass
class NewcomerState:
    """The directions in which a new bot may still challenge others."""

    may_rise: bool = True
    may_fall: bool = True
    skipped: set[int] = field(default_factory=set)
    """Opponents that the bot does not meet again, since one of the two withdrew."""


@dataclass
class LadderRound:
    """The paired matches of a round, and the order after the finished ones."""

    order: list[int]
    matches: list[Match] = field(default_factory=list)
    complete: bool = False
    """True if the last matches of the round are paired."""


@dataclass(frozen=True)
class Ladder(Schedule):
    """The order of all bots, changed by matches between neighbours; see the module."""

    entrants: Sequence[Entrant]
    rounds: int
    width: int = 1
    """Digits of a bot's number in keys."""
    pairs: int = 1
    """Pairs of games in a match: 2 * pairs games."""

    def pairings(self, history: History) -> list[Pairing]:
        """Return the games of all rounds so far; in each, new bots' games first, then from the top down."""
        return self._replay(history)[0]

    def total(self, history: History) -> int:
        """Return the number of games of all rounds, without future games that place new bots."""
        games, _, complete = self._replay(history)
        later = range(complete + 1, self.rounds + 1)
        matches = sum(len(neighbours(self._playing(number), number)) for number in later)
        return len(to_be_played(games, history, self.entrants)) + 2 * self.pairs * matches

    def places(self, history: History) -> dict[int, int]:
        """Return the current ladder; bots that withdrew or did not join yet share the rank after the last."""
        _, order, _ = self._replay(history)
        active = [bot for bot in order if self.entrants[bot].until is None]
        return {
            bot: active.index(bot) + 1 if bot in active else len(active) + 1
            for bot in range(len(self.entrants))
        }

    def _playing(self, number: int) -> list[int]:
        return [bot for bot, entrant in enumerate(self.entrants) if entrant.plays(number)]

    def _replay(self, history: History) -> tuple[list[Pairing], list[int], int]:
        """Return the games so far, the current order, and the last round that is paired completely."""
        games: list[Pairing] = []
        ruled: list[Pairing] = []
        order = [bot for bot, entrant in enumerate(self.entrants) if entrant.since <= 1]
        for number in range(1, self.rounds + 1):
            newcomers = self._join(order, number)
            current = self._round(number, order, newcomers, results_by_round(number, history))
            of_round = [game for match in current.matches for game in match]
            games += of_round
            ruled += [game for game in of_round if game.key in history.earlier]
            # The next round is paired from the results known at its time, which may differ from this round's.
            later = history.at(number + 1)
            for match in current.matches:
                self._move(order, match, later)
            # The other games of earlier rounds are known to be complete.
            if not current.complete or self._is_waiting([*of_round, *ruled], later):
                return games, order, number if current.complete else number - 1
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
    ) -> LadderRound:
        """Return the matches of a round as far as the results determine them."""
        current = LadderRound(list(begin))
        placing = {bot: NewcomerState() for bot in newcomers if self.entrants[bot].plays(number)}
        met: set[frozenset[int]] = set()
        gone: set[int] = set()
        while wanted := self._placement(current.order, number, placing, met):
            matches = [match_of(number, lower, upper, self.width, self.pairs) for lower, upper in wanted]
            met |= {frozenset(pair) for pair in wanted}
            for match in matches:
                bots = {match[0].first, match[0].second}
                # Matches after the last one of a bot that withdrew are left out.
                if bots.isdisjoint(gone) or any(game.key in results for game in match):
                    current.matches.append(match)
                if not is_complete(match, results):
                    gone |= {bot for bot in bots & placing.keys() if self.entrants[bot].until is not None}
            if any(self._is_waiting(match, results) for match in matches):
                return current
            for match in matches:
                self._update(match, placing, results)
                self._move(current.order, match, results)
        active = [bot for bot in current.order if self.entrants[bot].plays(number)]
        current.matches += [
            match_of(number, lower, upper, self.width, self.pairs)
            for upper, lower in neighbours(active, number)
            if frozenset((upper, lower)) not in met
        ]
        current.complete = True
        return current

    def _placement(
        self,
        order: Sequence[int],
        number: int,
        placing: Mapping[int, NewcomerState],
        met: set[frozenset[int]],
    ) -> list[tuple[int, int]]:
        """Return the next matches of new bots, (lower, upper) each; none when all have their place."""
        active = [bot for bot in order if self.entrants[bot].plays(number)]
        busy: set[int] = set()
        wanted = []
        for place, bot in enumerate(active):
            newcomer = placing.get(bot)
            if newcomer is None or bot in busy:
                continue
            skipped = newcomer.skipped
            above = next((one for one in reversed(active[:place]) if one not in skipped), None)
            below = next((one for one in active[place + 1 :] if one not in skipped), None)
            if newcomer.may_rise and above is not None and frozenset((bot, above)) not in met:
                pair = (bot, above)
            elif newcomer.may_fall and below is not None and frozenset((bot, below)) not in met:
                pair = (below, bot)
            else:
                continue
            if busy.isdisjoint(pair):
                wanted.append(pair)
                busy |= set(pair)
        return wanted

    def _update(
        self, match: Match, placing: Mapping[int, NewcomerState], results: Mapping[str, Result]
    ) -> None:
        """Update the directions of the new bots that played a match."""
        lower, upper = match[0].first, match[0].second
        if not is_complete(match, results):
            # Both are skipped, so that the rest of the round stays the same if the other one withdraws, too.
            for bot, other in ((lower, upper), (upper, lower)):
                if bot in placing:
                    placing[bot].skipped.add(other)
            return
        ahead = self._lead(match, results)
        if lower in placing:
            if ahead > 0:
                placing[lower].may_fall = False
            else:
                placing[lower].may_rise = False
        if upper in placing and ahead <= 0:
            placing[upper].may_fall = False

    def _move(self, order: list[int], match: Match, results: Mapping[str, Result]) -> None:
        """Give the winner of a complete match the higher one of the two places."""
        if is_complete(match, results) and self._lead(match, results) > 0:
            lower, upper = order.index(match[0].first), order.index(match[0].second)
            if lower > upper:
                order[lower], order[upper] = order[upper], order[lower]

    def _lead(self, match: Match, results: Mapping[str, Result]) -> int:
        """Return the half points by which the lower bot of a match leads."""
        lead = 0
        for game in match:
            one, other = half_points(game, results, self.entrants) or (0, 0)
            lead += one - other if game.first == match[0].first else other - one
        return lead

    def _is_waiting(self, games: Iterable[Pairing], results: Mapping[str, Result]) -> bool:
        return any(game.key not in results and not withdrawn(game, self.entrants) for game in games)


def is_complete(match: Match, results: Mapping[str, Result]) -> bool:
    """Return whether all games of a match have a result: a withdrawal cuts a match short."""
    return all(game.key in results for game in match)


def results_by_round(number: int, history: History) -> Mapping[str, Result]:
    """Return the results that a round's own later matches are paired from.

    These are ``History.at`` and the first result of each game that is missing there.  Otherwise, a game whose
    first result was a ruling would be waited for without end.
    """
    seen = history.at(number)
    missing = [key for key in history.earlier if key not in seen]
    if not missing:
        return seen
    known = dict(seen)
    for key in missing:
        for result in (*(result for _, result in history.earlier[key]), history.results.get(key)):
            if result is not None:
                known[key] = result
                break
    return known


def neighbours(active: Sequence[int], number: int) -> list[tuple[int, int]]:
    """Return the pairs of bots that meet in a round, the upper bot first."""
    begin = 0 if number % 2 or len(active) == 2 else 1
    return list(zip(active[begin::2], active[begin + 1 :: 2], strict=False))
