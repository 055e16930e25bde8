"""Tags of games that are worth a look, computed from the summaries of a competition's games.  Pure.

No tag needs a game's record, so that a list of many games has its tags at once.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from referee.judge.clock import game_limit_in
from referee.judge.results import Reason
from tournaments.analysis.standing import Standing
from tournaments.results.game_summary import GameSummary

UPSET_ELO = 200.0
"""Least lead of the loser's rating in an upset.

The expected score of such a favourite is 76 %: it wins three of four games.  With 100 Elo (64 %) every third
game between these two would be an upset, which is too common for the word.
"""
RATED_GAMES = 10
"""Different games that both ratings of an upset rest on at least.

The 95 % interval of a level match of 10 games is 100 to 124 Elo wide to each side, half of UPSET_ELO or a bit
more.  With far fewer games, many upsets would be errors of the ratings.
"""
COMEBACK_PERMILLE = 150
"""Minimum deficit of the winner in a comeback, in thousandths of all seeds: 15 of 98, 8 of 48, 4 of 24.

In games of the weaker reference players on these three boards (411 games, 4 random moves at the start), a bot
that was so far behind won 9 to 15 % of the time, and 7 to 13 % of all wins were comebacks.
"""
LONGEST_SHARE = 0.01
"""Share of the longest games among those that were played to their end.

One in a hundred is few enough to look at all of them: a page of a list has 100 games.
"""
LONGEST_AMONG = 20
"""Games played to their end from which on there is a longest one.

In a competition of fewer games, a reader of the list sees the longest one without a tag.
"""
TIME_LEFT_SHARE = 0.1
"""Share of the limit per game that a bot in time trouble has left at most.

A bot that goes on at the same pace then has time for a ninth of the moves that it has made: it must hurry, or
lose on time.
"""


class Tag(StrEnum):
    """Tags of games; a game may have several."""

    UPSET = "upset"
    """The winner's rating is at least UPSET_ELO below the loser's, and both rest on RATED_GAMES games.

    A win by a fault of the loser is one, too: a strong bot that crashes is a surprise.
    """
    COMEBACK = "comeback"
    """Won by score after a deficit in the stores of at least COMEBACK_PERMILLE of all seeds.

    A win because of the opponent's crash is no comeback.  Games without stores have no comebacks.
    """
    LONGEST = "longest"
    """Played to its end, with as many moves as one of the longest LONGEST_SHARE of these games.

    The number is greater than the median: where all games have the same length, none is the longest.
    """
    BY_FAULT = "by fault"
    """Lost by a fault, such as an illegal move or a crash, and not by score."""
    TIME_TROUBLE = "time trouble"
    """Lost on time; or, under a limit per game, a bot had at most TIME_LEFT_SHARE of it left at the end.

    Limits per move alone give no trouble that lasts: each move has its whole time.
    """


@dataclass(frozen=True)
class Tagger:
    """Tags the games of one competition."""

    ratings: Mapping[str, float] = field(default_factory=dict)
    """Bot -> rating, for bots with enough games."""
    longest: int | None = None
    """Least number of moves of a game with the tag LONGEST; None if no game has the tag."""
    game_limit: tuple[float, float] | None = None
    """Limit per game and increment in seconds; None without a limit that all games had."""

    @classmethod
    def of(cls, table: Iterable[Standing], games: Sequence[GameSummary], control: str = "") -> "Tagger":
        """Return the tagger of a competition.

        Args:
            table: Its standings.
            games: All of its games.
            control: Its time control in words, if it was the same in all games.

        """
        ratings = {
            line.name: line.rating.value
            for line in table
            if line.rating is not None and line.unique >= RATED_GAMES
        }
        return cls(ratings, _least_of_longest(games), game_limit_in(control))

    def tags(self, game: GameSummary) -> tuple[Tag, ...]:
        """Return the tags of a game, in the order of ``Tag``."""
        holds = {
            Tag.UPSET: self._is_upset(game),
            Tag.COMEBACK: _is_whole(game) and (game.deficit_permille or 0) >= COMEBACK_PERMILLE,
            Tag.LONGEST: self.longest is not None and _is_whole(game) and sum(game.moves) >= self.longest,
            Tag.BY_FAULT: game.fault is not None,
            Tag.TIME_TROUBLE: game.reason is Reason.TIMEOUT
            or any(map(self._is_short_of_time, game.moves, game.charged_us)),
        }
        return tuple(tag for tag in Tag if holds[tag])

    def _is_upset(self, game: GameSummary) -> bool:
        if game.winner is None:
            return False
        bots = game.first, game.second
        winner, loser = (self.ratings.get(bots[side]) for side in (game.winner, 1 - game.winner))
        return winner is not None and loser is not None and loser - winner >= UPSET_ELO

    def _is_short_of_time(self, moves: int, charged_us: int) -> bool:
        if self.game_limit is None:
            return False
        limit_s, increment_s = self.game_limit
        return limit_s + moves * increment_s - charged_us / 1e6 <= TIME_LEFT_SHARE * limit_s


def _is_whole(game: GameSummary) -> bool:
    """Return True if a game was played to its end, and not ended by a fault or a cap on its turns."""
    return game.reason is Reason.SCORE


def _least_of_longest(games: Iterable[GameSummary]) -> int | None:
    lengths = sorted(sum(game.moves) for game in games if _is_whole(game))
    if len(lengths) < LONGEST_AMONG:
        return None
    least = lengths[-max(1, int(len(lengths) * LONGEST_SHARE))]
    return least if least > lengths[len(lengths) // 2] else None
