"""The hash chain over tournament, games and journal, and triggers that keep games and chain from changes."""

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice

import sqlalchemy as sa
from alembic import op

from tournaments.database.migrations import allow_changes, forbid_changes
from tournaments.results.chain import Item, adopted_item, extend, game_item, ruling_item, tournament_item

revision = "0005"
down_revision = "0004"

KEPT = {"game": ("key", "a game that was kept is never changed"), "chain": ("number", "it is only added to")}
"""Table -> its primary key, and the error message of a change."""
CHUNK = 1000
"""Games read, and entries written, at a time."""


def upgrade() -> None:
    chain = op.create_table(
        "chain",
        sa.Column("number", sa.Integer, autoincrement=False, nullable=False, comment="counted from 1"),
        sa.Column("kind", sa.String(16), nullable=False, comment="tournament, game, ruling or adopted"),
        sa.Column("subject", sa.Text, nullable=False, comment="key of a game, or what else was stored"),
        sa.Column("content", sa.String(64), nullable=False, comment="SHA-256 of what was stored"),
        sa.Column(
            "digest", sa.String(64), nullable=False, comment="SHA-256 of this entry and the digest before"
        ),
        sa.PrimaryKeyConstraint("number", name="pk_chain"),
    )
    connection = op.get_bind()
    links = extend(None, _adopted(connection))
    while rows := [link._asdict() for link in islice(links, CHUNK)]:
        connection.execute(sa.insert(chain), rows)
    for table, (key, message) in KEPT.items():
        forbid_changes(connection, table, key, message)


def _adopted(connection: sa.Connection) -> Iterator[Item]:
    """Yield everything that was stored before, then the time of the adoption; nothing for a new store."""
    found = False
    for row in connection.execute(sa.text("SELECT name, config, identity FROM tournament")).all():
        found = True
        yield tournament_item(*row)
    for item in _games(connection):
        found = True
        yield item
    columns = "number, at, action, subject, why, round, data"
    for row in connection.execute(sa.text(f"SELECT {columns} FROM journal ORDER BY number")).all():
        found = True
        yield ruling_item(*row)
    if found:
        yield adopted_item(datetime.now(UTC).isoformat(timespec="seconds"))


def _games(connection: sa.Connection) -> Iterator[Item]:
    """Yield the games in the order of their keys: the order of storing is not known."""
    query = sa.text(
        'SELECT "key", round, pair, record FROM game WHERE "key" > :after ORDER BY "key" LIMIT :chunk'
    )
    after = ""
    while rows := connection.execute(query, {"after": after, "chunk": CHUNK}).all():
        for row in rows:
            yield game_item(*row)
        after = rows[-1][0]


def downgrade() -> None:
    for table in KEPT:
        allow_changes(op.get_bind(), table)
    op.drop_table("chain")
