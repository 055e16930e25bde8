"""What verdicts on items rest on, and what they are.  Pure."""

from collections.abc import Callable
from dataclasses import dataclass

from tournaments.checking.played import Played
from tournaments.checking.report import Status

OUT_OF_TIME = "the time for the whole check"
"""How a reason for leaving something out begins, if it is that there was no time left."""


@dataclass(frozen=True)
class Evidence:
    """All that the verdicts on one game's items rest on."""

    game: str
    played: tuple[Played, ...]
    cut: dict[str, str]
    """Item id -> why scenarios of it were left out."""
    capabilities: tuple[str, ...] = ()
    memory_mb: int = 0
    stderr_bytes: int = 0
    end_grace_s: float = 0.0

    @property
    def interviews(self) -> list[Played]:
        """Those that were watched closely."""
        return [each for each in self.played if each.seen is not None]

    def of(self, item: str) -> list[Played]:
        """Those that were played for an item."""
        return [each for each in self.played if each.scenario.item == item]


@dataclass(frozen=True)
class Verdict:
    """An item without its name."""

    status: Status
    sentence: str
    advice: str = ""
    details: tuple[str, ...] = ()
    cause: str = ""
    """Alike for what is the same mistake in another game; empty if that cannot be said."""
    where: str = ""
    """The game in which it showed."""


def counted(number: int, what: str) -> str:
    """``1 game``, ``2 games``."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def passed(sentence: str, details: tuple[str, ...] = ()) -> Verdict:
    """Nothing to be done."""
    return Verdict(Status.PASSED, sentence, "", details)


def failed(
    sentence: str, advice: str, details: tuple[str, ...] = (), *, cause: str = "", where: str = ""
) -> Verdict:
    """Something that loses games, or would with another referee."""
    return Verdict(Status.FAILED, sentence, advice, details, cause, where)


def warned(sentence: str, advice: str, details: tuple[str, ...] = ()) -> Verdict:
    """Something to look at."""
    return Verdict(Status.WARNING, sentence, advice, details)


def skipped(sentence: str) -> Verdict:
    """Not tried."""
    return Verdict(Status.SKIPPED, sentence)


Judge = Callable[[Evidence], Verdict]
"""Gives the verdict on one item."""
