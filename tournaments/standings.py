"""Tables from results.  Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from referee.results import GameRecord, Reason


@dataclass(frozen=True, slots=True)
class GameSummary:
    """What a table needs to know of a game."""

    key: str
    round: int
    first: str
    """Name of the bot that moved first."""
    second: str
    winner: int | None
    """0 is ``first``, 1 is ``second``, None is a draw."""
    reason: Reason
    fault: str | None
    detail: str
    score: tuple[int, int] | None
    moves: tuple[int, int]
    """Moves made by first and second."""
    wall_us: tuple[int, int]
    """Wall time of these moves together."""
    charged_us: tuple[int, int]
    """What was charged of it."""
    sandbox: str
    """How the bots were confined, see referee/sandbox.py."""

    @classmethod
    def of(cls, record: GameRecord, round_number: int) -> "GameSummary":
        """The summary of a record."""
        result = record.result
        moves = [[move for move in record.moves if move.player == player] for player in (0, 1)]
        return cls(
            key=record.key,
            round=round_number,
            first=record.players[0].name,
            second=record.players[1].name,
            winner=result.winner,
            reason=result.reason,
            fault=result.fault,
            detail=result.detail,
            score=result.score,
            moves=(len(moves[0]), len(moves[1])),
            wall_us=(sum(move.wall_us for move in moves[0]), sum(move.wall_us for move in moves[1])),
            charged_us=(sum(move.charged_us for move in moves[0]), sum(move.charged_us for move in moves[1])),
            sandbox=record.sandbox,
        )


@dataclass
class Standing:
    """One bot's line of the table."""

    name: str
    wins: int = 0
    draws: int = 0
    losses: int = 0
    forfeits: int = 0
    """Those of the losses that were by a fault, not by score."""
    moves: int = 0
    charged_us: int = 0
    rank: int = 0
    """Counted from 1; bots that the ranking cannot tell apart share one."""
    versus: dict[str, "Versus"] = field(default_factory=dict)
    """Opponent -> record against it, from this bot's side."""

    @property
    def games(self) -> int:
        """Games played."""
        return self.wins + self.draws + self.losses

    @property
    def points(self) -> float:
        """1 for a win, 0.5 for a draw."""
        return self.wins + self.draws / 2

    @property
    def mean_move_ms(self) -> float | None:
        """Average charged time of a move in milliseconds over all games; None without a move."""
        return self.charged_us / self.moves / 1000 if self.moves else None


@dataclass
class Versus:
    """One bot's record against another."""

    wins: int = 0
    draws: int = 0
    losses: int = 0

    @property
    def points(self) -> float:
        """1 for a win, 0.5 for a draw."""
        return self.wins + self.draws / 2

    @property
    def games(self) -> int:
        """Games played."""
        return self.wins + self.draws + self.losses


RANKINGS = ("points", "wins-then-speed")


class Tally:
    """The table of the games so far; takes one game after the other."""

    def __init__(self, names: Sequence[str], games: Iterable[GameSummary] = ()) -> None:
        self._lines = {
            name: Standing(name, versus={other: Versus() for other in names if other != name})
            for name in names
        }
        for game in games:
            self.add(game)

    def add(self, game: GameSummary) -> None:
        """Count a game."""
        players = (self._lines[game.first], self._lines[game.second])
        for index, player in enumerate(players):
            versus = player.versus[players[1 - index].name]
            if game.winner is None:
                player.draws += 1
                versus.draws += 1
            elif game.winner == index:
                player.wins += 1
                versus.wins += 1
            else:
                player.losses += 1
                versus.losses += 1
                player.forfeits += game.fault is not None
            player.moves += game.moves[index]
            player.charged_us += game.charged_us[index]

    def table(self, ranking: str) -> list[Standing]:
        """The table, best first.

        ``points``: points, then wins.  ``wins-then-speed``: games won, then the lower average time per
        move (the Manchester course's rule).  Within a shared rank, by name.
        """
        merit: dict[str, tuple[float, float]]
        if ranking == "points":
            merit = {name: (-line.points, -line.wins) for name, line in self._lines.items()}
        elif ranking == "wins-then-speed":
            merit = {name: (-line.wins, _or_slowest(line.mean_move_ms)) for name, line in self._lines.items()}
        else:
            raise ValueError(f"no ranking {ranking!r}; there are {', '.join(RANKINGS)}")
        ordered = sorted(self._lines.values(), key=lambda line: (merit[line.name], line.name))
        for place, line in enumerate(ordered, 1):
            same = place > 1 and merit[line.name] == merit[ordered[place - 2].name]
            line.rank = ordered[place - 2].rank if same else place
        return ordered


def standings(names: Sequence[str], games: Iterable[GameSummary], ranking: str) -> list[Standing]:
    """The table of these games; see ``Tally.table``."""
    return Tally(names, games).table(ranking)


def _or_slowest(time_ms: float | None) -> float:
    return float("inf") if time_ms is None else time_ms
