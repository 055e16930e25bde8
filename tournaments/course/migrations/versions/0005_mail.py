"""Addresses and mails."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

MOMENT = sa.String(27)
DIGEST = sa.String(64)


def upgrade() -> None:
    op.create_table(
        "mail_address",
        sa.Column("account_id", sa.Integer, nullable=False),
        sa.Column("address", sa.Text, comment="mails are sent to it; NULL: none"),
        sa.Column("pending", sa.Text, comment="waits for its confirmation"),
        sa.Column("pending_digest", DIGEST, comment="SHA-256 of the secret that confirms it"),
        sa.Column("pending_until", MOMENT),
        sa.Column(
            "is_own",
            sa.Boolean,
            nullable=False,
            comment="the person has decided: a roster does not change it",
        ),
        sa.Column("checks", sa.Boolean, nullable=False),
        sa.Column("challenges", sa.Boolean, nullable=False),
        sa.Column("tournaments", sa.Boolean, nullable=False),
        sa.PrimaryKeyConstraint("account_id", name="pk_mail_address"),
        sa.ForeignKeyConstraint(["account_id"], ["account.id"], name="fk_mail_address_account_id"),
    )
    op.create_table(
        "mail",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("account_id", sa.Integer, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("address", sa.Text, nullable=False),
        sa.Column("subject", sa.Text, nullable=False),
        sa.Column(
            "body", sa.Text, nullable=False, comment="without the address of the page, which follows it"
        ),
        sa.Column("path", sa.Text, nullable=False, comment="of the page on the site"),
        sa.Column(
            "seed", sa.Text, comment="with the server's key, the secret of a link, which ends the path"
        ),
        sa.Column("home", sa.Text, nullable=False, comment="identity of the data directory that sends it"),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("due_at", MOMENT, nullable=False, comment="no attempt before"),
        sa.Column("tried_at", MOMENT),
        sa.Column("answer", sa.Text, nullable=False, comment="of the mail server to the last attempt"),
        sa.PrimaryKeyConstraint("id", name="pk_mail"),
        sa.ForeignKeyConstraint(["account_id"], ["account.id"], name="fk_mail_account_id"),
        sqlite_autoincrement=True,
        comment="outbox: mails to be sent, and those of the last days",
    )
    for column in ("account_id", "state", "tried_at"):
        op.create_index(f"ix_mail_{column}", "mail", [column])


def downgrade() -> None:
    op.drop_table("mail")
    op.drop_table("mail_address")
