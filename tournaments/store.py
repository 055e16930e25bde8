"""The store: what was played.  SQLite, one transaction a game.

Everything else (what is due, tables, reports) is computed from what is here.
"""

import json
import sqlite3
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from operator import attrgetter
from pathlib import Path
from types import TracebackType
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, insert, inspect, select
from sqlalchemy.exc import DatabaseError
from sqlalchemy.pool import NullPool

from referee.errors import RefereeError
from referee.results import GameRecord, Reason
from tournaments.game_summary import GameSummary
from tournaments.journal import Action, Entry
from tournaments.read_only import ReadOnlyFile
from tournaments.schema import REVISION, game, journal, tournament

DEFLATE_LEVEL = 1
"""Records are kept deflated: the fastest level brings 12 KB of a game of 86 moves to under a fifth."""

WRITING = "kalarena_writing"
"""Option of a connection whose transactions take the write lock at once."""

BUSY_TIMEOUT_MS = 10_000
"""How long a writer waits for another one before it gives up."""

BUSY_POLL_S = 0.005
"""Between two tries of what SQLite itself does not wait for; takes it some milliseconds."""

_VERSION_TABLE = "alembic_version"
"""Alembic's own name for where it notes the revision."""

_SUMMARY_COLUMNS = [column for column in game.columns if column.name != "record"]


class StoreError(Exception):
    """The store cannot be used, or could not take something; the message says what to do."""

    def __init__(self, message: str, *, is_ours: bool = False) -> None:
        super().__init__(message)
        self.is_ours = is_ours
        """Whether this host failed (a full disk, a damaged file), not what the user asked for."""


class NothingKeptError(StoreError):
    """The store holds no tournament yet."""


class Store:
    """The results of one tournament.  Use as a context manager; raises StoreError."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        """Open the store in a file; make it if it is not there, bring it up to date if it is old.

        ``read_only`` changes nothing, works on a medium that cannot be written, and needs a store.
        """
        self.path = path
        self._read_only = ReadOnlyFile(path, BUSY_TIMEOUT_MS / 1000) if read_only else None
        self._engine = _engine(path) if self._read_only is None else _reading_engine(self._read_only)
        try:
            self._check_version(may_migrate=not read_only)
        except BaseException:
            self._close()
            raise

    def __enter__(self) -> "Store":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def _close(self) -> None:
        self._engine.dispose()
        if self._read_only is not None:
            self._read_only.close()

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        """A transaction that does not wait for a writer."""
        with self._explained(), self._engine.connect() as connection:
            yield connection

    @contextmanager
    def _writing(self, what: str = "") -> Iterator[Connection]:
        """A transaction that keeps all or nothing; ``what`` is said first if it fails."""
        with self._explained(what), self._engine.execution_options(**{WRITING: True}).begin() as connection:
            yield connection

    @contextmanager
    def _explained(self, what: str = "") -> Iterator[None]:
        """Turn what the database says into something for the user."""
        try:
            yield
        except DatabaseError as error:
            writes = self._read_only is None
            is_ours = _primary_code(error) in (_OURS if writes else _OURS - _READERS_OWN)
            raise StoreError(
                f"{self.path}: {what}{_explain(error, writes=writes)}", is_ours=is_ours
            ) from error
        except OSError as error:  # of copying it
            raise StoreError(f"{self.path} cannot be read: {error.strerror}", is_ours=True) from error
        except (ValueError, TypeError) as error:  # JSON or text of ours that is none any more
            raise StoreError(f"{self.path}: this file is damaged ({error})", is_ours=True) from error

    def _check_version(self, *, may_migrate: bool) -> None:
        with self._reading() as connection:
            tables = inspect(connection).get_table_names()
            found = None
            if _VERSION_TABLE in tables:
                found = connection.exec_driver_sql(f"SELECT version_num FROM {_VERSION_TABLE}").scalar()
        if found != REVISION:
            self._migrate(found, tables, may_migrate=may_migrate)

    def _migrate(self, found: str | None, tables: Sequence[str], *, may_migrate: bool) -> None:
        # Imported here because that takes 0.2 s, and a store is rarely new or old.
        from alembic import command
        from alembic.config import Config
        from alembic.script import ScriptDirectory

        config = Config()
        config.set_main_option(
            "script_location", str(Path(__file__).parent / "migrations").replace("%", "%%")
        )
        known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
        if found is not None and found not in known:
            raise StoreError(
                f"{self.path} was written by a newer version of kalarena (its schema is {found}, the newest "
                f"known here is {REVISION}): upgrade kalarena to use it"
            )
        if found is None and tables:
            raise StoreError(f"{self.path}: this file is no results store, but a database of another program")
        if not may_migrate:
            raise StoreError(
                f"{self.path} holds no results yet, or is of an older version: run the tournament first"
            )
        with self._writing(
            "it could not be brought up to date: "
        ) as connection:  # all steps and their record in one transaction
            config.attributes["connection"] = connection
            command.upgrade(config, "head")

    def claim(self, name: str, config: dict[str, Any], identity: dict[str, Any]) -> None:
        """Note which tournament this is; if one is there already it must have the same identity.

        Raises StoreError that names each difference.
        """
        row = self._one_tournament()
        values = {"name": name, "config": json.dumps(config), "identity": json.dumps(identity)}
        if row is None:
            with self._writing(_NOT_NOTED) as connection:
                connection.execute(insert(tournament).values(id=1, **values))
            return
        self.check_identity(identity)
        if row["config"] != values["config"] or row["name"] != name:
            with self._writing(_NOT_NOTED) as connection:
                connection.execute(tournament.update().values(name=name, config=values["config"]))

    def check_identity(self, identity: dict[str, Any]) -> None:
        """Raise StoreError, naming each difference, if this is another tournament."""
        row = self._one_tournament()
        if row is None or row["identity"] == json.dumps(identity):
            return
        with self._explained():
            differences = "; ".join(_differences(json.loads(row["identity"]), identity))
        raise StoreError(
            f"{self.path} holds another tournament ({row['name']!r}): {differences}. "
            "Undo the change, or choose another directory with --out"
        )

    def config(self) -> dict[str, Any]:
        """What was noted by ``claim``, with its ``name``.  Raises NothingKeptError if nothing was."""
        row = self._one_tournament()
        if row is None:
            raise NothingKeptError(f"{self.path} holds no tournament yet: run the tournament first")
        with self._explained():
            config: dict[str, Any] = json.loads(row["config"])
            return {"name": row["name"], **config}

    def _one_tournament(self) -> Any:
        with self._reading() as connection:
            return connection.execute(select(tournament)).mappings().one_or_none()

    def add(self, record: GameRecord, round_number: int, pair: str = "") -> bool:
        """Keep a game; False if it was there already.  All of it is kept, or nothing.

        ``pair`` is what it has in common with its return game.
        """
        summary = GameSummary.of(record, round_number, pair)
        statement = insert(game).values(
            key=summary.key,
            round=summary.round,
            first=summary.first,
            second=summary.second,
            winner=summary.winner,
            reason=summary.reason.value,
            fault=summary.fault,
            detail=summary.detail,
            first_score=summary.score[0] if summary.score else None,
            second_score=summary.score[1] if summary.score else None,
            first_moves=summary.moves[0],
            second_moves=summary.moves[1],
            first_wall_us=summary.wall_us[0],
            second_wall_us=summary.wall_us[1],
            first_charged_us=summary.charged_us[0],
            second_charged_us=summary.charged_us[1],
            sandbox=summary.sandbox,
            pair=summary.pair,
            opening=summary.opening,
            fingerprint=summary.fingerprint,
            swapped=summary.swapped,
            record=zlib.compress(record.to_msgpack(), DEFLATE_LEVEL),
        )
        with self._writing(f"game {record.key} could not be kept: ") as connection:
            if connection.execute(select(game.c.key).where(game.c.key == record.key)).first() is not None:
                return False
            connection.execute(statement)
        return True

    def note(self, *entries: Entry) -> None:
        """Add entries to the journal, all or none; their numbers are given here."""
        rows = [
            {name: value for name, value in asdict(entry).items() if name != "number"}
            | {"data": json.dumps(entry.data)}
            for entry in entries
        ]
        with self._writing("nothing was noted in the journal: ") as connection:
            connection.execute(insert(journal), rows)

    def journal(self) -> list[Entry]:
        """All entries, oldest first."""
        with self._reading() as connection:
            rows = connection.execute(select(journal).order_by(journal.c.number)).mappings().all()
            return [
                Entry(**{**row, "action": Action(row["action"]), "data": json.loads(row["data"])})
                for row in rows
            ]

    def played(self) -> set[str]:
        """The keys of all games that are kept."""
        with self._reading() as connection:
            return set(connection.execute(select(game.c.key)).scalars())

    def games(self) -> list[GameSummary]:
        """All games, without their records, in the order of their keys."""
        with self._reading() as connection:
            rows = connection.execute(select(*_SUMMARY_COLUMNS)).all()
            # Sorted here: the database would read the file in the order of the keys, here and there.
            return sorted(map(_summary, rows), key=attrgetter("key"))

    def record(self, key: str) -> GameRecord:
        """One game, whole.  Raises StoreError if it is not there."""
        with self._reading() as connection:
            packed = connection.execute(select(game.c.record).where(game.c.key == key)).scalar()
        if packed is None:
            raise StoreError(f"{self.path} holds no game {key!r}")
        try:
            return GameRecord.from_msgpack(zlib.decompress(packed))
        except (zlib.error, RefereeError) as error:
            raise StoreError(f"{self.path}: game {key}: {error}", is_ours=True) from error


_REASONS = {reason.value: reason for reason in Reason}


def _summary(row: Any) -> GameSummary:
    """From the columns in the order of the schema, since looking them up by name takes thrice as long."""
    (key, round_number, first, second, winner, reason, fault, detail, *numbers, sandbox) = row[:17]
    score = None if numbers[0] is None else (numbers[0], numbers[1])
    return GameSummary(
        key,
        round_number,
        first,
        second,
        winner,
        _REASONS.get(reason) or Reason(reason),
        fault,
        detail,
        score,
        (numbers[2], numbers[3]),
        (numbers[4], numbers[5]),
        (numbers[6], numbers[7]),
        sandbox,
        *row[17:],
    )


OLD_DEFAULTS = {"format": "round-robin"}
"""What is meant by an identity that does not say: then there was, or is, nothing else to choose."""


def _differences(there: dict[str, Any], here: dict[str, Any]) -> Sequence[str]:
    found = [
        f"its {key} is {there.get(key, OLD_DEFAULTS.get(key, 'none'))}, now it is "
        f"{here.get(key, OLD_DEFAULTS.get(key, 'none'))}"
        for key in sorted({*there, *here} - {"bots"})
        if there.get(key) != here.get(key)
    ]
    old, new = there.get("bots", {}), here.get("bots", {})
    if list(old) != list(new) and sorted(old) == sorted(new):
        found.append("its bots are the same but in another order")
    found += [f"it has no bot {name!r}" for name in new if name not in old]
    found += [f"it has a bot {name!r}, which is not here" for name in old if name not in new]
    found += [
        f"the files of bot {name!r} have changed since"
        for name in new
        if name in old and new[name] != old[name]
    ]
    return found


def _engine(path: Path) -> Engine:
    url = URL.create("sqlite", database=str(path.resolve()))  # whatever characters the path holds
    engine = create_engine(url, connect_args={"timeout": BUSY_TIMEOUT_MS / 1000})

    @event.listens_for(engine, "connect")
    def _connect(connection: sqlite3.Connection, _record: Any) -> None:
        # The driver's own idea of transactions loses updates: we begin them ourselves.
        connection.isolation_level = None
        # A committed game survives a crash of the process and of the machine.
        _write_ahead(connection)
        connection.execute("PRAGMA synchronous = FULL")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get(WRITING)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Let the database write ahead to a log.

    A fresh database is changed to that by its first connection.  SQLite does not wait when another one
    is about to do the same, whatever the timeout: it says at once that the database is locked.
    """
    give_up = time.monotonic() + BUSY_TIMEOUT_MS / 1000
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > give_up:
                raise
            time.sleep(BUSY_POLL_S)


def _reading_engine(file: ReadOnlyFile) -> Engine:
    """An engine that cannot write."""
    return create_engine("sqlite://", creator=file.connect, poolclass=NullPool)


_NOT_NOTED = "the tournament could not be noted: "

_READERS_OWN = {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM}
"""What SQLite says of a file that may not be read, which is the user's to put right."""
_OURS = {
    *(sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_CORRUPT),
    *(sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED),
    *_READERS_OWN,
}
"""What SQLite says of trouble with this host.  https://sqlite.org/rescode.html"""


def _primary_code(error: DatabaseError) -> int:
    """SQLite's number of an error, without what says where; 0 if it has none."""
    return int(getattr(error.orig, "sqlite_errorcode", 0)) & 0xFF


def _explain(error: DatabaseError, *, writes: bool) -> str:
    """What SQLite's error means for the user."""
    text = str(error.orig)
    match _primary_code(error):
        case sqlite3.SQLITE_FULL:
            return "the disk is full: make room and run the same command again"
        case sqlite3.SQLITE_NOTADB:
            return f"this file is no results store ({text})"
        case sqlite3.SQLITE_CORRUPT:
            return f"this file is damaged ({text})"
        case sqlite3.SQLITE_IOERR if writes:
            return f"the file cannot be written: is the disk full, or damaged? ({text})"
        case sqlite3.SQLITE_IOERR:
            return f"the file cannot be read: is the disk damaged? ({text})"
        case sqlite3.SQLITE_BUSY:
            return f"another process has been writing for {BUSY_TIMEOUT_MS // 1000} s: wait for it ({text})"
        case code if code in _READERS_OWN:
            return f"the file cannot be {'written' if writes else 'read'} here ({text})"
    return text
