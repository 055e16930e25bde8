"""The files of a game that people may be given, one directory per game.

They are made from the store and can be made again.  What was private to one bot (its standard error,
where it lies) is in files of its own, so that each student can be given what is theirs.
"""

import errno
import json
import shutil
from pathlib import Path

from referee.results import GameRecord
from referee.sentences import visible
from tournaments.config import slug

LONGEST_NAME = 60
"""Characters of a bot's name that go into a file's name: a name may be as long as a folder's."""

GAMES = "games"
"""The folder in a tournament's directory."""


class GameFilesError(Exception):
    """The files could not be written; the message says where and why."""


def write_game_files(directory: Path, record: GameRecord) -> None:
    """Write ``game.json``, ``wire.txt`` and ``stderr-NUMBER-NAME.txt`` of a game.

    The game's folder appears whole or not at all.  Raises GameFilesError.
    """
    folder = directory / GAMES / record.key
    temporary = directory / GAMES / f".{record.key}.part"
    try:
        _make_empty(temporary)
        for name, text in _contents(record).items():
            (temporary / name).write_text(text, encoding="utf-8", errors="backslashreplace")
        _put_in_place(temporary, folder)
    except OSError as error:
        raise GameFilesError(
            f"{folder}: the files of this game could not be written: {error.strerror}; its result is safe, "
            "and the next run writes them"
        ) from error


def _make_empty(folder: Path) -> None:
    try:
        folder.mkdir(parents=True)
    except FileExistsError:  # a killed run left it
        shutil.rmtree(folder)
        folder.mkdir()


def _put_in_place(temporary: Path, folder: Path) -> None:
    try:
        temporary.rename(folder)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        shutil.rmtree(folder)
        temporary.rename(folder)


def _file_names(bots: tuple[str, str]) -> list[str]:
    names = [f"stderr-{number}-{_file_name(bot)}.txt" for number, bot in enumerate(bots, 1)]
    return ["game.json", "wire.txt", *names]


def _contents(record: GameRecord) -> dict[str, str]:
    game = json.dumps(public_view(record)) + "\n"
    bots = (record.players[0].name, record.players[1].name)
    return dict(zip(_file_names(bots), [game, wire_text(record), *record.stderr], strict=True))


def public_view(record: GameRecord) -> dict[str, object]:
    """The record without what is private to one bot or to our machine."""
    view = record.to_json()
    for private in ("stderr", "note", "host", "host_speed", "facts"):
        del view[private]
    view["players"] = [{"name": player.name, "digest": player.digest} for player in record.players]
    return view


def wire_text(record: GameRecord) -> str:
    """The conversation for people: milliseconds, which bot, direction, line; then the verdict."""
    width = max(len(player.name) for player in record.players)
    columns = [f"{player.name:{width}}  " for player in record.players]
    lines = [
        f"{at_us / 1000:12.3f} ms  {columns[player]}{'<-' if direction == 'to' else '->'}  {visible(line)}"
        for player, direction, line, at_us in record.wire
    ]
    names = " and ".join(player.name for player in record.players)
    head = f"{record.game}: {names} ({record.key}, {record.started_at}); <- to the bot, -> from it"
    return "\n".join([head, "", *lines, "", f"{record.result.reason}: {record.result.detail}", ""])


def _file_name(name: str) -> str:
    return slug(name)[:LONGEST_NAME]
