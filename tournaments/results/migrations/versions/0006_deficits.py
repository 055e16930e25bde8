"""The column ``deficit_permille`` of games: the winner's largest deficit in the stores.

Like ``line``, the column is computed from the records by the rules of the games, and ``verify`` compares it
with the records.
"""

import sqlalchemy as sa
from alembic import op

from referee.errors import RefereeError
from tournaments.database.migrations import allow_changes, forbid_changes
from tournaments.results.game_summary import deficit_of
from tournaments.results.packing import unpacked

revision = "0006"
down_revision = "0005"

COLUMN = sa.Column(
    "deficit_permille", sa.Integer, comment="by which the winner was behind at most, of all seeds"
)
KEPT = ("game", "key", "a game that was kept is never changed")
"""The table, its primary key, and the error message of a change."""


def upgrade() -> None:
    op.add_column("game", COLUMN)
    connection = op.get_bind()
    allow_changes(connection, "game")
    read = sa.text('SELECT record FROM game WHERE "key" = :key')
    write = sa.text('UPDATE game SET deficit_permille = :deficit WHERE "key" = :key')
    for key in connection.execute(sa.text('SELECT "key" FROM game')).scalars().all():
        try:
            record = unpacked(connection.execute(read, {"key": key}).scalar_one())
            moves = [move.move for move in record.moves]
            deficit = deficit_of(record.game, record.opening, moves, record.result.winner)
        except (
            RefereeError,
            LookupError,
            TypeError,
            ValueError,
            AttributeError,
        ):  # ``verify`` reports the damaged record; the migration goes on
            continue
        connection.execute(write, {"key": key, "deficit": deficit})
    forbid_changes(connection, *KEPT)


def downgrade() -> None:
    connection = op.get_bind()
    allow_changes(connection, "game")
    with op.batch_alter_table("game") as game:
        game.drop_column("deficit_permille")
    forbid_changes(connection, *KEPT)
