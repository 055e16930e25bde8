"""The files of a game that people may be given, one directory per game.

They are made from the store and can be made again.  What was private to one bot (its standard error,
where it lies) is in files of its own, so that each student can be given what is theirs.
"""

import json
import os
from pathlib import Path

from referee.results import GameRecord
from tournaments.config import slug

LONGEST_NAME = 60
"""Characters of a bot's name that go into a file's name: a name may be as long as a folder's."""

GAMES = "games"
"""The folder in a tournament's directory."""


def write_game_files(directory: Path, record: GameRecord) -> None:
    """Write ``game.json``, ``wire.txt`` and ``stderr-NUMBER-NAME.txt`` of a game.

    Each appears whole or not at all.  Raises OSError.
    """
    folder = directory / GAMES / record.key
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / "game.json", json.dumps(public_view(record), indent=1, ensure_ascii=False) + "\n")
    _write(folder / "wire.txt", wire_text(record))
    for index, player in enumerate(record.players):
        _write(folder / f"stderr-{index + 1}-{_file_name(player.name)}.txt", record.stderr[index])


def public_view(record: GameRecord) -> dict[str, object]:
    """The record without what is private to one bot or to our machine."""
    view = record.to_json()
    for private in ("stderr", "note", "host", "facts"):
        del view[private]
    view["players"] = [{"name": player.name, "digest": player.digest} for player in record.players]
    return view


def wire_text(record: GameRecord) -> str:
    """The conversation for people: milliseconds, which bot, direction, line; then the verdict."""
    width = max(len(player.name) for player in record.players)
    lines = [
        f"{wire.at_us / 1000:12.3f} ms  {record.players[wire.player].name:{width}}  "
        f"{'<-' if wire.direction == 'to' else '->'}  {visible(wire.line)}"
        for wire in record.wire
    ]
    names = " and ".join(player.name for player in record.players)
    head = f"{record.game}: {names} ({record.key}, {record.started_at}); <- to the bot, -> from it"
    return "\n".join([head, "", *lines, "", f"{record.result.reason}: {record.result.detail}", ""])


def visible(text: str) -> str:
    """A text on one line: what does not print (control characters, line ends) as an escape."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def _file_name(name: str) -> str:
    return slug(name)[:LONGEST_NAME]


def _write(path: Path, text: str) -> None:
    temporary = path.with_name(path.name + ".part")
    temporary.write_text(text, encoding="utf-8", errors="backslashreplace")
    os.replace(temporary, path)  # noqa: PTH105
