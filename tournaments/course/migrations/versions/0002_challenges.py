"""Challenges, and whether teams accept them."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

MOMENT = sa.String(27)


def upgrade() -> None:
    op.create_table(
        "challenge",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("competition_id", sa.Integer, nullable=False),
        sa.Column("team_id", sa.Integer, nullable=False),
        sa.Column("asked_by", sa.Integer, nullable=False),
        sa.Column("asked_at", MOMENT, nullable=False),
        sa.Column("origin", sa.String(16), nullable=False),
        sa.Column("version_id", sa.Integer),
        sa.Column("remote", sa.Text, comment="name of the team's remote bot, in place of a version"),
        sa.Column("bot_name", sa.Text, nullable=False),
        sa.Column("opponent_version_id", sa.Integer),
        sa.Column("opponent_reference", sa.Text),
        sa.Column("opponent_remote", sa.Text),
        sa.Column("opponent_name", sa.Text, nullable=False),
        sa.Column("opponent_team_id", sa.Integer),
        sa.Column("pairs", sa.Integer, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("wins", sa.Integer, nullable=False),
        sa.Column("draws", sa.Integer, nullable=False),
        sa.Column("losses", sa.Integer, nullable=False),
        sa.Column("ended_at", MOMENT),
        sa.ForeignKeyConstraint(["competition_id"], ["competition.id"], name="fk_challenge_competition_id"),
        sa.ForeignKeyConstraint(["team_id"], ["team.id"], name="fk_challenge_team_id"),
        sa.ForeignKeyConstraint(["asked_by"], ["account.id"], name="fk_challenge_asked_by"),
        sa.ForeignKeyConstraint(["version_id"], ["version.id"], name="fk_challenge_version_id"),
        sa.ForeignKeyConstraint(
            ["opponent_version_id"], ["version.id"], name="fk_challenge_opponent_version_id"
        ),
        sa.ForeignKeyConstraint(["opponent_team_id"], ["team.id"], name="fk_challenge_opponent_team_id"),
        sa.PrimaryKeyConstraint("id", name="pk_challenge"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_challenge_team_id", "challenge", ["team_id"])
    op.create_index("ix_challenge_state", "challenge", ["state"])
    op.create_table(
        "challenge_consent",
        sa.Column("team_id", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("accepts", sa.Boolean, nullable=False),
        sa.ForeignKeyConstraint(["team_id"], ["team.id"], name="fk_challenge_consent_team_id"),
        sa.PrimaryKeyConstraint("team_id", name="pk_challenge_consent"),
        comment="teams that have decided whether others may challenge their bot; the others accept",
    )


def downgrade() -> None:
    op.drop_table("challenge_consent")
    op.drop_table("challenge")
