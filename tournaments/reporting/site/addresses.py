"""Addresses of the pages of a report.  Pure."""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import quote

from tournaments.results.game_files import slug

LONGEST_BYTES = 100
"""Most bytes of a file's name without ending: file systems take 255, and a report may lie deep in folders."""
RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
"""Names that Windows gives to devices (Microsoft, "Naming Files, Paths, and Namespaces")."""


@dataclass(frozen=True)
class Addresses:
    """Addresses of pages by their subjects, relative to the report's own folder."""

    bots: Mapping[str, str]
    """Name of a bot -> its page's file name without folder and ending."""
    games: Mapping[str, str]
    """Key of a game in the store -> its page's file name without folder and ending."""

    @classmethod
    def of(cls, bots: Iterable[str], keys: Mapping[str, str]) -> "Addresses":
        """Return the addresses of bots and games; ``keys`` maps keys in the store to shown keys."""
        files = unique_files({shown: re.sub(r"[^\w.~+-]", "_", shown) for shown in keys.values()})
        return cls(
            bots=unique_files({name: slug(name) for name in bots}),
            games={key: files[shown] for key, shown in keys.items()},
        )

    def bot_file(self, name: str) -> str:
        """Return the file of a bot's page."""
        return f"bots/{self.bots[name]}.html"

    def game_file(self, key: str) -> str:
        """Return the file of a game's page."""
        return f"games/{self.games[key]}.html"

    def bot(self, name: str) -> str:
        """Return a link to a bot's page."""
        return quote(self.bot_file(name))

    def game(self, key: str) -> str:
        """Return a link to a game's page."""
        return quote(self.game_file(key))

    def meeting(self, name: str, other: str) -> str:
        """Return a link to the games between two bots."""
        return f"{self.bot(name)}#{quote(self.anchor(other))}"

    def anchor(self, other: str) -> str:
        """Return the anchor of the part of a bot's page that is about an opponent."""
        return f"vs-{self.bots[other]}"


def unique_files(wanted: Mapping[str, str]) -> dict[str, str]:
    """Return a file name for each key, no two of which are the same for any usual file system.

    ``wanted`` holds the preferred names, of safe characters.  Which of two names that clash gets a number
    depends on the keys alone, not on their order.
    """
    files: dict[str, str] = {}
    taken: set[str] = set()
    for owner in sorted(wanted):
        name = _cut(unicodedata.normalize("NFC", wanted[owner]).lstrip(".") or "_", LONGEST_BYTES)
        if RESERVED.fullmatch(name):
            name = f"_{name}"
        chosen, number = name, 1
        while _folded(chosen) in taken:
            number += 1
            chosen = f"{name}-{number}"
        taken.add(_folded(chosen))
        files[owner] = chosen
    return files


def _folded(name: str) -> str:
    """Return a form that is equal for names that a file system may take for the same."""
    return unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", name).casefold())


def _cut(text: str, longest: int) -> str:
    return text.encode("utf-8")[:longest].decode("utf-8", "ignore")
