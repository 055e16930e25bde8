"""The record of one played scenario.  Pure."""

from dataclasses import dataclass

from referee.conformance.script import Seen
from referee.games.base import Side
from referee.games.catalog import parse_game
from referee.judge.results import GONE, GameRecord, MoveRecord, Reason
from tournaments.checking.scenarios import Scenario

NEVER_STARTED = "before it had taken its START line"
"""Words of referee/judge/verdict_text.py for a process that ended before its first turn."""


@dataclass(frozen=True)
class Played:
    """A scenario with its game record."""

    scenario: Scenario
    record: GameRecord
    seen: Seen | None = None
    """Observations of an interview; None for a game between processes."""

    @property
    def bot(self) -> int:
        """The checked bot's number in the record."""
        return self.scenario.index

    @property
    def lost_by_fault(self) -> bool:
        """True if the checked bot lost by a fault."""
        result = self.record.result
        return result.fault is not None and result.winner != self.bot

    @property
    def never_started(self) -> bool:
        """True if the checked bot ended before it had taken its START line."""
        result = self.record.result
        return self.lost_by_fault and (
            result.reason is Reason.START or (result.reason in GONE and NEVER_STARTED in result.detail)
        )

    @property
    def ended_regularly(self) -> bool:
        """True if the game was played to its end by the rules."""
        return self.record.result.fault is None

    @property
    def was_ended_early(self) -> bool:
        """True if the examiner ended a game that was to be played out, because it had taken long enough."""
        examiner = self.scenario.examiner
        if examiner is None or self.ended_regularly or self.lost_by_fault:
            return False
        return examiner.stops_at is None and examiner.leaves_in is None

    @property
    def own_moves(self) -> list[MoveRecord]:
        """The checked bot's moves."""
        return [move for move in self.record.moves if move.player == self.bot]

    @property
    def swaps(self) -> list[int]:
        """The numbers of the players that swapped."""
        return [move.player for move in self.record.moves if move.move == "SWAP"]

    @property
    def seat(self) -> str:
        """The name of the seat that the bot began in."""
        game = parse_game(self.scenario.game)
        return game.seats(game.initial_state())[Side(self.bot)]

    def lines(self, direction: str) -> list[str]:
        """The lines ``to`` or ``from`` the checked bot."""
        return [
            line.line for line in self.record.wire if (line.player, line.direction) == (self.bot, direction)
        ]

    def longest_chain(self, player: int) -> int:
        """The most moves that a player made in a row."""
        longest = run = 0
        for move in self.record.moves:
            run = run + 1 if move.player == player and move.move != "SWAP" else 0
            longest = max(longest, run)
        return longest
