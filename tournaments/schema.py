"""The tables of the store, as SQLAlchemy sees them.  Migrations make them; a test compares the two."""

from sqlalchemy import Column, Integer, LargeBinary, MetaData, String, Table, Text

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
    Column("id", Integer, primary_key=True),
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
    Column("first_wall_us", Integer, nullable=False),
    Column("second_wall_us", Integer, nullable=False),
    Column("first_charged_us", Integer, nullable=False),
    Column("second_charged_us", Integer, nullable=False),
    Column("sandbox", String(32), nullable=False, comment="the tier that ran"),
    Column("record", LargeBinary, nullable=False, comment="the whole record: msgpack, deflated"),
)
