"""Tables of the store, for SQLAlchemy.  Migrations create them; a test compares both."""

from collections.abc import Callable
from typing import Any

from sqlalchemy import BigInteger, Column, Dialect, Integer, LargeBinary, MetaData, String, Table, Text

from referee.games.base import LONGEST_FAULT

REVISION = "0007"
"""Newest revision of migrations/versions, which creates these tables."""

_MICROSECONDS = BigInteger().with_variant(Integer(), "sqlite")
"""Type of times of a whole game: PostgreSQL's 32-bit integers end after 36 minutes."""


class HexBytes(LargeBinary):
    """Bytes in the database, which are a text of hexadecimal digits here: half the space of the text.

    A text that an older version stored is returned as it is.
    """

    cache_ok = True

    def bind_processor(self, dialect: Dialect) -> Callable[[Any], Any]:
        """See SQLAlchemy's ``TypeEngine``."""
        binary = dialect.dbapi.Binary if dialect.dbapi is not None else bytes
        return lambda value: None if value is None else binary(bytes.fromhex(value))

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any]:
        """See SQLAlchemy's ``TypeEngine``."""
        return lambda value: value if value is None or isinstance(value, str) else bytes(value).hex()


metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "ix": "ix_%(table_name)s_%(column_0_name)s",
    }
)

tournament = Table(
    "tournament",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("name", Text, nullable=False),
    Column("config", Text, nullable=False, comment="what is to be played, as JSON"),
    Column("identity", Text, nullable=False, comment="what makes results comparable, as JSON"),
)

game = Table(
    "game",
    metadata,
    Column("key", String(64), primary_key=True, comment="the pairing's key: a game cannot be there twice"),
    Column("round", Integer, nullable=False),
    Column("first", Text, nullable=False),
    Column("second", Text, nullable=False),
    Column("winner", Integer, comment="0 first, 1 second, NULL a draw"),
    Column("reason", String(32), nullable=False),
    Column("fault", String(LONGEST_FAULT)),
    Column("detail", Text, nullable=False),
    Column("first_score", Integer),
    Column("second_score", Integer),
    Column("first_moves", Integer, nullable=False),
    Column("second_moves", Integer, nullable=False),
    Column("first_wall_us", _MICROSECONDS, nullable=False),
    Column("second_wall_us", _MICROSECONDS, nullable=False),
    Column("first_charged_us", _MICROSECONDS, nullable=False),
    Column("second_charged_us", _MICROSECONDS, nullable=False),
    Column("sandbox", String(32), nullable=False, comment="the tier that ran"),
    Column("pair", Text, nullable=False, comment="what the two games of a pair have in common"),
    Column("opening", Text, nullable=False),
    Column("fingerprint", String(16), nullable=False, comment="equal for identical games"),
    Column("swapped", Integer, comment="0 first, 1 second, NULL nobody"),
    Column("line", String(16), nullable=False, comment="equal for near-copies of a game"),
    Column("deficit_permille", Integer, comment="by which the winner was behind at most, of all seeds"),
    Column("record", LargeBinary, nullable=False, comment="the whole record, see results/packing.py"),
)

shared_part = Table(
    "shared_part",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False, comment="counted from 1"),
    Column("content", LargeBinary, nullable=False, comment="what records of games have in common: msgpack"),
)

journal = Table(
    "journal",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("at", String(32), nullable=False, comment="UTC, ISO 8601"),
    Column("action", String(16), nullable=False),
    Column("subject", Text, nullable=False, comment="key of a game, or name of a bot"),
    Column("why", Text, nullable=False),
    Column("round", Integer, nullable=False, comment="the round that was under way"),
    Column("data", Text, nullable=False, comment="what else belongs to it, as JSON"),
)

chain = Table(
    "chain",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False, comment="counted from 1"),
    Column("kind", String(16), nullable=False, comment="tournament, game, ruling or adopted"),
    Column("subject", Text, nullable=False, comment="key of a game, or what else was stored"),
    Column("content", HexBytes, nullable=False, comment="SHA-256 of what was stored"),
    Column("digest", HexBytes, nullable=False, comment="SHA-256 of this entry and the digest before"),
)
