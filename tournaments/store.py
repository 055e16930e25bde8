"""The store: what was played.  A game, or several that ended at a time, in one transaction.

Everything else (what is due, tables, reports) is computed from what is here.
"""

import json
from collections.abc import Collection, Sequence
from dataclasses import asdict
from operator import attrgetter
from pathlib import Path
from types import TracebackType
from typing import Any

from sqlalchemy import func, insert, select

from referee.errors import RefereeError
from referee.results import GameRecord, Reason
from tournaments.database.connections import Connections
from tournaments.database.errors import StoreError
from tournaments.database.migrations import Migrations
from tournaments.database.place import Place
from tournaments.database.sqlite import SQLiteFile
from tournaments.game_summary import GameSummary
from tournaments.journal import Action, Entry
from tournaments.packed_game import PackedGame, unpacked
from tournaments.schema import REVISION, game, journal, tournament

__all__ = ["NothingKeptError", "Store", "StoreError"]

KEYS_AT_ONCE = 500
"""In one question: SQLite takes 999 parameters at least, https://sqlite.org/limits.html."""

MIGRATIONS = Migrations(
    Path(__file__).parent / "migrations", REVISION, "results store", "run the tournament first"
)

_SUMMARY_COLUMNS = [column for column in game.columns if column.name != "record"]


class NothingKeptError(StoreError):
    """The store holds no tournament yet."""


class Store:
    """The results of one tournament.  Use as a context manager; raises StoreError."""

    def __init__(self, where: Path | Place, *, read_only: bool = False) -> None:
        """Open the store in a file or at another place; make it if it is not there, bring it up to date if it
        is old.

        ``read_only`` changes nothing, works on a medium that cannot be written, and needs a store.
        """
        self.place = SQLiteFile(where) if isinstance(where, Path) else where
        self._connections = Connections(self.place, read_only=read_only)
        try:
            MIGRATIONS.apply(self._connections)
        except BaseException:
            self._connections.close()
            raise

    def __enter__(self) -> "Store":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connections.close()

    def claim(self, name: str, config: dict[str, Any], identity: dict[str, Any]) -> None:
        """Note which tournament this is; if one is there already it must have the same identity.

        Raises StoreError that names each difference.
        """
        row = self._one_tournament()
        values = {"name": name, "config": json.dumps(config), "identity": json.dumps(identity)}
        if row is None:
            with self._connections.writing(_NOT_NOTED) as connection:
                connection.execute(insert(tournament).values(id=1, **values))
            return
        self.check_identity(identity)
        if row["config"] != values["config"] or row["name"] != name:
            with self._connections.writing(_NOT_NOTED) as connection:
                connection.execute(tournament.update().values(name=name, config=values["config"]))

    def check_identity(self, identity: dict[str, Any]) -> None:
        """Raise StoreError, naming each difference, if this is another tournament."""
        row = self._one_tournament()
        if row is None or row["identity"] == json.dumps(identity):
            return
        with self._connections.explained():
            differences = "; ".join(_differences(json.loads(row["identity"]), identity))
        raise StoreError(
            f"{self.place} holds another tournament ({row['name']!r}): {differences}. "
            "Undo the change, or choose another directory with --out"
        )

    def config(self) -> dict[str, Any]:
        """What was noted by ``claim``, with its ``name``.  Raises NothingKeptError if nothing was."""
        row = self._one_tournament()
        if row is None:
            raise NothingKeptError(f"{self.place} holds no tournament yet: run the tournament first")
        with self._connections.explained():
            config: dict[str, Any] = json.loads(row["config"])
            return {"name": row["name"], **config}

    def _one_tournament(self) -> Any:
        with self._connections.reading() as connection:
            return connection.execute(select(tournament)).mappings().one_or_none()

    def add(self, record: GameRecord, round_number: int, pair: str = "") -> bool:
        """Keep a game; False if it was there already.  All of it is kept, or nothing.

        ``pair`` is what it has in common with its return game.
        """
        return bool(self.add_all([PackedGame.of(record, round_number, pair)]))

    def add_all(self, games: Sequence[PackedGame]) -> set[str]:
        """Keep games of different keys in one transaction; the keys of those that were not there already.

        All are kept, or none: what is waited for is the disk, once, however many they are.
        """
        keys = [one.summary.key for one in games]
        what = f"game {keys[0]}" if len(keys) == 1 else f"{len(keys)} games"
        with self._connections.writing(f"{what} could not be kept: ") as connection:
            there: set[str] = set()
            for at in range(0, len(keys), KEYS_AT_ONCE):
                part = keys[at : at + KEYS_AT_ONCE]
                there.update(connection.execute(select(game.c.key).where(game.c.key.in_(part))).scalars())
            rows = [_row(one) for one in games if one.summary.key not in there]
            if rows:
                connection.execute(insert(game), rows)
        return {row["key"] for row in rows}

    def note(self, *entries: Entry) -> None:
        """Add entries to the journal, all or none; their numbers are given here."""
        rows = [
            {name: value for name, value in asdict(entry).items() if name != "number"}
            | {"data": json.dumps(entry.data)}
            for entry in entries
        ]
        with self._connections.writing("nothing was noted in the journal: ") as connection:
            last = connection.execute(select(func.max(journal.c.number))).scalar() or 0
            connection.execute(
                insert(journal), [{"number": last + i, **row} for i, row in enumerate(rows, 1)]
            )

    def journal(self) -> list[Entry]:
        """All entries, oldest first."""
        with self._connections.reading() as connection:
            rows = connection.execute(select(journal).order_by(journal.c.number)).mappings().all()
            return [
                Entry(**{**row, "action": Action(row["action"]), "data": json.loads(row["data"])})
                for row in rows
            ]

    def played(self, after: str = "") -> set[str]:
        """The keys of all games that are kept, or of those that come after a key; in which order letters
        come is the database's to say, but digits are in order.
        """
        query = select(game.c.key).where(game.c.key > after) if after else select(game.c.key)
        with self._connections.reading() as connection:
            return set(connection.execute(query).scalars())

    def size(self) -> tuple[int, int]:
        """How many games and entries of the journal there are: neither ever gets less."""
        with self._connections.reading() as connection:
            games, entries = (
                connection.execute(select(func.count()).select_from(table)).scalar_one()
                for table in (game, journal)
            )
            return games, entries

    def games(self, keys: Collection[str] | None = None) -> list[GameSummary]:
        """All games, or those of some keys, without their records, in the order of their keys."""
        query = select(*_SUMMARY_COLUMNS)
        with self._connections.reading() as connection:
            if keys is None:
                rows = list(connection.execute(query))
            else:
                wanted = sorted(keys)
                parts = (wanted[at : at + KEYS_AT_ONCE] for at in range(0, len(wanted), KEYS_AT_ONCE))
                rows = [
                    row for part in parts for row in connection.execute(query.where(game.c.key.in_(part)))
                ]
            # Sorted here: the database would read the file in the order of the keys, here and there.
            return sorted(map(_summary, rows), key=attrgetter("key"))

    def record(self, key: str) -> GameRecord:
        """One game, whole.  Raises StoreError if it is not there."""
        with self._connections.reading() as connection:
            packed = connection.execute(select(game.c.record).where(game.c.key == key)).scalar()
        if packed is None:
            raise StoreError(f"{self.place} holds no game {key!r}")
        try:
            return unpacked(packed)
        except RefereeError as error:
            raise StoreError(f"{self.place}: game {key}: {error}", is_ours=True) from error


def _row(one: PackedGame) -> dict[str, Any]:
    summary = one.summary
    return {
        "key": summary.key,
        "round": summary.round,
        "first": summary.first,
        "second": summary.second,
        "winner": summary.winner,
        "reason": summary.reason.value,
        "fault": summary.fault,
        "detail": summary.detail,
        "first_score": summary.score[0] if summary.score else None,
        "second_score": summary.score[1] if summary.score else None,
        "first_moves": summary.moves[0],
        "second_moves": summary.moves[1],
        "first_wall_us": summary.wall_us[0],
        "second_wall_us": summary.wall_us[1],
        "first_charged_us": summary.charged_us[0],
        "second_charged_us": summary.charged_us[1],
        "sandbox": summary.sandbox,
        "pair": summary.pair,
        "opening": summary.opening,
        "fingerprint": summary.fingerprint,
        "swapped": summary.swapped,
        "record": one.packed,
    }


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


_NOT_NOTED = "the tournament could not be noted: "
