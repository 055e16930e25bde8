"""Games of checks."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.create_table(
        "checked_game",
        sa.Column("version_id", sa.Integer, nullable=False),
        sa.Column("number", sa.Integer, nullable=False, comment="counted from 1, as played"),
        sa.Column("key", sa.String(64), nullable=False, comment="as in the report of the check"),
        sa.Column("player", sa.Integer, nullable=False, comment="the checked bot in the record: 0 or 1"),
        sa.Column("record", sa.LargeBinary, nullable=False, comment="the whole record: msgpack, deflated"),
        sa.PrimaryKeyConstraint("version_id", "number", name="pk_checked_game"),
        sa.ForeignKeyConstraint(["version_id"], ["version.id"], name="fk_checked_game_version_id"),
        sa.UniqueConstraint("version_id", "key", name="uq_checked_game_version_id_key"),
        comment="games of the latest check of a version; those of a team's older versions are deleted",
    )


def downgrade() -> None:
    op.drop_table("checked_game")
