"""Environment variables that announce the time control to a bot, and their texts.

The lines of the protocol contain neither the time control nor the name of the game (docs/protocol.md); a bot
that plays only one game, and quickly, can ignore these variables.
"""

import re
from dataclasses import dataclass

TIME_VARIABLE = "KALARENA_TIME"
"""Environment variable with the time control: ``move_ms=1000`` or ``game_ms=60000;increment_ms=500``."""

_TEXT = re.compile(r"(?:[a-z_]+=[0-9]{1,18}(?:;|$))+", re.ASCII)


@dataclass(frozen=True, slots=True)
class AnnouncedTime:
    """The time control as it is announced to a bot; all values in milliseconds."""

    move_ms: int | None = None
    """Limit of each single move; None for no such limit."""
    game_ms: int | None = None
    """Limit of all of a bot's moves together; None for no such limit."""
    increment_ms: int = 0
    """Time added to the rest of ``game_ms`` after each move."""

    def __str__(self) -> str:
        """Return the text of the variable; keys without a limit are left out."""
        parts = [
            ("move_ms", self.move_ms),
            ("game_ms", self.game_ms),
            ("increment_ms", self.increment_ms or None),
        ]
        return ";".join(f"{key}={value}" for key, value in parts if value is not None)


def parse_announced_time(text: str) -> AnnouncedTime:
    """Parse the text of the variable; unknown keys are ignored.  Raises ValueError."""
    if not _TEXT.fullmatch(text):
        raise ValueError(
            f"{text[:80]!r} is no time control: expected key=milliseconds, separated by semicolons"
        )
    values = dict(part.split("=") for part in text.rstrip(";").split(";"))
    move, game = values.get("move_ms"), values.get("game_ms")
    return AnnouncedTime(
        int(move) if move is not None else None,
        int(game) if game is not None else None,
        int(values.get("increment_ms", 0)),
    )
