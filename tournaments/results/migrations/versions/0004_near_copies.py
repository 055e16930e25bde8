"""The column ``line`` of games, which is equal for near-copies.

The column is derived from records by the rules of the games.  The code that plays games is used for that;
``verify`` compares the column with the records.
"""

import sqlalchemy as sa
from alembic import op

from referee.errors import RefereeError
from tournaments.results.game_summary import line_of
from tournaments.results.packing import unpacked

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.add_column("game", sa.Column("line", sa.String(16), comment="equal for near-copies of a game"))
    connection = op.get_bind()
    read = sa.text('SELECT record FROM game WHERE "key" = :key')
    write = sa.text('UPDATE game SET line = :line WHERE "key" = :key')
    for key in connection.execute(sa.text('SELECT "key" FROM game')).scalars().all():
        try:
            record = unpacked(connection.execute(read, {"key": key}).scalar_one())
            line = line_of(record.game, record.opening, [move.move for move in record.moves])
        except (
            RefereeError,
            LookupError,
            TypeError,
            ValueError,
            AttributeError,
        ):  # a damaged record, which ``verify`` names, keeps no store closed
            line = ""
        connection.execute(write, {"key": key, "line": line})
    with op.batch_alter_table("game") as game:
        game.alter_column("line", existing_type=sa.String(16), nullable=False)


def downgrade() -> None:
    with op.batch_alter_table("game") as game:
        game.drop_column("line")
