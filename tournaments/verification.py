"""Verifying: every game of a tournament is judged again, and all that was made from the games is made again.

Nothing is changed, and one game at a time is held in memory.
"""

import contextlib
import csv
import fcntl
import io
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

from referee.errors import RefereeError
from referee.rejudge import Complaint, rejudge
from referee.results import GameRecord
from tournaments import tables
from tournaments.cluster.fairness import ScaledControl
from tournaments.directory import LOCK_FILE, STORE_FILE
from tournaments.game_summary import GameSummary
from tournaments.gamefiles import GAMES, public_view, wire_text
from tournaments.rulings import pairing_key
from tournaments.schedule import Pairing
from tournaments.store import NothingKeptError, Store, StoreError
from tournaments.summary import Summary

TABLES = "tables"
"""What is said of all tables together is said of this."""

_OLD_TABLE = (
    "made from {} games, there are {} now: run the tournament again to have it written anew, or see "
    "kalarena tournament table"
)


class Remark(Complaint):
    """Something to know, of which nothing is wrong: a sentence of its own."""

    def __init__(self, text: str) -> None:
        super().__init__("remark", "", "", text, remark=True)

    def __str__(self) -> str:
        return self.follows


@dataclass(frozen=True, slots=True)
class Found:
    """A complaint, and which game it is about."""

    key: str
    """The game's key, or the name of the file that is about all games."""
    complaint: Complaint

    def __str__(self) -> str:
        return f"{self.key}: {self.complaint}"

    def to_json(self) -> dict[str, object]:
        """The complaint for scripts."""
        one = self.complaint
        return {
            "key": self.key,
            "what": one.what,
            "where": one.where,
            "recorded": one.recorded,
            "follows": one.follows,
            "remark": one.remark,
        }


@dataclass
class Verification:
    """What was found, counted as it is found."""

    games: int = 0
    """Games that were judged again."""
    wrong: int = 0
    """Games of which something does not follow."""
    elsewhere: int = 0
    """Complaints about what is made from all games together: tables and reports."""

    @property
    def is_clean(self) -> bool:
        """Whether all follows; remarks do not count."""
        return not self.wrong and not self.elsewhere

    def of_record(self, record: GameRecord) -> Iterator[Found]:
        """Judge a single record again."""
        yield from self._count(record.key, rejudge(record, _version()))

    def of_directory(self, directory: Path) -> Iterator[Found]:
        """Verify a tournament's directory, which a run may be at work in, or have been killed in.

        Raises StoreError if its store cannot be read at all, NothingKeptError if there is nothing in it yet.
        """
        folders = _folders(directory)  # before the games, since each of those is kept before it has a folder
        at_work = _is_at_work(directory)
        started: dict[str, str] = {}
        with Store(directory / STORE_FILE, read_only=True) as store:
            try:
                summary = Summary.load(store)
                meant = Meant.of(summary)
            except NothingKeptError:
                raise
            except (StoreError, LookupError, TypeError, ValueError) as error:
                store.played()  # raises StoreError if it is worse than a column or two
                damaged = Complaint("tournament", "", "as one that was played", str(error))
                yield self._elsewhere(STORE_FILE, damaged)
                return
            for row in summary.kept:
                yield from self._count(row.key, of_game(store, meant, row, directory, started))
        for key in sorted(folders - {row.key for row in summary.kept}):
            yield self._elsewhere(
                key, Complaint("folder", GAMES, "one of this game", "no such game is kept, and none")
            )
        if at_work or _is_at_work(directory):
            yield Found(TABLES, Remark("a run is at work: its tables are not compared"))
        else:
            yield from self._of_reports(summary, directory, started)
        if not summary.kept and not self.elsewhere:
            raise NothingKeptError(
                f"{directory} holds no game yet, there is nothing to verify: run the tournament first"
            )

    def _of_reports(self, summary: Summary, directory: Path, started: Mapping[str, str]) -> Iterator[Found]:
        """The tables as they were written last must be those of the games that are kept.

        A run that was killed has written none: they are then those of an earlier time.
        """
        games_csv = _read(directory / "games.csv")
        made_from = _made_from(games_csv or "", summary, started)
        reports: dict[str, Callable[[], str]] = {
            "results.json": lambda: summary.render("json") + "\n",
            "standings.csv": lambda: summary.render("csv") + "\n",
            "games.csv": lambda: tables.games_csv(summary.games),
            "report.html": lambda: summary.render("html"),
        }
        for name, made in reports.items():
            written = _read(directory / name)
            if written is None:
                continue
            try:
                follows = made()
            except (LookupError, TypeError, ValueError, ArithmeticError) as error:
                yield self._elsewhere(name, Complaint("table", "", "as one of these games", f"{error!r}"))
                continue
            if written == follows:
                continue
            games = made_from
            if games is None and (name == "results.json" or games_csv is None):
                games = _games_told(_read(directory / "results.json") or "")
            if games is not None and games < len(summary.games):
                yield Found(name, Remark(_OLD_TABLE.format(games, len(summary.games))))
                continue
            for complaint in _text_differences(name, written, follows):
                yield self._elsewhere(name, complaint)

    def _elsewhere(self, key: str, complaint: Complaint) -> Found:
        self.elsewhere += 1
        return Found(key, complaint)

    def _count(self, key: str, complaints: Sequence[Complaint]) -> Iterator[Found]:
        self.games += 1
        self.wrong += any(not complaint.remark for complaint in complaints)
        for complaint in complaints:
            yield Found(key, complaint)


@lru_cache(maxsize=1)
def _version() -> str:
    return metadata.version("kalarena")


@dataclass(frozen=True)
class Meant:
    """What a tournament says of its games."""

    game: str
    control: str
    bots: Sequence[str]
    """By their numbers."""
    total: int
    """Games of the whole tournament."""
    pairings: Mapping[str, Pairing]
    """Those that were paired, by their keys."""
    scaled: ScaledControl | None = None
    """The time control on each host; None if it is the same on all."""

    def control_of(self, record: GameRecord) -> str:
        """The time control of a game, by the host on which it was played."""
        return self.control if self.scaled is None else str(self.scaled.on(record.host_speed))

    @classmethod
    def of(cls, summary: Summary) -> "Meant":
        """What a summary's tournament says."""
        pairings = {pairing.key: pairing for pairing in summary.schedule.pairings(summary.history)}
        return cls(
            summary.game, summary.control, tuple(summary.bots), summary.total, pairings, summary.scaled
        )


def of_game(
    store: Store,
    meant: Meant | None,
    row: GameSummary,
    directory: Path | None,
    started: dict[str, str] | None = None,
) -> list[Complaint]:
    """One game of a store: its record, the store's columns, its place in the tournament, its files.

    ``meant`` is None if no schedule has it, ``directory`` None if it has no files.  When it was started is
    noted in ``started``.
    """
    try:
        record = store.record(row.key)
    except StoreError as error:
        return [Complaint("record", "", "as a whole one", str(error))]
    if started is not None:
        started[row.key] = record.started_at
    complaints = rejudge(record, _version())
    try:
        complaints += _of_columns(row, record)
        if meant is not None:
            complaints += _of_tournament(meant, row, record)
        if directory is not None:
            complaints += _of_files(directory, row.key, record)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        complaints.append(Complaint("record", "", "as a whole one", f"{error!r}"))
    return complaints


def _of_columns(row: GameSummary, record: GameRecord) -> Iterator[Complaint]:
    """The columns of the store's table must be those of the record."""
    follows = GameSummary.of(record, row.round, row.pair)
    for field in fields(GameSummary):
        stored, made = getattr(row, field.name), getattr(follows, field.name)
        if stored != made:
            yield Complaint(field.name, "store", repr(stored), repr(made))


def _of_tournament(tournament: Meant, row: GameSummary, record: GameRecord) -> Iterator[Complaint]:
    """A game must be one that the tournament's schedule has, and be played as it says."""
    pairing = tournament.pairings.get(pairing_key(row.key))
    if pairing is None:
        yield Complaint("key", "store", row.key, f"no game of that key among {tournament.total}, and none")
    else:
        bots = (tournament.bots[pairing.first], tournament.bots[pairing.second])
        meant = (pairing.round, *bots, pairing.pair)
        stored = (row.round, row.first, row.second, row.pair)
        for name, one, other in zip(("round", "first", "second", "pair"), stored, meant, strict=True):
            if one != other:
                yield Complaint(name, "schedule", repr(one), repr(other))
    for name, told, meant_text in (
        ("game", record.game, tournament.game),
        ("control", str(record.control), tournament.control_of(record)),
    ):
        if told != meant_text:
            yield Complaint(name, "tournament", repr(told), repr(meant_text))


def _of_files(directory: Path, key: str, record: GameRecord) -> Iterator[Complaint]:
    """The files that people were given, where there are some."""
    folder = directory / GAMES / key
    written = _read(folder / "game.json")
    if written is not None:
        follows = json.dumps(public_view(record)) + "\n"
        if written != follows:
            yield from _json_differences(written, follows)
    written = _read(folder / "wire.txt")
    if written is not None:
        text = wire_text(record).encode("utf-8", "backslashreplace").decode("utf-8")
        yield from _text_differences("wire.txt", written, text)


def _json_differences(written: str, follows: str) -> Iterator[Complaint]:
    """Which fields of a game's JSON differ.  Fields that an older version did not write yet are no fault."""
    try:
        old = json.loads(written)
        if not isinstance(old, dict):
            raise ValueError("it is no object")
    except ValueError as error:
        yield Complaint("game.json", "", "as JSON", str(error))
        return
    new = json.loads(follows)
    for name, value in old.items():
        if name not in new:
            yield Complaint(name, "game.json", "there", "no such field")
        elif not _agrees(value, new[name]):
            yield Complaint(name, "game.json", *_first_difference(value, new[name]))
    if old.get("versions") == {**new["versions"], "kalarena": _version()}:
        for name in new.keys() - old.keys():
            yield Complaint(name, "game.json", "nothing", _short(new[name]))


def _agrees(old: Any, new: Any) -> bool:
    """Whether two values of JSON are the same, and of the same type: 1 is neither 1.0 nor true."""
    return json.dumps(old) == json.dumps(new)


def _first_difference(old: Any, new: Any) -> tuple[str, str]:
    """The two values, or for lists of equal length the first pair that differs."""
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for one, other in zip(old, new, strict=True):
            if not _agrees(one, other):
                return _short(one), _short(other)
    if isinstance(old, list) and isinstance(new, list) and len(old) != len(new):
        return f"{len(old)} rows", f"{len(new)} rows"
    return _short(old), _short(new)


def _text_differences(name: str, written: str, follows: str) -> Iterator[Complaint]:
    """The first line of a text that differs."""
    if written == follows:
        return
    old, new = written.split("\n"), follows.split("\n")
    for number, (one, other) in enumerate(zip(old, new, strict=False), 1):
        if one != other:
            same = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), 0)
            begin = max(0, same - SHOWN_BEFORE)
            yield Complaint(name, f"line {number}", _short(one[begin:]), _short(other[begin:]))
            return
    yield Complaint(name, "", f"{len(old)} lines", f"{len(new)} lines")


LONGEST_SHOWN = 200
"""Characters of a value in a complaint."""
SHOWN_BEFORE = 60
"""Characters of a line that are shown before the first one that differs."""


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "..."


def _read(path: Path) -> str | None:
    """The text of a file; None if there is none.  Line ends stay as they are."""
    try:
        return path.read_bytes().decode("utf-8", "replace")
    except (FileNotFoundError, NotADirectoryError):
        return None


def _is_at_work(directory: Path) -> bool:
    """Whether a run, or a ruling, holds the directory's lock."""
    try:
        descriptor = os.open(directory / LOCK_FILE, os.O_RDONLY)
    except OSError:  # no run was ever here, or none that we may know of
        return False
    try:
        # Shared: another one who looks is no run.  Given back at once, so that a run can start.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # this file system has no locks
        return False
    finally:
        os.close(descriptor)
    return False


def _made_from(games_csv: str, summary: Summary, started: Mapping[str, str]) -> int | None:
    """How many games the tables were made from, if they are those of an earlier time; else None.

    They are if all their games are still kept, and those that they lack were all started after theirs: a
    table is made when nothing is played.  A game that is older than a table, but not in it, was set aside
    then, and a ruling cannot be undone.
    """
    try:
        rows = list(csv.reader(io.StringIO(games_csv)))
    except csv.Error:
        return None
    if not rows:
        return None
    keys = {row[0] for row in rows[1:] if row}
    lacking = {game.key for game in summary.games} - keys
    if not lacking or not keys <= {game.key for game in summary.kept}:
        return None
    newest = max((started.get(key, "") for key in keys), default="")
    return len(keys) if all(started.get(key, "") > newest for key in lacking) else None


def _games_told(results_json: str) -> int | None:
    """How many games results.json says that it was made from."""
    with contextlib.suppress(ValueError, LookupError, TypeError):
        games = json.loads(results_json)["games"]
        return games if isinstance(games, int) else None
    return None


def _folders(directory: Path) -> set[str]:
    """The keys of the games that have a folder; those that a killed run left half are not among them."""
    folder = directory / GAMES
    if not folder.is_dir():
        return set()
    return {path.name for path in folder.iterdir() if not path.name.startswith(".")}


def read_record(path: Path) -> GameRecord:
    """The record in a file, msgpack or JSON whatever it is called.  Raises RefereeError, OSError."""
    content = path.read_bytes()
    if content.lstrip()[:1] != b"{":
        return GameRecord.from_msgpack(content)
    try:
        view = json.loads(content)
    except ValueError as error:
        raise RefereeError(f"this is no game record: {error}") from error
    return GameRecord.from_json(view)
