"""Columns for unique games, their pairs and swaps; the journal of rulings."""

import json
import re
import zlib
from hashlib import blake2b

import msgpack
import sqlalchemy as sa
from alembic import op

from tournaments.database.migrations import forbid_changes

revision = "0003"
down_revision = "0002"

COLUMNS = ("pair", "opening", "fingerprint", "swapped")


def upgrade() -> None:
    op.create_table(
        "journal",
        sa.Column("number", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("at", sa.String(32), nullable=False, comment="UTC, ISO 8601"),
        sa.Column("action", sa.String(16), nullable=False),
        sa.Column("subject", sa.Text, nullable=False, comment="key of a game, or name of a bot"),
        sa.Column("why", sa.Text, nullable=False),
        sa.Column("round", sa.Integer, nullable=False, comment="the round that was under way"),
        sa.Column("data", sa.Text, nullable=False, comment="what else belongs to it, as JSON"),
        sa.PrimaryKeyConstraint("number", name="pk_journal"),
    )
    forbid_changes(op.get_bind(), "journal", "number", "the journal is only ever added to")
    op.add_column("game", sa.Column("pair", sa.Text, comment="what the two games of a pair have in common"))
    op.add_column("game", sa.Column("opening", sa.Text))
    op.add_column("game", sa.Column("fingerprint", sa.String(16), comment="equal for identical games"))
    op.add_column("game", sa.Column("swapped", sa.Integer, comment="0 first, 1 second, NULL nobody"))
    _fill()
    with op.batch_alter_table("game") as game:
        for name in ("pair", "opening"):
            game.alter_column(name, existing_type=sa.Text, nullable=False)
        game.alter_column("fingerprint", existing_type=sa.String(16), nullable=False)


def _fill() -> None:
    """Take the new columns' values from the records; the text of this is not to follow later versions."""
    connection = op.get_bind()
    read = sa.text('SELECT record FROM game WHERE "key" = :key')
    write = sa.text(
        "UPDATE game SET pair = :pair, opening = :opening, fingerprint = :fingerprint, swapped = :swapped "
        'WHERE "key" = :key'
    )
    for key in connection.execute(sa.text('SELECT "key" FROM game')).scalars().all():
        packed = connection.execute(read, {"key": key}).scalar_one()
        record = msgpack.unpackb(zlib.decompress(packed), unicode_errors="surrogatepass")
        players, moves = (record["moves"][0], record["moves"][1]) if record["moves"] else ((), ())
        result = record["result"]
        told = [record["game"], record["opening"], list(moves), result["winner"], result["reason"]]
        connection.execute(
            write,
            {
                "key": key,
                "pair": _pair(key),
                "opening": record["opening"],
                "fingerprint": blake2b(json.dumps(told).encode(), digest_size=8).hexdigest(),
                "swapped": next((p for p, m in zip(players, moves, strict=True) if m == "SWAP"), None),
            },
        )


def _pair(key: str) -> str:
    """``r001-3v1`` belongs to ``r001-1+3``."""
    found = re.fullmatch(r"(r\d+)-(\d+)v(\d+)", key)
    return f"{found[1]}-{'+'.join(sorted(found.groups()[1:], key=int))}" if found else ""


def downgrade() -> None:
    with op.batch_alter_table("game") as game:
        for name in COLUMNS:
            game.drop_column(name)
    op.drop_table("journal")
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP FUNCTION journal_is_kept()")
