"""The tables of the store, as SQLAlchemy sees them.  Migrations make them; a test compares the two."""

from sqlalchemy import BigInteger, Column, Integer, LargeBinary, MetaData, String, Table, Text

REVISION = "0003"
"""The newest of migrations/versions, which makes these tables."""

_MICROSECONDS = BigInteger().with_variant(Integer(), "sqlite")
"""Of a whole game: 32 bits, which is what PostgreSQL calls an integer, end after 36 minutes."""

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
    Column("fault", String(32)),
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
    Column("record", LargeBinary, nullable=False, comment="the whole record: msgpack, deflated"),
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
