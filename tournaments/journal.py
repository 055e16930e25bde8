"""The journal: what people ruled of a tournament, appeals and late bots.  It is only ever added to."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Action(StrEnum):
    """What was ruled."""

    VOID = "void"
    """A game counts for nobody, and is not played again."""
    REPLAY = "replay"
    """A game counts for nobody, and is played again."""
    WITHDRAW = "withdraw"
    """A bot plays no more; ``data["annul"]`` says whether its games count for nobody, ``data["games"]`` has
    their keys: if it is restored, it may play others."""
    ADD = "add"
    """A bot joins: ``data`` has ``bot`` (as a tournament file would have it), ``base`` (the folder that its
    paths are taken from), ``digest``, and ``replaces``, the name of the bot whose place it takes, or None."""
    RESTORE = "restore"
    """A ruling is taken back: a game that was void counts again, a bot that withdrew plays on, with the games
    that were annulled.  ``data["what"]`` is ``game`` or ``bot``."""


GAME, BOT = "game", "bot"
"""What an entry that restores is about."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One ruling."""

    action: Action
    subject: str
    """Key of a game, or name of a bot."""
    why: str
    round: int
    """The round that was under way: pairings of it, and of those before, stay as they are."""
    at: str
    """UTC, ISO 8601."""
    data: Mapping[str, Any] = field(default_factory=dict)
    number: int | None = None
    """Counted from 1; None until it is kept."""

    @property
    def is_of_game(self) -> bool:
        """Whether the subject is a game, and not a bot."""
        return self.action in (Action.VOID, Action.REPLAY) or self.data.get("what") == GAME

    def __str__(self) -> str:
        extra = ""
        if self.action is Action.WITHDRAW:
            extra = " (its games count for nobody)" if self.data.get("annul") else " (its games still count)"
        elif self.action is Action.ADD and self.data.get("replaces"):
            extra = f" (in the place of {self.data['replaces']})"
        return f"{self.action} {self.subject}{extra}: {self.why}"
