"""Manipulation of a results store by a person who has the database."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection, select

from tournaments.database.base import Connections, Location
from tournaments.database.migrations import allow_changes
from tournaments.database.sqlite import SQLiteFile
from tournaments.results.chain import Item, Kind, extend, game_item, ruling_item, tournament_item
from tournaments.results.schema import chain, game, journal, tournament
from tournaments.results.shared_parts import SharedParts

GUARDED = ("game", "journal", "chain", "shared_part")
RULING = [journal.c[name] for name in ("number", "at", "action", "subject", "why", "round", "data")]


@contextmanager
def tampering(where: Location | Path) -> Iterator[Connection]:
    """Open a transaction in a store whose triggers are dropped; a path is an SQLite file."""
    location = SQLiteFile(where) if isinstance(where, Path) else where
    with Connections(location) as connections, connections.writing() as connection:
        for table in GUARDED:
            allow_changes(connection, table)
        yield connection


def rechain(connection: Connection) -> None:
    """Compute a valid chain anew from what is stored, in its old order."""
    items: list[Item] = []
    kept = select(game.c.key, game.c.round, game.c.pair, game.c.record)
    rows = connection.execute(kept).all()
    whole = SharedParts().whole(connection, {row.key: row.record for row in rows})
    games = {row.key: game_item(*row[:3], whole[row.key]) for row in rows}
    rulings = {row.number: ruling_item(*row) for row in connection.execute(select(*RULING))}
    noted = connection.execute(select(tournament.c.name, tournament.c.config, tournament.c.identity)).one()
    for link in connection.execute(select(chain).order_by(chain.c.number)).all():
        match link.kind:
            case Kind.TOURNAMENT:
                items.append(tournament_item(*noted))
            case Kind.GAME if link.subject in games:
                items.append(games.pop(link.subject))
            case Kind.RULING if int(link.subject.partition(" ")[0]) in rulings:
                items.append(rulings.pop(int(link.subject.partition(" ")[0])))
            case Kind.ADOPTED:
                items.append(Item(link.kind, link.subject, link.content))
    items += [*games.values(), *rulings.values()]
    connection.execute(chain.delete())
    connection.execute(chain.insert(), [link._asdict() for link in extend(None, items)])
