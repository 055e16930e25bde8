"""The store: what was played.  SQLite, one transaction a game.

Everything else (what is due, tables, reports) is computed from what is here.
"""

import json
import os
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from operator import attrgetter
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import quote

from sqlalchemy import URL, Connection, Engine, create_engine, event, insert, inspect, select
from sqlalchemy.exc import DatabaseError
from sqlalchemy.pool import NullPool

from referee.errors import RefereeError
from referee.results import GameRecord, Reason
from tournaments.game_summary import GameSummary
from tournaments.journal import Action, Entry
from tournaments.schema import REVISION, game, journal, tournament

DEFLATE_LEVEL = 1
"""Records are kept deflated: the fastest level brings 12 KB of a game of 86 moves to under a fifth."""

WRITING = "kalarena_writing"
"""Option of a connection whose transactions take the write lock at once."""

BUSY_TIMEOUT_MS = 10_000
"""How long a writer waits for another one before it gives up."""

_VERSION_TABLE = "alembic_version"
"""Alembic's own name for where it notes the revision."""

_SUMMARY_COLUMNS = [column for column in game.columns if column.name != "record"]


class StoreError(Exception):
    """The store cannot be used, or could not take something; the message says what to do."""


class Store:
    """The results of one tournament.  Use as a context manager; raises StoreError."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        """Open the store in a file; make it if it is not there, bring it up to date if it is old.

        ``read_only`` changes nothing, works on a medium that cannot be written, and needs a store.
        """
        self.path = path
        self._engine = _reading_engine(path) if read_only else _engine(path)
        try:
            self._check_version(may_migrate=not read_only)
        except BaseException:
            self._engine.dispose()
            raise

    def __enter__(self) -> "Store":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._engine.dispose()

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        """A transaction that does not wait for a writer."""
        with self._explained(), self._engine.connect() as connection:
            yield connection

    @contextmanager
    def _writing(self, what: str = "") -> Iterator[Connection]:
        """A transaction that keeps all or nothing."""
        with self._explained(what), self._engine.execution_options(**{WRITING: True}).begin() as connection:
            yield connection

    @contextmanager
    def _explained(self, what: str = "") -> Iterator[None]:
        """Turn what the database says into something for the user."""
        try:
            yield
        except DatabaseError as error:
            raise StoreError(f"{self.path}: {what}{_explain(error)}") from error
        except (ValueError, TypeError) as error:  # JSON or text of ours that is none any more
            raise StoreError(f"{self.path}: this file is damaged ({error})") from error

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
        with self._writing() as connection:  # all steps and their record in one transaction
            config.attributes["connection"] = connection
            command.upgrade(config, "head")

    def claim(self, name: str, config: dict[str, Any], identity: dict[str, Any]) -> None:
        """Note which tournament this is; if one is there already it must have the same identity.

        Raises StoreError that names each difference.
        """
        row = self._one_tournament()
        values = {"name": name, "config": json.dumps(config), "identity": json.dumps(identity)}
        if row is None:
            with self._writing() as connection:
                connection.execute(insert(tournament).values(id=1, **values))
            return
        self.check_identity(identity)
        if row["config"] != values["config"] or row["name"] != name:
            with self._writing() as connection:
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
            "Choose another directory with --out, or delete this one if its results are not wanted"
        )

    def config(self) -> dict[str, Any]:
        """What was noted by ``claim``, with its ``name``.  Raises StoreError if nothing was."""
        row = self._one_tournament()
        if row is None:
            raise StoreError(f"{self.path} holds no tournament yet")
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
        with self._writing() as connection:
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
            raise StoreError(f"{self.path}: game {key}: {error}") from error


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


def _differences(there: dict[str, Any], here: dict[str, Any]) -> Sequence[str]:
    found = [
        f"its {key} is {there.get(key)}, now it is {here.get(key)}"
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
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get(WRITING)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _reading_engine(path: Path) -> Engine:
    """An engine that cannot write; a folder that cannot be written cannot change under us either."""
    mode = "mode=ro" if os.access(path.parent, os.W_OK) else "mode=ro&immutable=1"
    uri = f"file:{quote(str(path.resolve()))}?{mode}"
    return create_engine(
        "sqlite://",
        creator=lambda: sqlite3.connect(uri, uri=True, timeout=BUSY_TIMEOUT_MS / 1000),
        poolclass=NullPool,
    )


def _explain(error: DatabaseError) -> str:
    """What SQLite's error means for the user."""
    text = str(error.orig)
    if "full" in text:
        return "the disk is full; nothing of this game was written: make room and run the same command again"
    if "not a database" in text:
        return f"this file is no results store ({text})"
    if "malformed" in text:
        return f"this file is damaged ({text})"
    if "disk I/O error" in text:
        return f"the file cannot be written: is the disk full, or damaged? ({text})"
    if "readonly" in text or "unable to open" in text:
        return f"the file cannot be written here ({text})"
    return text
