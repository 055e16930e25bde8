"""The table ``shared_part``, and digests of the chain as bytes: both halve the size of a store.

Records that are stored already remain as they are.
"""

import hashlib
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from alembic import op

from tournaments.database.migrations import allow_changes, forbid_changes
from tournaments.results.packing import as_columns, is_split, numbers_of, whole

revision = "0007"
down_revision = "0006"

CHAIN = ("chain", "number", "it is only added to")
"""The table, its primary key, and the error message of a change."""
GAME = ("game", "key", "a game that was kept is never changed")
SHARED = ("shared_part", "number", "it is only added to")
DIGESTS = ("content", "digest")
RECORD, RECORD_BEFORE = "the whole record, see results/packing.py", "the whole record: msgpack, deflated"
"""Comments of the column ``record``, which PostgreSQL keeps."""
CHUNK = 1000
"""Rows at a time."""


def upgrade() -> None:
    op.create_table(
        "shared_part",
        sa.Column("number", sa.Integer, autoincrement=False, nullable=False, comment="counted from 1"),
        sa.Column(
            "content",
            sa.LargeBinary,
            nullable=False,
            comment="what records of games have in common: msgpack",
        ),
        sa.PrimaryKeyConstraint("number", name="pk_shared_part"),
    )
    connection = op.get_bind()
    forbid_changes(connection, *SHARED)
    allow_changes(connection, "chain")
    if connection.dialect.name == "postgresql":
        op.alter_column("game", "record", comment=RECORD, existing_type=sa.LargeBinary)
        for name in DIGESTS:
            # A text that is no digest was put there by hand: as another digest it is found by ``verify``.
            connection.exec_driver_sql(
                f"ALTER TABLE chain ALTER COLUMN {name} TYPE bytea USING CASE WHEN {name} ~ "
                f"'^([0-9a-f]{{2}})*$' THEN decode({name}, 'hex') "
                f"ELSE sha256(convert_to({name}, 'UTF8')) END"
            )
    else:
        _rewrite(connection, sa.LargeBinary, _bytes_of)
    forbid_changes(connection, *CHAIN)


def _bytes_of(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:  # as above
        return hashlib.sha256(text.encode()).digest()


def _rewrite(connection: sa.Connection, kind: Any, convert: Callable[[Any], Any]) -> None:
    """Make the chain anew with other types, and copy its rows."""
    op.rename_table("chain", "chain_before")
    chain = op.create_table(
        "chain",
        sa.Column("number", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("subject", sa.Text, nullable=False),
        *(sa.Column(name, kind, nullable=False) for name in DIGESTS),
        sa.PrimaryKeyConstraint("number", name="pk_chain"),
    )
    columns = "number, kind, subject, content, digest"
    query = sa.text(f"SELECT {columns} FROM chain_before WHERE number > :after ORDER BY number LIMIT :chunk")
    after = -1
    while rows := connection.execute(query, {"after": after, "chunk": CHUNK}).mappings().all():
        copied = [{**row, **{name: convert(row[name]) for name in DIGESTS}} for row in rows]
        connection.execute(sa.insert(chain), copied)
        after = rows[-1]["number"]
    op.drop_table("chain_before")


def downgrade() -> None:
    """Turn records back into columns; those games then differ from their entries in the chain."""
    connection = op.get_bind()
    allow_changes(connection, "game")
    rows = connection.execute(sa.text("SELECT number, content FROM shared_part")).all()
    shared = {number: bytes(content) for number, content in rows}
    read = sa.text('SELECT record FROM game WHERE "key" = :key')
    write = sa.text('UPDATE game SET record = :record WHERE "key" = :key')
    for key in connection.execute(sa.text('SELECT "key" FROM game')).scalars().all():
        packed = bytes(connection.execute(read, {"key": key}).scalar_one())
        if is_split(packed):
            packed = whole(packed, [shared[number] for number in numbers_of(packed)], key)
        record = as_columns(packed)
        if record != packed:
            connection.execute(write, {"key": key, "record": record})
    forbid_changes(connection, *GAME)
    allow_changes(connection, "shared_part")
    op.drop_table("shared_part")
    allow_changes(connection, "chain")
    if connection.dialect.name == "postgresql":
        op.alter_column("game", "record", comment=RECORD_BEFORE, existing_type=sa.LargeBinary)
        for name in DIGESTS:
            connection.exec_driver_sql(
                f"ALTER TABLE chain ALTER COLUMN {name} TYPE varchar(64) USING encode({name}, 'hex')"
            )
    else:
        _rewrite(connection, sa.String(64), bytes.hex)
    forbid_changes(connection, *CHAIN)
