"""The tournament and its games."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

MICROSECONDS = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "tournament",
        sa.Column("id", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("config", sa.Text, nullable=False, comment="what is to be played, as JSON"),
        sa.Column("identity", sa.Text, nullable=False, comment="what makes results comparable, as JSON"),
        sa.PrimaryKeyConstraint("id", name="pk_tournament"),
    )
    op.create_table(
        "game",
        sa.Column(
            "key", sa.String(64), nullable=False, comment="the pairing's key: a game cannot be there twice"
        ),
        sa.Column("round", sa.Integer, nullable=False),
        sa.Column("first", sa.Text, nullable=False),
        sa.Column("second", sa.Text, nullable=False),
        sa.Column("winner", sa.Integer, comment="0 first, 1 second, NULL a draw"),
        sa.Column("reason", sa.String(32), nullable=False),
        sa.Column("fault", sa.String(32)),
        sa.Column("detail", sa.Text, nullable=False),
        sa.Column("first_score", sa.Integer),
        sa.Column("second_score", sa.Integer),
        sa.Column("first_moves", sa.Integer, nullable=False),
        sa.Column("second_moves", sa.Integer, nullable=False),
        sa.Column("first_wall_us", MICROSECONDS, nullable=False),
        sa.Column("second_wall_us", MICROSECONDS, nullable=False),
        sa.Column("record", sa.LargeBinary, nullable=False, comment="the whole record: msgpack, deflated"),
        sa.PrimaryKeyConstraint("key", name="pk_game"),
    )


def downgrade() -> None:
    op.drop_table("game")
    op.drop_table("tournament")
