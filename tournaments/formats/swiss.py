"""Swiss system: each round, everybody meets somebody of about the same score."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tournaments.formats.rounds import WIN, half_points, match_of, to_be_played, unplayed
from tournaments.formats.swiss_pairing import NOBODY, Table, pair_round
from tournaments.schedule import Entrant, History, Pairing, Result


@dataclass(frozen=True)
class Round:
    """A round that was paired."""

    number: int
    table: Table
    """Who meets whom, the one that moves first in the first game first; NOBODY is met in a bye."""
    games: tuple[Pairing, ...]


@dataclass(frozen=True)
class Swiss:
    """In each round, each bot meets one opponent in ``pairs`` pairs of games.

    How a round is paired is in swiss_pairing.py.  With an odd number one bot has a bye, worth a point for
    each game that it would have had; a bot that is left alone has none.  A bot that joins late begins without
    points.  The games that a bot leaves unplayed when it withdraws are its opponent's, a point each.  A void
    game is nobody's.
    """

    entrants: Sequence[Entrant]
    rounds: int
    seed: int = 0
    width: int = 1
    """Digits of a bot's number in keys."""
    pairs: int = 1
    """Pairs of games in a match: 2 * pairs games."""

    def pairings(self, history: History) -> list[Pairing]:
        """All rounds that were paired, those with the leaders first in each."""
        return [game for paired in self._paired(history) for game in paired.games]

    def due(self, history: History) -> list[Pairing]:
        """What was paired and not played."""
        return unplayed(self.pairings(history), history, self.entrants)

    def total(self, history: History) -> int:
        """Games of all rounds, if nobody else joins or withdraws."""
        paired = list(self._paired(history))
        now = to_be_played((game for one in paired for game in one.games), history, self.entrants)
        later = range(len(paired) + 1, self.rounds + 1)
        return now + sum(2 * self.pairs * (len(self._playing(number)) // 2) for number in later)

    def places(self, history: History) -> dict[int, int]:
        """None: the table decides."""
        return {}

    def byes(self, history: History) -> dict[int, float]:
        """Points of byes, and of games that an opponent left unplayed when it withdrew."""
        halves = [0] * len(self.entrants)
        for paired in self._paired(history):
            self._add_byes(halves, paired)
            for game in paired.games:
                if game.key not in history.results:
                    self._add_game(halves, game, history.results)
        return {bot: half / 2 for bot, half in enumerate(halves) if half}

    def conclusion(self, history: History) -> str:
        """Nothing beside the table."""
        return ""

    def _playing(self, number: int) -> list[int]:
        return [bot for bot, entrant in enumerate(self.entrants) if entrant.plays(number)]

    def _paired(self, history: History) -> Iterator[Round]:
        """The rounds that were paired, each from what was known when it was: see ``History.at``."""
        done: list[Round] = []
        tables: tuple[Table, ...] = ()
        halves = [0] * len(self.entrants)
        before: Mapping[str, Result] | None = None
        for number in range(1, self.rounds + 1):
            seen = history.at(number)
            uncounted = done[-1:]
            if seen is not before:  # rulings: what was counted so far may have become something else
                halves = [0] * len(self.entrants)
                uncounted = done
            before = seen
            for earlier in uncounted:
                self._add_byes(halves, earlier)
                if not all(self._add_game(halves, game, seen) for game in earlier.games):
                    return
            standing = tuple((bot, halves[bot]) for bot in self._playing(number))
            table = pair_round(standing, tables, self.seed)
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

    def _add_byes(self, halves: list[int], paired: Round) -> None:
        for bot, opponent in paired.table:
            if opponent == NOBODY:
                halves[bot] += WIN * 2 * self.pairs

    def _add_game(self, halves: list[int], game: Pairing, results: Mapping[str, Result]) -> bool:
        """Count a game; False if it has to be waited for."""
        worth = half_points(game, results, self.entrants)
        if worth is not None:
            halves[game.first] += worth[0]
            halves[game.second] += worth[1]
        return worth is not None
