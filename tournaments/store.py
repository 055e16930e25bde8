"""The store: what was played.  SQLite, one transaction a game.

Everything else (what is due, tables, reports) is computed from what is here.
"""

import json
import os
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import quote

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import URL, Connection, Engine, create_engine, event, insert, inspect, select
from sqlalchemy.exc import DatabaseError
from sqlalchemy.pool import NullPool

from referee.errors import RefereeError
from referee.results import GameRecord, Reason
from tournaments.schema import game, tournament
from tournaments.standings import GameSummary

DEFLATE_LEVEL = 1
"""Records are kept deflated: the fastest level brings 12 KB of a game of 86 moves to under a fifth."""

WRITING = "kalarena_writing"
"""Option of a connection whose transactions take the write lock at once."""

BUSY_TIMEOUT_MS = 10_000
"""How long a writer waits for another one before it gives up."""

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
        config = Config()
        config.set_main_option(
            "script_location", str(Path(__file__).parent / "migrations").replace("%", "%%")
        )
        scripts = ScriptDirectory.from_config(config)
        known, head = {script.revision for script in scripts.walk_revisions()}, scripts.get_current_head()
        with self._reading() as connection:
            found = MigrationContext.configure(connection).get_current_revision()
            tables = inspect(connection).get_table_names()
        if found == head:
            return
        if found is not None and found not in known:
            raise StoreError(
                f"{self.path} was written by a newer version of kalarena (its schema is {found}, the newest "
                f"known here is {head}): upgrade kalarena to use it"
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

    def add(self, record: GameRecord, round_number: int) -> bool:
        """Keep a game; False if it was there already.  All of it is kept, or nothing."""
        summary = GameSummary.of(record, round_number)
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
            record=zlib.compress(record.to_msgpack(), DEFLATE_LEVEL),
        )
        with self._writing(f"game {record.key} could not be kept: ") as connection:
            if connection.execute(select(game.c.key).where(game.c.key == record.key)).first() is not None:
                return False
            connection.execute(statement)
        return True

    def played(self) -> set[str]:
        """The keys of all games that are kept."""
        with self._reading() as connection:
            return set(connection.execute(select(game.c.key)).scalars())

    def games(self) -> list[GameSummary]:
        """All games, without their records, in the order of their keys."""
        with self._reading() as connection:
            rows = connection.execute(select(*_SUMMARY_COLUMNS).order_by(game.c.key)).mappings().all()
            return [_summary(row) for row in rows]

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


def _summary(row: Any) -> GameSummary:
    score = None if row["first_score"] is None else (row["first_score"], row["second_score"])
    return GameSummary(
        key=row["key"],
        round=row["round"],
        first=row["first"],
        second=row["second"],
        winner=row["winner"],
        reason=Reason(row["reason"]),
        fault=row["fault"],
        detail=row["detail"],
        score=score,
        moves=(row["first_moves"], row["second_moves"]),
        wall_us=(row["first_wall_us"], row["second_wall_us"]),
        charged_us=(row["first_charged_us"], row["second_charged_us"]),
        sandbox=row["sandbox"],
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
