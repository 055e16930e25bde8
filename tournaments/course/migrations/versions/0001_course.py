"""The course: accounts, teams, versions, competitions, settings, journal."""

import sqlalchemy as sa
from alembic import op

from tournaments.database.migrations import forbid_changes

revision = "0001"
down_revision = None

MOMENT = sa.String(27)
TABLES = (
    "setting",
    "team",
    "account",
    "team_name",
    "competition",
    "journal",
    "link",
    "session",
    "token",
    "version",
    "checked",
    "competitor",
)


def upgrade() -> None:
    op.create_table(
        "setting",
        sa.Column("id", sa.Integer, autoincrement=False, nullable=False, comment="always 1"),
        sa.Column("content", sa.Text, nullable=False, comment="JSON of settings.Settings"),
        sa.PrimaryKeyConstraint("id", name="pk_setting"),
    )
    op.create_table(
        "team",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_team"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "account",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("login", sa.Text, nullable=False, comment="NFKC, casefolded"),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("team_id", sa.Integer),
        sa.Column("password", sa.Text, comment="Argon2id; NULL until an invitation is accepted"),
        sa.Column("disabled", sa.Boolean, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.ForeignKeyConstraint(["team_id"], ["team.id"], name="fk_account_team_id"),
        sa.PrimaryKeyConstraint("id", name="pk_account"),
        sa.UniqueConstraint("login", name="uq_account_login"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_account_team_id", "account", ["team_id"])
    op.create_table(
        "team_name",
        sa.Column(
            "name", sa.Text, nullable=False, comment="texts.same_name: equal for names that are the same"
        ),
        sa.Column("key", sa.Text, nullable=False, comment="texts.name_key: one team's alone"),
        sa.Column("team_id", sa.Integer, nullable=False),
        sa.ForeignKeyConstraint(["team_id"], ["team.id"], name="fk_team_name_team_id"),
        sa.PrimaryKeyConstraint("name", name="pk_team_name"),
        comment="all names that teams have or had: a former one is in games, and nobody else's",
    )
    op.create_index("ix_team_name_key", "team_name", ["key"])
    op.create_table(
        "competition",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("slug", sa.String(40), nullable=False),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("spec", sa.Text, nullable=False, comment="JSON"),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("created_by", sa.Integer),
        sa.Column("started_at", MOMENT),
        sa.Column("finished_at", MOMENT),
        sa.ForeignKeyConstraint(["created_by"], ["account.id"], name="fk_competition_created_by"),
        sa.PrimaryKeyConstraint("id", name="pk_competition"),
        sa.UniqueConstraint("slug", name="uq_competition_slug"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "journal",
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("at", MOMENT, nullable=False),
        sa.Column("account_id", sa.Integer),
        sa.Column("action", sa.Text, nullable=False),
        sa.Column("subject", sa.Text, nullable=False),
        sa.Column("detail", sa.Text, nullable=False, comment="JSON"),
        sa.ForeignKeyConstraint(["account_id"], ["account.id"], name="fk_journal_account_id"),
        sa.PrimaryKeyConstraint("number", name="pk_journal"),
        comment="who did what; only ever added to",
        sqlite_autoincrement=True,
    )
    op.create_table(
        "link",
        sa.Column("digest", sa.String(64), nullable=False, comment="SHA-256 of the secret"),
        sa.Column("account_id", sa.Integer, nullable=False),
        sa.Column("purpose", sa.String(16), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("expires_at", MOMENT, nullable=False),
        sa.ForeignKeyConstraint(["account_id"], ["account.id"], name="fk_link_account_id"),
        sa.PrimaryKeyConstraint("digest", name="pk_link"),
        sa.UniqueConstraint("account_id", name="uq_link_account_id"),
    )
    op.create_table(
        "session",
        sa.Column("digest", sa.String(64), nullable=False, comment="SHA-256 of the secret"),
        sa.Column("account_id", sa.Integer, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("expires_at", MOMENT, nullable=False),
        sa.ForeignKeyConstraint(["account_id"], ["account.id"], name="fk_session_account_id"),
        sa.PrimaryKeyConstraint("digest", name="pk_session"),
    )
    op.create_index("ix_session_account_id", "session", ["account_id"])
    op.create_table(
        "token",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("digest", sa.String(64), nullable=False, comment="SHA-256 of the secret"),
        sa.Column("account_id", sa.Integer, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("expires_at", MOMENT),
        sa.Column("used_at", MOMENT),
        sa.Column("revoked", sa.Boolean, nullable=False),
        sa.ForeignKeyConstraint(["account_id"], ["account.id"], name="fk_token_account_id"),
        sa.PrimaryKeyConstraint("id", name="pk_token"),
        sa.UniqueConstraint("digest", name="uq_token_digest"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_token_account_id", "token", ["account_id"])
    op.create_table(
        "version",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("team_id", sa.Integer, nullable=False),
        sa.Column("number", sa.Integer, nullable=False, comment="counted from 1 in each team"),
        sa.Column("content", sa.String(64), nullable=False, comment="digest in the content store"),
        sa.Column("files", sa.Integer, nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False, comment="bytes of all files"),
        sa.Column("submitted_at", MOMENT, nullable=False),
        sa.Column("submitted_by", sa.Integer, nullable=False),
        sa.Column("origin", sa.String(16), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("decided_at", MOMENT),
        sa.Column("digest", sa.Text, comment="of the bot that plays, after the build"),
        sa.Column("failures", sa.Integer, nullable=False),
        sa.Column("withdrawn", sa.Boolean, nullable=False),
        sa.ForeignKeyConstraint(["submitted_by"], ["account.id"], name="fk_version_submitted_by"),
        sa.ForeignKeyConstraint(["team_id"], ["team.id"], name="fk_version_team_id"),
        sa.PrimaryKeyConstraint("id", name="pk_version"),
        sa.UniqueConstraint("team_id", "number", name="uq_version_team_id_number"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_version_state", "version", ["state"])
    op.create_table(
        "checked",
        sa.Column("version_id", sa.Integer, nullable=False),
        sa.Column("report", sa.Text, comment="JSON; NULL if there was no check"),
        sa.Column("log", sa.Text, nullable=False),
        sa.ForeignKeyConstraint(["version_id"], ["version.id"], name="fk_checked_version_id"),
        sa.PrimaryKeyConstraint("version_id", name="pk_checked"),
    )
    op.create_table(
        "competitor",
        sa.Column("competition_id", sa.Integer, nullable=False),
        sa.Column("key", sa.Text, nullable=False, comment="texts.name_key of the name"),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("version_id", sa.Integer),
        sa.Column("reference", sa.Text),
        sa.ForeignKeyConstraint(["competition_id"], ["competition.id"], name="fk_competitor_competition_id"),
        sa.ForeignKeyConstraint(["version_id"], ["version.id"], name="fk_competitor_version_id"),
        sa.PrimaryKeyConstraint("competition_id", "key", name="pk_competitor"),
    )
    forbid_changes(op.get_bind(), "journal", "number", "the journal is only ever added to")


def downgrade() -> None:
    for name in reversed(TABLES):
        op.drop_table(name)
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP FUNCTION journal_is_kept()")
