"""Played scenarios, the evidence on one game, and verdicts.  Pure.

The verdict functions of ``gameplay``, ``output_rules`` and ``resource_usage`` take an ``Evidence`` and return
a ``Verdict``.
"""

from dataclasses import dataclass

from referee.conformance.script import FORFEIT_LINE, Observations
from referee.judge.record_rows import MoveRecord
from referee.judge.results import GONE, GameRecord, Reason
from tournaments.checking.report import Status
from tournaments.checking.scenarios import Scenario

NEVER_STARTED = "before it had taken its START line"
"""Words of referee/judge/verdict_text.py for a process that ended before its first turn."""
OUT_OF_TIME = "the time for the whole check"
"""Prefix of a reason for leaving something out because there was no time left."""


@dataclass(frozen=True)
class PlayedScenario:
    """A scenario with its game record."""

    scenario: Scenario
    record: GameRecord
    observed: Observations | None = None
    """Observations in a conformance game; None for a game between processes."""

    @property
    def where(self) -> str:
        """Words that name the game at the beginning of a sentence."""
        return f"in the game {self.scenario.title}"

    @property
    def bot(self) -> int:
        """The checked bot's number in the record."""
        return self.scenario.index

    @property
    def protocol(self) -> str:
        """The checked bot's protocol if an adapter translates it; else empty."""
        return self.record.players[self.bot].protocol

    @property
    def lost_by_fault(self) -> bool:
        """True if the checked bot lost by a fault."""
        result = self.record.result
        return result.fault is not None and result.winner != self.bot

    @property
    def lost_on_time(self) -> bool:
        """True if the checked bot lost by a late move."""
        return self.lost_by_fault and self.record.result.fault == "late"

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
    def opponent_failed(self) -> bool:
        """True if the opponent lost by a fault that was not on purpose."""
        if self.ended_regularly or self.lost_by_fault:
            return False
        opponent = self.scenario.test_opponent
        return opponent is None or (opponent.leaves_in is None and not self._is_forfeited)

    @property
    def was_ended_early(self) -> bool:
        """True if the test opponent ended a game that was to be played out, because it took too long."""
        opponent = self.scenario.test_opponent
        if opponent is None or self.ended_regularly or self.lost_by_fault:
            return False
        return opponent.stops_at is None and opponent.leaves_in is None and self._is_forfeited

    @property
    def _is_forfeited(self) -> bool:
        """True if the opponent's last line is the one by which a test opponent loses on purpose."""
        return self._lines(1 - self.bot, "from")[-1:] == [FORFEIT_LINE]

    @property
    def own_moves(self) -> list[MoveRecord]:
        """The checked bot's moves."""
        return [move for move in self.record.moves if move.player == self.bot]

    @property
    def swaps(self) -> list[int]:
        """The numbers of the players that swapped."""
        return [move.player for move in self.record.moves if move.move == "SWAP"]

    def lines(self, direction: str) -> list[str]:
        """Return the lines ``to`` or ``from`` the checked bot."""
        return self._lines(self.bot, direction)

    def _lines(self, player: int, direction: str) -> list[str]:
        return [
            line.line for line in self.record.wire if (line.player, line.direction) == (player, direction)
        ]

    def longest_chain(self, player: int) -> int:
        """Return the most moves that a player made in a row."""
        longest = run = 0
        for move in self.record.moves:
            run = run + 1 if move.player == player and move.move != "SWAP" else 0
            longest = max(longest, run)
        return longest


@dataclass(frozen=True)
class Evidence:
    """The evidence for the verdicts on one game's items."""

    game: str
    played: tuple[PlayedScenario, ...]
    left_out: dict[str, str]
    """Item id -> the reason why scenarios of the item were left out."""
    capabilities: tuple[str, ...] = ()
    memory_mb: int = 0
    stderr_bytes: int = 0
    end_grace_s: float = 0.0

    @property
    def observed(self) -> list[tuple[PlayedScenario, Observations]]:
        """The conformance games, each with its observations."""
        return [(each, each.observed) for each in self.played if each.observed is not None]

    @property
    def has_started(self) -> bool:
        """True if the bot took its START line in a game."""
        return not all(each.never_started for each in self.played)

    def played_for(self, item: str) -> list[PlayedScenario]:
        """Return the scenarios that were played for an item."""
        return [each for each in self.played if each.scenario.item == item]


@dataclass(frozen=True)
class Verdict:
    """The verdict on an item, without the item's name."""

    status: Status
    sentence: str
    advice: str = ""
    details: tuple[str, ...] = ()
    cause: str = ""
    """The same text for the same mistake in another game; empty if mistakes cannot be compared."""
    where: str = ""
    """Words for the game in which the mistake showed."""
    games: tuple[PlayedScenario, ...] = ()
    """Games that the sentence or the details name."""


def passed(sentence: str, details: tuple[str, ...] = ()) -> Verdict:
    """Return the verdict on an item that needs no change."""
    return Verdict(Status.PASSED, sentence, "", details)


def failed(
    sentence: str,
    advice: str,
    details: tuple[str, ...] = (),
    *,
    games: tuple[PlayedScenario, ...] = (),
    cause: str = "",
    where: str = "",
) -> Verdict:
    """Return the verdict on a fault that loses games, or would with another referee."""
    return Verdict(Status.FAILED, sentence, advice, details, cause, where, games)


def warned(
    sentence: str,
    advice: str = "",
    details: tuple[str, ...] = (),
    *,
    games: tuple[PlayedScenario, ...] = (),
) -> Verdict:
    """Return the verdict on something to look at."""
    return Verdict(Status.WARNING, sentence, advice, details, games=games)


def skipped(sentence: str) -> Verdict:
    """Return the verdict on an item that was not tried."""
    return Verdict(Status.SKIPPED, sentence)
