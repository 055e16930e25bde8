"""What a bot is told before its conversation begins: names and texts of environment variables.

The lines of the protocol say neither how long a bot may think nor which game is played (docs/protocol.md); a
bot that knows only one game, and thinks quickly, need not look at these.
"""

import re
from dataclasses import dataclass

TIME_VARIABLE = "KALARENA_TIME"
"""Environment variable with the time control: ``move_ms=1000`` or ``game_ms=60000;increment_ms=500``."""

_TEXT = re.compile(r"(?:[a-z_]+=[0-9]{1,18}(?:;|$))+", re.ASCII)


@dataclass(frozen=True, slots=True)
class AnnouncedTime:
    """How long a bot may think, as it is announced to it; all in milliseconds."""

    move_ms: int | None = None
    """Limit of each single move; None is no such limit."""
    game_ms: int | None = None
    """Limit of all of a bot's moves together; None is no such limit."""
    increment_ms: int = 0
    """Added to what is left of ``game_ms`` after each move."""

    def __str__(self) -> str:
        """The text of the variable; keys without a limit are left out."""
        parts = [
            ("move_ms", self.move_ms),
            ("game_ms", self.game_ms),
            ("increment_ms", self.increment_ms or None),
        ]
        return ";".join(f"{key}={value}" for key, value in parts if value is not None)


def parse_announced_time(text: str) -> AnnouncedTime:
    """The time control of a text; keys that are not known are passed over.  Raises ValueError."""
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
