"""Locations of databases as arguments of processes, and stores of any revision."""

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection

from tournaments.database import postgresql, sqlite
from tournaments.database.base import Connections, Kind, Location
from tournaments.database.location import Database
from tournaments.results.store import MIGRATIONS

# A new connection took longer than the 5 s in which a user's page is to be answered.
postgresql.CONNECT_TIMEOUT_S = 60
# The data need not survive a crash of the machine: no test process waits for the disk at each commit.
sqlite.SYNCHRONOUS = "OFF"


def to_argument(location: Location | Database) -> str:
    """Return a location as an argument of a process, which reads it with ``from_argument``."""
    return pickle.dumps(location).hex()


def from_argument(text: str) -> Any:
    """Return the Location or Database of an argument."""
    return pickle.loads(bytes.fromhex(text))


@contextmanager
def store_of_revision(location: Location, revision: str) -> Iterator[Connection]:
    """Open a transaction in a results store, which is upgraded or downgraded to a revision."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS.scripts))
    with Connections(location) as connections, connections.writing("", Kind.MIGRATE) as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
        command.downgrade(config, revision)
        yield connection
