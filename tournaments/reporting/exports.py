"""Export of all games, or all moves, of a tournament as rows, for spreadsheets and other statistics.

Games are read from the store one at a time, and written at once: memory does not grow with their number.
"""

import contextlib
import io
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, TextIO

from referee.games.catalog import AnyGame, parse_game
from referee.games.opening import parse_opening
from referee.judge.results import GameRecord
from tournaments.files.durable import os_errors_as, replacing
from tournaments.reporting.pgn import pgn_of
from tournaments.reporting.tables import GAME_COLUMNS, TABLE_FILES, Cell, Row, game_row, write_csv
from tournaments.results.rulings import Rulings, pairing_key


class ExportError(Exception):
    """The file could not be written; the message gives the path and the reason."""


def games_rows(rulings: Rulings, record_of: Callable[[str], GameRecord]) -> Iterator[Row]:
    """Yield a row for every game that was ever played, in the order of the keys.

    The columns of games.csv come first.  Raises the exceptions of ``record_of``.
    """
    counted = {game.key for game in rulings.counted}
    for game in rulings.games:
        record = record_of(game.key)
        yield game_row(game) | {
            "counts": game.key in counted,
            "why_not": "" if game.key in counted else why_not(rulings, game.key),
            "started_at": record.started_at,
            "duration_ms": _ms(record.duration_us),
            "clock": record.clock,
            **_pair("exit_status", record.exit_status),
            **_pair("cpu_ms", _times(record.cpu_us)),
            **_pair("off_turn_cpu_ms", _times(record.off_turn_cpu_us)),
            "final_position": record.final_state,
        }


def why_not(rulings: Rulings, key: str) -> str:
    """Return the reason why a game does not count."""
    entry = rulings.set_aside.get(key)
    return f"the game is played as {rulings.job_key(pairing_key(key))}" if entry is None else str(entry)


def moves_rows(rulings: Rulings, record_of: Callable[[str], GameRecord]) -> Iterator[Row]:
    """Yield a row for every move of every game that was ever played.

    Raises the exceptions of ``record_of``.
    """
    counted = {game.key for game in rulings.counted}
    for game in rulings.games:
        about: Row = {"key": game.key, "round": game.round, "counts": game.key in counted}
        for row in move_rows(record_of(game.key)):
            yield about | row


def move_rows(record: GameRecord) -> Iterator[Row]:
    """Yield a row for every move of a game."""
    lines_of = [
        iter([line.at_us for line in record.wire if line.player == player and line.direction == "from"])
        for player in (0, 1)
    ]
    positions = Positions(record)
    for ply, move in enumerate(record.moves, 1):
        position, choices = positions.after(move.move)
        yield {
            "ply": ply,
            "player": move.player + 1,
            "bot": record.players[move.player].name,
            "move": move.move,
            "wall_ms": _ms(move.wall_us),
            "charged_ms": _ms(move.charged_us),
            "cpu_ms": _ms(move.cpu_us),
            "wait_ms": _ms(move.wait_us),
            "referee_wait_ms": _ms(move.referee_wait_us),
            "at_ms": _ms(next(lines_of[move.player], None)),  # a bot's lines and moves have the same order
            "legal_moves": choices,
            "position": position,
        }


class Positions:
    """Positions of a game as its moves are played.

    A record that was altered, or that another version wrote, can hold moves that the rules do not allow: then
    positions are unknown from there on.
    """

    def __init__(self, record: GameRecord) -> None:
        self._state: Any = None
        try:
            self._game: AnyGame = parse_game(record.game)
            steps = parse_opening(self._game, record.opening)
            self._state = steps[-1].state if steps else self._game.initial_state()
        except ValueError:  # SpecError, OpeningError
            return

    def after(self, text: str) -> tuple[str, int | None]:
        """Play the next move; return the position as bots receive it, and the number of legal moves.

        The results are empty and None if they are unknown.
        """
        if self._state is None:
            return "", None
        game, state = self._game, self._state
        try:
            choices = len(game.legal_moves(state))
            self._state = game.apply(state, game.parse_move(state, text))
        except ValueError:  # MoveError
            self._state = None
            return "", None
        return game.board_text(self._state), choices


def pgn_games(rulings: Rulings, record_of: Callable[[str], GameRecord], tournament: str) -> Iterator[str]:
    """Yield every game that counts as PGN, in the order of the keys.  Raises what ``record_of`` raises."""
    counted = {game.key for game in rulings.counted}
    for game in rulings.games:
        if game.key in counted:
            yield pgn_of(record_of(game.key), tournament, game.round)


def _pair(name: str, values: tuple[Cell, Cell]) -> Row:
    return {f"{name}_first": values[0], f"{name}_second": values[1]}


def _times(times_us: tuple[int | None, int | None]) -> tuple[float | None, float | None]:
    return _ms(times_us[0]), _ms(times_us[1])


def _ms(time_us: int | None) -> float | None:
    return None if time_us is None else time_us / 1000


WHAT: Mapping[str, Callable[[Rulings, Callable[[str], GameRecord]], Iterator[Row]]] = {
    "games": games_rows,
    "moves": moves_rows,
}
"""Name of an export -> function that yields its rows."""

COLUMNS: Mapping[str, Sequence[str]] = {
    "games": (
        *GAME_COLUMNS,
        *("counts", "why_not", "started_at", "duration_ms", "clock"),
        *("exit_status_first", "exit_status_second", "cpu_ms_first", "cpu_ms_second"),
        *("off_turn_cpu_ms_first", "off_turn_cpu_ms_second", "final_position"),
    ),
    "moves": (
        *("key", "round", "counts", "ply", "player", "bot", "move", "wall_ms", "charged_ms", "cpu_ms"),
        *("wait_ms", "referee_wait_ms", "at_ms", "legal_moves", "position"),
    ),
}
"""Columns of each export, for files without a row."""


def write_json(rows: Iterable[Row], file: TextIO, _columns: Sequence[str] = ()) -> None:
    """Write one array, with a row on each line."""
    file.write("[")
    for number, row in enumerate(rows):
        file.write(",\n" if number else "\n")
        file.write(json.dumps(row))
    file.write("\n]\n")


def write_json_lines(rows: Iterable[Row], file: TextIO, _columns: Sequence[str] = ()) -> None:
    """Write one object per line."""
    for row in rows:
        file.write(json.dumps(row) + "\n")


WRITERS: Mapping[str, Callable[[Iterable[Row], TextIO, Sequence[str]], None]] = {
    "csv": write_csv,
    "json": write_json,
    "jsonl": write_json_lines,
}
"""Format -> function that writes rows; its last argument are the columns, for files without a row."""

STORE_FILE = "results.db"
OWN_FILES = (
    *(STORE_FILE + end for end in ("", "-wal", "-shm", "-journal")),  # SQLite's companions of a database
    *(".lock", "pseudonyms.csv", *TABLE_FILES),
)
"""Files of a tournament in its directory, including those that each run rewrites."""
OWN_FOLDERS = ("games", "report", "report-anonymous")
SQLITE_MAGIC = b"SQLite format 3\0"
"""First bytes of every SQLite database: https://www.sqlite.org/fileformat.html, 1.3.1."""


def protected(path: Path, directory: Path, inputs: Iterable[Path] = ()) -> str:
    """Return the reason why a path must not be overwritten, in a sentence; empty if it may be.

    Protected are the files that the command reads (``inputs``), the files of a tournament in its
    ``directory`` (or in the directory that the path leads into), and databases.  Links are followed.
    """
    if any(_same(path, other) for other in inputs):
        return f"{path} is a file that this command reads: choose another --out"
    target = path.resolve()
    places = [directory]
    if os.path.isfile(target.parent / STORE_FILE):  # noqa: PTH113 - False if that folder may not be entered
        places.append(target.parent)
    if any(_owned(target, place) for place in places):
        return f"{path} is one of the tournament's own files: choose another --out"
    if _begins_with(target, SQLITE_MAGIC):
        return f"{path} is a database, which may hold a tournament's results: choose another --out"
    return ""


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:  # one of them does not exist yet
        return one.resolve() == other.resolve()


def _owned(target: Path, place: Path) -> bool:
    if any(_same(target, place / name) for name in OWN_FILES):
        return True
    folders = [place / name for name in OWN_FOLDERS]
    folders += [folder for folder in place.glob("report*") if folder.is_dir()]  # made with report --out
    return any(target.is_relative_to(folder.resolve()) for folder in folders)


def _begins_with(path: Path, magic: bytes) -> bool:
    with contextlib.suppress(OSError):
        if path.is_file():
            with path.open("rb") as file:
                return file.read(len(magic)) == magic
    return False


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[TextIO]:
    """Open a text file that appears whole or not at all: written under another name, then renamed.

    Raises ExportError.  The old file stays unchanged if the block raises an exception.
    """
    with (
        _replacing(path) as file,
        io.TextIOWrapper(file, encoding="utf-8", errors="backslashreplace", newline="") as text,
    ):
        yield text


def write_whole(path: Path, content: bytes) -> None:
    """Write a file that appears whole or not at all.  Raises ExportError."""
    with _replacing(path) as file:
        file.write(content)


@contextlib.contextmanager
def _replacing(path: Path) -> Iterator[IO[bytes]]:
    """Provide a new file that replaces the one at a path when the block ends.  Raises ExportError."""
    path = path.resolve()  # the target of a link is replaced, not the link
    with os_errors_as(ExportError, f"{path} cannot be written"):
        is_replaceable = not path.exists() or path.is_file()
    if not is_replaceable:
        raise ExportError(f"{path} is no file, so that it cannot be replaced by one")
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    with os_errors_as(ExportError, f"{path} cannot be written"), replacing(path, part=part) as file:
        yield file
