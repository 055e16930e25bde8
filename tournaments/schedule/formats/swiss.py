"""Swiss system: in each round, every bot meets an opponent with about the same score."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tournaments.schedule.formats.rounds import WIN, half_points, match_of, to_be_played
from tournaments.schedule.formats.swiss_pairing import Table, pair_round
from tournaments.schedule.pairing import NOBODY, Entrant, History, MatchScore, Pairing, Result, Schedule

GAMES, MATCH = "games", "match"
"""Unit that scores points: a game or a match."""
MATCH_WIN, MATCH_DRAW = 2, 1
"""Match points of a match that is won or drawn, as at the Chess Olympiads (FIDE Handbook, D.02)."""


@dataclass(frozen=True)
class Round:
    """A round that was paired."""

    number: int
    table: Table
    """The matches: the bot that moves first in the first game, then its opponent, NOBODY in a bye."""
    games: tuple[Pairing, ...]


@dataclass(frozen=True)
class Swiss(Schedule):
    """In each round, each bot meets one opponent in ``pairs`` pairs of games.

    swiss_pairing.py pairs each round.  With an odd number one bot has a bye, worth a point for
    each game that it would have had; a single remaining bot has none.  A bot that joins late begins without
    points.  The games that a bot leaves unplayed when it withdraws are its opponent's, a point each.  A void
    game gives no points.

    The pairings that the organiser fixed or forbade are in ``History.manual``.  A fixed pairing of a bot that
    withdrew before that round is dropped.

    With ``scoring`` MATCH, bots are paired by match points: 2 for a match won, 1 for a match drawn, 2 for a
    bye.  A match of which no game counts gives none.
    """

    entrants: Sequence[Entrant]
    rounds: int
    seed: int = 0
    width: int = 1
    """Digits of a bot's number in keys."""
    pairs: int = 1
    """Pairs of games in a match: 2 * pairs games."""
    scoring: str = GAMES
    """GAMES or MATCH."""

    def pairings(self, history: History) -> list[Pairing]:
        """Return the games of the paired rounds, those of the leaders first in each."""
        return [game for paired in self._paired(history) for game in paired.games]

    def total(self, history: History) -> int:
        """Return the number of games of all rounds, if no other bot joins or withdraws."""
        paired = list(self._paired(history))
        now = to_be_played((game for one in paired for game in one.games), history, self.entrants)
        later = 0
        for number in range(len(paired) + 1, self.rounds + 1):
            playing = self._playing(number)
            byes = sum(NOBODY in pair for pair in history.manual.fixed_in(number, playing))
            later += (len(playing) - byes) // 2
        return len(now) + 2 * self.pairs * later

    def byes(self, history: History) -> dict[int, float]:
        """Return points of byes, and of games that an opponent left unplayed when it withdrew."""
        halves = [0] * len(self.entrants)
        for paired in self._paired(history):
            self._add_byes(halves, paired)
            for game in paired.games:
                if game.key not in history.results:
                    self._add_game(halves, game, history.results)
        return {bot: half / 2 for bot, half in enumerate(halves) if half}

    def matches(self, history: History) -> list[MatchScore] | None:
        """Return the matches that are over, byes included; None if points are given for games."""
        if self.scoring == GAMES:
            return None
        scores = (
            self._match(paired.number, first, second, history.results)
            for paired in self._paired(history)
            for first, second in paired.table
        )
        return [score for score in scores if score is not None]

    def _playing(self, number: int) -> list[int]:
        return [bot for bot, entrant in enumerate(self.entrants) if entrant.plays(number)]

    def _paired(self, history: History) -> Iterator[Round]:
        """Yield the rounds that were paired, each from the results known at its time: see ``History.at``."""
        done: list[Round] = []
        tables: tuple[Table, ...] = ()
        scores = [0] * len(self.entrants)
        before: Mapping[str, Result] | None = None
        manual = history.manual
        for number in range(1, self.rounds + 1):
            seen = history.at(number)
            uncounted = done[-1:]
            if seen is not before:  # rulings: what was counted so far may have become something else
                scores = [0] * len(self.entrants)
                uncounted = done
            before = seen
            for earlier in uncounted:
                if not self._add_round(scores, earlier, seen):
                    return
            playing = self._playing(number)
            standing = tuple((bot, scores[bot]) for bot in playing)
            fixed, forbidden = manual.fixed_in(number, playing), manual.forbidden_in(number)
            table = pair_round(standing, tables, self.seed, fixed, forbidden)
            tables += (table,)
            done.append(Round(number, table, self._games(number, table)))
            yield done[-1]

    def _games(self, number: int, table: Table) -> tuple[Pairing, ...]:
        return tuple(
            game
            for first, second in table
            if second != NOBODY
            for game in match_of(number, first, second, self.width, self.pairs)
        )

    def _add_round(self, scores: list[int], paired: Round, results: Mapping[str, Result]) -> bool:
        """Count a round in half or match points; return False if one of its games is not over."""
        if self.scoring == GAMES:
            self._add_byes(scores, paired)
            return all(self._add_game(scores, game, results) for game in paired.games)
        for first, second in paired.table:
            score = self._match(paired.number, first, second, results)
            if score is None:
                return False
            scores[first] += score.points[0]
            if second != NOBODY:
                scores[second] += score.points[1]
        return True

    def _match(
        self, number: int, first: int, second: int, results: Mapping[str, Result]
    ) -> MatchScore | None:
        """Return the score of a match or a bye; None while one of its games is not over."""
        if second == NOBODY:
            return MatchScore(first, second, (MATCH_WIN, 0), is_played=False)
        lead = total = 0
        is_played = False
        for game in match_of(number, first, second, self.width, self.pairs):
            worth = half_points(game, results, self.entrants)
            if worth is None:
                return None
            difference = worth[0] - worth[1]
            lead += difference if game.first == first else -difference
            total += sum(worth)
            is_played |= game.key in results and results[game.key].counts
        if lead == 0:
            draw = MATCH_DRAW if total else 0
            return MatchScore(first, second, (draw, draw), is_played)
        return MatchScore(first, second, (MATCH_WIN, 0) if lead > 0 else (0, MATCH_WIN), is_played)

    def _add_byes(self, halves: list[int], paired: Round) -> None:
        for bot, opponent in paired.table:
            if opponent == NOBODY:
                halves[bot] += WIN * 2 * self.pairs

    def _add_game(self, halves: list[int], game: Pairing, results: Mapping[str, Result]) -> bool:
        """Count a game; return False if it is awaited."""
        worth = half_points(game, results, self.entrants)
        if worth is not None:
            halves[game.first] += worth[0]
            halves[game.second] += worth[1]
        return worth is not None
