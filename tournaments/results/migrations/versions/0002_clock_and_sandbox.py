"""Columns for the charged time and for the confinement of the bots."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

MICROSECONDS = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    columns = (
        sa.Column("first_charged_us", MICROSECONDS),
        sa.Column("second_charged_us", MICROSECONDS),
        sa.Column("sandbox", sa.String(32), comment="the tier that ran"),
    )
    for column in columns:
        op.add_column("game", column)
    # Before there was a fair clock, all time was charged; before there was a sandbox, nothing was confined.
    op.execute(
        "UPDATE game SET first_charged_us = first_wall_us, second_charged_us = second_wall_us, "
        "sandbox = 'off'"
    )
    with op.batch_alter_table("game") as game:
        for column in columns:
            game.alter_column(column.name, existing_type=column.type, nullable=False)


def downgrade() -> None:
    with op.batch_alter_table("game") as game:
        for column in ("first_charged_us", "second_charged_us", "sandbox"):
            game.drop_column(column)
