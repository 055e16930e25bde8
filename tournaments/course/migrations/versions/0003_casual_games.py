"""Casual games of people."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

MOMENT = sa.String(27)


def upgrade() -> None:
    op.create_table(
        "casual_game",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("address", sa.String(32), nullable=False, comment="unguessable; in the page's address"),
        sa.Column("game", sa.Text, nullable=False, comment="spec text"),
        sa.Column("opening", sa.Text, nullable=False, comment="as referee/games/opening.py reads it"),
        sa.Column("players", sa.Text, nullable=False, comment="JSON of two casual_games.CasualPlayer"),
        sa.Column("moves", sa.Text, nullable=False, comment="with spaces between them"),
        sa.Column("revision", sa.Integer, nullable=False, comment="number of take-backs"),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("changed_at", MOMENT, nullable=False),
        sa.Column("ended_at", MOMENT),
        sa.Column("winner", sa.Integer, comment="0, 1, or NULL"),
        sa.Column("sentence", sa.Text, nullable=False, comment="how it ended"),
        sa.PrimaryKeyConstraint("id", name="pk_casual_game"),
        sa.UniqueConstraint("address", name="uq_casual_game_address"),
        sqlite_autoincrement=True,
        comment="games of people, which count for nothing; old ones are deleted",
    )
    op.create_index("ix_casual_game_changed_at", "casual_game", ["changed_at"])


def downgrade() -> None:
    op.drop_table("casual_game")
