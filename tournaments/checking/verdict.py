"""The evidence for verdicts on items, and the verdicts.  Pure."""

from collections.abc import Callable
from dataclasses import dataclass

from tournaments.checking.played import Played
from tournaments.checking.report import Status

OUT_OF_TIME = "the time for the whole check"
"""Prefix of a reason for leaving something out because there was no time left."""


@dataclass(frozen=True)
class Evidence:
    """The evidence for the verdicts on one game's items."""

    game: str
    played: tuple[Played, ...]
    cut: dict[str, str]
    """Item id -> the reason why scenarios of it were left out."""
    capabilities: tuple[str, ...] = ()
    memory_mb: int = 0
    stderr_bytes: int = 0
    end_grace_s: float = 0.0

    @property
    def interviews(self) -> list[Played]:
        """The interviews among the played scenarios."""
        return [each for each in self.played if each.seen is not None]

    def of(self, item: str) -> list[Played]:
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
    """The game in which it showed."""


def counted(number: int, what: str) -> str:
    """Return ``1 game`` or ``2 games``."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def passed(sentence: str, details: tuple[str, ...] = ()) -> Verdict:
    """Return the verdict on an item that needs no change."""
    return Verdict(Status.PASSED, sentence, "", details)


def failed(
    sentence: str, advice: str, details: tuple[str, ...] = (), *, cause: str = "", where: str = ""
) -> Verdict:
    """Return the verdict on a fault that loses games, or would with another referee."""
    return Verdict(Status.FAILED, sentence, advice, details, cause, where)


def warned(sentence: str, advice: str, details: tuple[str, ...] = ()) -> Verdict:
    """Return the verdict on something to look at."""
    return Verdict(Status.WARNING, sentence, advice, details)


def skipped(sentence: str) -> Verdict:
    """Return the verdict on an item that was not tried."""
    return Verdict(Status.SKIPPED, sentence)


Judge = Callable[[Evidence], Verdict]
"""Function that returns the verdict on one item."""
