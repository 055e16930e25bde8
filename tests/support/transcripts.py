"""The recorded conversations of the course's own engine, tests/data/transcripts (format in its README)."""

import json
from dataclasses import dataclass
from typing import Any

from tests.support.paths import TEST_DATA

DIRECTORY = TEST_DATA / "transcripts"
SEATS = ("South-agent", "North-agent")
"""By initial seat, which is also the order of the players."""

LIMIT_S = 3.0
"""Seconds for each bot and game in records with the tag "limit constant 3000 ms"."""
SLOW_REPLY_S = 0.7
"""Seconds that the bot of ``0.7s-per-move`` takes for each reply."""


@dataclass(frozen=True)
class Transcript:
    """One recorded game."""

    file: str
    index: int
    data: dict[str, Any]

    @property
    def tag(self) -> str:
        return str(self.data["tag"])

    @property
    def name(self) -> str:
        return f"{self.file}-{self.index}-{self.tag}"

    @property
    def events(self) -> list[dict[str, Any]]:
        return list(self.data["events"])

    @property
    def limited(self) -> bool:
        return "limit constant" in self.tag

    def sent_to(self, seat: str) -> list[str]:
        """Return the lines that the engine sent to the bot that began in this seat."""
        return [event["line"] for event in self.events if event.get("to") == seat]

    @property
    def killed(self) -> bool:
        """True if the operator ended the game because the bot hung without a limit."""
        return self.tag.startswith("fault:nonl:")

    @property
    def winner(self) -> int | None:
        winner = self.data["result"]["winner"]
        return SEATS.index(winner) if winner in SEATS else None

    @property
    def exiting(self) -> int | None:
        """The bot that ends by itself in the middle of the game."""
        if not any(word in self.tag for word in (":exit", "moveexit", "nonlexit")):
            return None
        return 0 if "scripted" in self.data["South-agent"] else 1


def load(file: str) -> list[Transcript]:
    text = (DIRECTORY / f"{file}.jsonl").read_text(encoding="utf-8")
    return [Transcript(file, index, json.loads(line)) for index, line in enumerate(text.splitlines())]


def load_all() -> list[Transcript]:
    files = sorted(path.stem for path in DIRECTORY.glob("*.jsonl"))
    return [transcript for file in files for transcript in load(file)]
