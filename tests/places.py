"""Places of the database in tests: handed to other processes, and brought to any revision."""

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection

from tournaments.database.base import Connections, Kind, Location
from tournaments.database.location import Database
from tournaments.results.store import MIGRATIONS


def to_argument(place: Location | Database) -> str:
    """A place, or where they are, for another process, which finds it with ``from_argument``."""
    return pickle.dumps(place).hex()


def from_argument(text: str) -> Any:
    """The Place or Database."""
    return pickle.loads(bytes.fromhex(text))


@contextmanager
def store_of_revision(place: Location, revision: str) -> Iterator[Connection]:
    """A transaction in a results store that was made, upgraded or put back to a revision."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS.scripts))
    with Connections(place) as connections, connections.writing("", Kind.MIGRATE) as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
        command.downgrade(config, revision)
        yield connection
