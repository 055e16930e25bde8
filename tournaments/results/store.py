"""The store of a tournament's games, each written in a transaction, alone or with simultaneous ones.

Everything else (due games, tables, reports) is computed from the store.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, RowMapping, func, insert, select

from referee.errors import RefereeError
from referee.judge.results import GameRecord, Reason
from tournaments.database.base import Connections, Location, StoreError, storable
from tournaments.database.migrations import Migrations
from tournaments.database.sqlite import SQLiteFile
from tournaments.results.chain import (
    Head,
    Item,
    Kind,
    Link,
    extend,
    game_item,
    head_of,
    ruling_item,
    tournament_item,
)
from tournaments.results.game_summary import GameSummary, PackedGame
from tournaments.results.journal import Action, Entry
from tournaments.results.packing import unpacked
from tournaments.results.schema import REVISION, chain, game, journal, tournament
from tournaments.results.shared_parts import SharedParts

__all__ = ["GAME_MODULE", "NothingKeptError", "Store", "StoreError"]

KEYS_AT_ONCE = 500
"""Maximum keys in a query: SQLite takes 999 parameters at least, https://sqlite.org/limits.html."""

GAME_MODULE = "game module"
"""Setting with the digest of a game's module, for games that are not Kalarena's; older databases lack it."""
UNCHAINED = ("0003", "0004")
"""Revisions that have all tables but the chain."""
MISSING: dict[str, tuple[str, ...]] = {
    "0003": ("line", "deficit_permille"),
    "0004": ("deficit_permille",),
    "0005": ("deficit_permille",),
    "0006": (),
}
"""Revision -> columns of summaries that it lacks.  A store that is opened read-only keeps its revision."""
MIGRATIONS = Migrations(
    Path(__file__).parent / "migrations",
    REVISION,
    "results store",
    "run the tournament first",
    tuple(MISSING),
)

_SUMMARY_COLUMNS = [column for column in game.columns if column.name != "record"]


class NothingKeptError(StoreError):
    """The store holds no tournament yet."""


@dataclass(frozen=True)
class StoredGame:
    """A game's packed record with its shared parts, and its round and pair."""

    key: str
    round: int
    pair: str
    packed: bytes

    @property
    def item(self) -> Item:
        """Item of the game in the chain."""
        return game_item(self.key, self.round, self.pair, self.packed)


@dataclass(frozen=True)
class ChainedStore:
    """The chain and the stored items that it covers, at one moment."""

    links: Sequence[Link]
    tournament: Item | None
    games: frozenset[str]
    """Keys of all games."""
    rulings: Mapping[str, Item]
    """Subject in the chain -> entry of the journal."""

    @property
    def head(self) -> Head | None:
        """Last entry; None if there is none."""
        return head_of(self.links)


class Store:
    """The results of one tournament.  Use as a context manager; raises StoreError."""

    def __init__(self, where: Path | Location, *, read_only: bool = False) -> None:
        """Open the store in a file or at another location; create or migrate it if needed.

        ``read_only`` changes nothing, works on a medium that cannot be written, and needs an existing store.
        """
        self.location = SQLiteFile(where) if isinstance(where, Path) else where
        self._connections = Connections(self.location, read_only=read_only)
        try:
            revision = MIGRATIONS.apply(self._connections)
            self.is_chained = revision not in UNCHAINED
            """True if there is a chain: not in an old store that is only read."""
            self._shared = SharedParts()
            self._columns, self._read = _SUMMARY_COLUMNS, _summary
            if missing := MISSING.get(revision):  # an old store that is only read
                self._columns = [column for column in _SUMMARY_COLUMNS if column.name not in missing]
                self._columns.append(game.c.record)
                self._read = partial(_completed_summary, missing)
        except BaseException:
            self._connections.close()
            raise

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._connections.close()

    def claim(self, name: str, config: dict[str, Any], identity: dict[str, Any]) -> bool:
        """Store the tournament's data; an existing tournament must have the same identity.

        Returns True if the name or the configuration of an existing tournament changed.
        Raises StoreError that names each difference.
        """
        row = self._one_tournament()
        values = {"name": name, "config": json.dumps(config), "identity": json.dumps(identity)}
        if row is None:
            with self._connections.writing(_NOT_NOTED) as connection:
                connection.execute(insert(tournament).values(id=1, **values))
                _chain(connection, [tournament_item(**values)])
            return False
        self.check_identity(identity)
        if row["config"] == values["config"] and row["name"] == name:
            return False
        with self._connections.writing(_NOT_NOTED) as connection:
            connection.execute(tournament.update().values(name=name, config=values["config"]))
            _chain(connection, [tournament_item(**values)])
        return True

    def check_identity(self, identity: dict[str, Any]) -> None:
        """Raise StoreError, naming each difference, if this is another tournament."""
        row = self._one_tournament()
        if row is None or row["identity"] == json.dumps(identity):
            return
        with self._connections.explained():
            there = json.loads(row["identity"])
            here = {name: value for name, value in identity.items() if name != GAME_MODULE or name in there}
            if json.dumps(there) == json.dumps(here):
                return
            differences = "; ".join(_differences(there, here))
        raise StoreError(
            f"{self.location} holds another tournament ({row['name']!r}): {differences}. "
            "Undo the change, or choose another directory with --out"
        )

    def identity(self) -> dict[str, Any] | None:
        """Return the identity that ``claim`` stored; None if there is no tournament yet."""
        row = self._one_tournament()
        if row is None:
            return None
        with self._connections.explained():
            identity: dict[str, Any] = json.loads(row["identity"])
            return identity

    def config(self) -> dict[str, Any]:
        """Return the configuration that ``claim`` stored, with its ``name``.

        Raises NothingKeptError if there is none, also if there are games.
        """
        row = self._one_tournament()
        if row is None and self._has_games():
            raise NothingKeptError(
                f"{self.location} holds the games of a practice ladder or of challenges, and no tournament: "
                "see them on the pages of the server"
            )
        if row is None:
            raise NothingKeptError(f"{self.location} holds no tournament yet: run the tournament first")
        with self._connections.explained():
            config: dict[str, Any] = json.loads(row["config"])
            return {"name": row["name"], **config}

    def _has_games(self) -> bool:
        with self._connections.reading() as connection:
            return connection.execute(select(game.c.key).limit(1)).first() is not None

    def _one_tournament(self) -> Any:
        with self._connections.reading() as connection:
            return connection.execute(select(tournament)).mappings().one_or_none()

    def add(self, record: GameRecord, round_number: int, pair: str = "") -> bool:
        """Store a game, as a whole or not at all; return False if it was stored already.

        ``pair`` is the common name of the game and its return game.
        """
        return bool(self.add_all([PackedGame.of(record, round_number, pair)]))

    def add_all(self, games: Sequence[PackedGame]) -> set[str]:
        """Store games of different keys in one transaction; return the keys of those that are new.

        All are stored, or none: the disk is awaited once, however many there are.
        """
        keys = [one.summary.key for one in games]
        what = f"game {keys[0]}" if len(keys) == 1 else f"{len(keys)} games"
        with self._connections.writing(f"{what} could not be kept: ") as connection:
            there: set[str] = set()
            for at in range(0, len(keys), KEYS_AT_ONCE):
                part = keys[at : at + KEYS_AT_ONCE]
                there.update(connection.execute(select(game.c.key).where(game.c.key.in_(part))).scalars())
            new = [one for one in games if one.summary.key not in there]
            split = self._shared.split_all(connection, {one.summary.key: one.packed for one in new})
            added = [_row(one, split.records[one.summary.key]) for one in new]
            if added:
                connection.execute(insert(game), added)
                _chain(connection, map(_game_item, new))
        self._shared.add(split.added)
        return {row["key"] for row in added}

    def note(self, *entries: Entry) -> None:
        """Add entries to the journal, all or none, and number them."""
        rows = [
            {name: value for name, value in asdict(entry).items() if name != "number"}
            | {"data": json.dumps(entry.data)}
            for entry in entries
        ]
        with self._connections.writing("nothing was noted in the journal: ") as connection:
            last = connection.execute(select(func.max(journal.c.number))).scalar() or 0
            numbered = [{"number": last + i, **row} for i, row in enumerate(rows, 1)]
            connection.execute(insert(journal), numbered)
            _chain(connection, map(_ruling_item, numbered))

    def journal(self) -> list[Entry]:
        """Return all entries, oldest first."""
        with self._connections.reading() as connection:
            rows = connection.execute(select(journal).order_by(journal.c.number)).mappings().all()
            return [
                Entry(**{**row, "action": Action(row["action"]), "data": json.loads(row["data"])})
                for row in rows
            ]

    def played(self, after: str = "") -> set[str]:
        """Return the keys of all stored games, or of those after a key.

        The order of letters depends on the database, but digits are in order.
        """
        query = select(game.c.key).where(game.c.key > after) if after else select(game.c.key)
        with self._connections.reading() as connection:
            return set(connection.execute(query).scalars())

    def in_order(self) -> list[str]:
        """Return the keys of all stored games in the order of storing."""
        entries = select(chain.c.subject).where(chain.c.kind == Kind.GAME.value).order_by(chain.c.number)
        with self._connections.reading() as connection:
            there = set(connection.execute(select(game.c.key)).scalars())
            return [key for key in dict.fromkeys(connection.execute(entries).scalars()) if key in there]

    def size(self) -> tuple[int, int]:
        """Return the numbers of games and of journal entries, which never decrease."""
        with self._connections.reading() as connection:
            games, entries = (
                connection.execute(select(func.count()).select_from(table)).scalar_one()
                for table in (game, journal)
            )
            return games, entries

    def games(self, keys: Collection[str] | None = None) -> list[GameSummary]:
        """Return all games, or those of some keys, without their records, in the order of their keys."""
        query = select(*self._columns)
        with self._connections.reading() as connection:
            if keys is None:
                rows = connection.execute(query).all()  # one call for all rows, not one for each
            else:
                wanted = sorted(keys)
                parts = (wanted[at : at + KEYS_AT_ONCE] for at in range(0, len(wanted), KEYS_AT_ONCE))
                rows = [
                    row
                    for part in parts
                    for row in connection.execute(query.where(game.c.key.in_(part))).all()
                ]
            # Sorted here: the database would read the file in the order of the keys, with many seeks.
            return sorted(map(self._read, rows), key=attrgetter("key"))

    def record(self, key: str) -> GameRecord:
        """Return the record of a game.  Raises StoreError if it is not stored."""
        return self.records([key])[key]

    def records(self, keys: Sequence[str]) -> dict[str, GameRecord]:
        """Return the records of games, at most KEYS_AT_ONCE.  Raises StoreError if one is not stored."""
        stored = self.stored(keys)
        found = {}
        for key in keys:
            if key not in stored:
                raise StoreError(f"{self.location} holds no game {key!r}")
            try:
                found[key] = unpacked(stored[key].packed)
            except RefereeError as error:
                message = f"{self.location}: game {key}: {error}"
                raise StoreError(message, is_ours=True, is_damaged=True) from error
        return found

    def stored(self, keys: Sequence[str]) -> dict[str, StoredGame]:
        """Return stored games by their keys, at most KEYS_AT_ONCE; missing games are left out."""
        query = select(game.c.key, game.c.round, game.c.pair, game.c.record).where(game.c.key.in_(keys))
        with self._connections.reading() as connection:
            games = [StoredGame(*row) for row in connection.execute(query)]
            whole = self._shared.whole(connection, {one.key: one.packed for one in games})
        return {one.key: replace(one, packed=whole[one.key]) for one in games}

    def head(self) -> Head | None:
        """Return the chain's last entry; None if there is no entry or no chain."""
        if not self.is_chained:
            return None
        with self._connections.reading() as connection:
            return _head(connection)

    def chained(self) -> ChainedStore | None:
        """Return the chain and its items, without the games' records; None if there is no chain."""
        if not self.is_chained:
            return None
        with self._connections.reading() as connection:
            links = connection.execute(select(chain).order_by(chain.c.number)).all()
            noted = connection.execute(select(tournament)).mappings().one_or_none()
            rulings = map(_ruling_item, connection.execute(select(journal)).mappings())
            return ChainedStore(
                [Link(*row) for row in links],
                None if noted is None else tournament_item(noted["name"], noted["config"], noted["identity"]),
                frozenset(connection.execute(select(game.c.key)).scalars()),
                {item.subject: item for item in rulings},
            )


def _head(connection: Connection) -> Head | None:
    query = select(chain.c.digest, chain.c.number).order_by(chain.c.number.desc()).limit(1)
    row = connection.execute(query).first()
    return None if row is None else Head(*row)


def _chain(connection: Connection, items: Iterable[Item]) -> None:
    """Append items to the chain, in the transaction that stores them: there is one writer at a time."""
    connection.execute(insert(chain), [link._asdict() for link in extend(_head(connection), items)])


def _game_item(one: PackedGame) -> Item:
    """Return the item of a game that is being stored."""
    return game_item(one.summary.key, one.summary.round, one.summary.pair, one.packed)


def _ruling_item(row: Mapping[str, Any] | RowMapping) -> Item:
    """Return the item of a row of the journal."""
    columns = ("number", "at", "action", "subject", "why", "round", "data")
    return ruling_item(*(row[column] for column in columns))


_SAME = [column.name for column in _SUMMARY_COLUMNS if column.name in GameSummary._fields]
"""Columns with the names of their fields.  The others are of one of the two bots each."""


def _row(one: PackedGame, record: bytes) -> dict[str, Any]:
    """Return the row of a game; ``record`` is its packed record as it is stored."""
    summary = one.summary
    row: dict[str, Any] = {name: getattr(summary, name) for name in _SAME}
    row |= {"reason": summary.reason.value, "detail": storable(summary.detail), "record": record}
    for name in ("score", "moves", "wall_us", "charged_us"):
        row[f"first_{name}"], row[f"second_{name}"] = getattr(summary, name) or (None, None)
    return row


_REASONS = {reason.value: reason for reason in Reason}


def _summary(row: Any) -> GameSummary:
    """Return a summary from the columns in the order of the schema; looking up names takes thrice as long."""
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


def _completed_summary(missing: Sequence[str], row: Any) -> GameSummary:
    """Return a summary from a row; the ``missing`` columns are computed from the record, its last column."""
    *columns, packed = row
    found = _summary(columns)
    try:
        whole = GameSummary.of(unpacked(packed), found.round, found.pair)
    except (RefereeError, LookupError, TypeError, ValueError, AttributeError):
        return found  # a damaged record is reported where it is read
    return found._replace(**{name: getattr(whole, name) for name in missing})


LONGEST_VALUES = 400
"""Characters of both values of a setting in a message: a file of openings may have thousands."""
OLD_DEFAULTS = {"format": "round-robin"}
"""Values assumed for settings that older databases do not record."""


def _differences(there: dict[str, Any], here: dict[str, Any]) -> Sequence[str]:
    found = []
    for key in sorted({*there, *here} - {"bots", GAME_MODULE}):
        stored, given = (str(side.get(key, OLD_DEFAULTS.get(key, "none"))) for side in (there, here))
        if there.get(key) == here.get(key):
            continue
        if len(stored + given) > LONGEST_VALUES:
            found.append(f"there is a change in its {key}")
        else:
            found.append(f"its {key} is {stored}, now it is {given}")
    if there.get("game") == here.get("game") and there.get(GAME_MODULE) != here.get(GAME_MODULE):
        found.append("the module of its game has changed since")
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
