"""Tables of the course's database, for SQLAlchemy.  Migrations create them; a test compares both.

Moments are texts in UTC, whose order is that of time.  Data that may grow is JSON in a text.  A number called
``id`` is never reused; without ``sqlite_autoincrement``, SQLite would reuse that of the newest row when the
row is gone.  Records of actions are never deleted; sessions and links are deleted when they have ended.
"""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Dialect,
    ForeignKey,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
)

FORMAT = "%Y-%m-%dT%H:%M:%S.%fZ"
LENGTH = len("2026-01-31T12:00:00.000000Z")


def to_text(moment: datetime) -> str:
    """Return an aware moment of any zone as a text.  Raises ValueError for a naive one."""
    if moment.tzinfo is None:
        raise ValueError(f"{moment} does not say its time zone")
    text = moment.astimezone(UTC).strftime(FORMAT)
    return text.rjust(LENGTH, "0")  # years before 1000 have no leading zeros


def from_text(text: str) -> datetime:
    """Return the moment of such a text, in UTC.  Raises ValueError."""
    if len(text) != LENGTH or text[10] + text[-1] != "TZ":
        raise ValueError(f"{text!r} is no moment as it is kept here")
    return datetime.fromisoformat(text)  # a twentieth of strptime's time; a page reads hundreds


REVISION = "0005"
"""Newest revision of migrations/versions, which creates these tables."""

DIGEST_LENGTH = 64
"""Length of SHA-256 in hexadecimal."""

LARGEST_NUMBER = 2**31 - 1
"""Largest value of PostgreSQL's INTEGER."""


class Moment(TypeDecorator[datetime]):
    """A column of moments."""

    impl = String(LENGTH)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> str | None:
        """Convert a moment for the database."""
        return None if value is None else to_text(value)

    def process_result_value(self, value: Any | None, dialect: Dialect) -> datetime | None:
        """Convert a moment from the database."""
        return None if value is None else from_text(value)


class Number(TypeDecorator[int]):
    """A column of row numbers.

    Queries may contain any number, as in the address of a page: a number that the database cannot hold is
    mapped to one that no row has.
    """

    impl = Integer
    cache_ok = True

    def process_bind_param(self, value: int | None, dialect: Dialect) -> int | None:
        """Limit a number to the database's range."""
        return None if value is None else max(-1, min(value, LARGEST_NUMBER))


metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
    }
)


def _id() -> Column[int]:
    return Column("id", Number, primary_key=True)


team = Table(
    "team",
    metadata,
    _id(),
    Column("name", Text, nullable=False),
    Column("created_at", Moment, nullable=False),
    sqlite_autoincrement=True,
)

team_name = Table(
    "team_name",
    metadata,
    Column("name", Text, primary_key=True, comment="texts.same_name: equal for names that are the same"),
    Column("key", Text, nullable=False, index=True, comment="texts.name_key: one team's alone"),
    Column("team_id", ForeignKey("team.id"), nullable=False),
    comment="all names that teams have or had: a former one is in games, and nobody else's",
)

account = Table(
    "account",
    metadata,
    _id(),
    Column("login", Text, nullable=False, unique=True, comment="NFKC, casefolded"),
    Column("name", Text, nullable=False),
    Column("role", String(16), nullable=False),
    Column("team_id", ForeignKey("team.id"), index=True),
    Column("password", Text, comment="Argon2id; NULL until an invitation is accepted"),
    Column("disabled", Boolean, nullable=False),
    Column("created_at", Moment, nullable=False),
    sqlite_autoincrement=True,
)

session = Table(
    "session",
    metadata,
    Column("digest", String(DIGEST_LENGTH), primary_key=True, comment="SHA-256 of the secret"),
    Column("account_id", ForeignKey("account.id"), nullable=False, index=True),
    Column("created_at", Moment, nullable=False),
    Column("expires_at", Moment, nullable=False),
)

link = Table(
    "link",
    metadata,
    Column("digest", String(DIGEST_LENGTH), primary_key=True, comment="SHA-256 of the secret"),
    Column("account_id", ForeignKey("account.id"), nullable=False, unique=True),
    Column("purpose", String(16), nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("expires_at", Moment, nullable=False),
)

token = Table(
    "token",
    metadata,
    _id(),
    Column("digest", String(DIGEST_LENGTH), nullable=False, unique=True, comment="SHA-256 of the secret"),
    Column("account_id", ForeignKey("account.id"), nullable=False, index=True),
    Column("name", Text, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("expires_at", Moment),
    Column("used_at", Moment),
    Column("revoked", Boolean, nullable=False),
    sqlite_autoincrement=True,
)

version = Table(
    "version",
    metadata,
    _id(),
    Column("team_id", ForeignKey("team.id"), nullable=False),
    Column("number", Integer, nullable=False, comment="counted from 1 in each team"),
    Column("content", String(DIGEST_LENGTH), nullable=False, comment="digest in the content store"),
    Column("files", Integer, nullable=False),
    Column("size", BigInteger, nullable=False, comment="bytes of all files"),
    Column("submitted_at", Moment, nullable=False),
    Column("submitted_by", ForeignKey("account.id"), nullable=False),
    Column("origin", String(16), nullable=False),
    Column("state", String(16), nullable=False, index=True),
    Column("attempts", Integer, nullable=False),
    Column("decided_at", Moment),
    Column("digest", Text, comment="of the bot that plays, after the build"),
    Column("failures", Integer, nullable=False),
    Column("withdrawn", Boolean, nullable=False),
    UniqueConstraint("team_id", "number"),
    sqlite_autoincrement=True,
)

checked = Table(
    "checked",
    metadata,
    Column("version_id", ForeignKey("version.id"), primary_key=True),
    Column("report", Text, comment="JSON; NULL if there was no check"),
    Column("log", Text, nullable=False),
)

checked_game = Table(
    "checked_game",
    metadata,
    Column("version_id", ForeignKey("version.id"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False, comment="counted from 1, as played"),
    Column("key", String(64), nullable=False, comment="as in the report of the check"),
    Column("player", Integer, nullable=False, comment="the checked bot in the record: 0 or 1"),
    Column("record", LargeBinary, nullable=False, comment="the whole record: msgpack, deflated"),
    UniqueConstraint("version_id", "key"),
    comment="games of the latest check of a version; those of a team's older versions are deleted",
)

competition = Table(
    "competition",
    metadata,
    _id(),
    Column("slug", String(40), nullable=False, unique=True),
    Column("title", Text, nullable=False),
    Column("kind", String(16), nullable=False),
    Column("state", String(16), nullable=False),
    Column("spec", Text, nullable=False, comment="JSON"),
    Column("message", Text, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("created_by", ForeignKey("account.id")),
    Column("started_at", Moment),
    Column("finished_at", Moment),
    sqlite_autoincrement=True,
)

competitor = Table(
    "competitor",
    metadata,
    Column("competition_id", ForeignKey("competition.id"), primary_key=True),
    Column("key", Text, primary_key=True, comment="texts.name_key of the name"),
    Column("name", Text, nullable=False),
    Column("version_id", ForeignKey("version.id")),
    Column("reference", Text),
)

challenge = Table(
    "challenge",
    metadata,
    _id(),
    Column("competition_id", ForeignKey("competition.id"), nullable=False),
    Column("team_id", ForeignKey("team.id"), nullable=False, index=True),
    Column("asked_by", ForeignKey("account.id"), nullable=False),
    Column("asked_at", Moment, nullable=False),
    Column("origin", String(16), nullable=False),
    Column("version_id", ForeignKey("version.id")),
    Column("remote", Text, comment="name of the team's remote bot, in place of a version"),
    Column("bot_name", Text, nullable=False),
    Column("opponent_version_id", ForeignKey("version.id")),
    Column("opponent_reference", Text),
    Column("opponent_remote", Text),
    Column("opponent_name", Text, nullable=False),
    Column("opponent_team_id", ForeignKey("team.id")),
    Column("pairs", Integer, nullable=False),
    Column("state", String(16), nullable=False, index=True),
    Column("message", Text, nullable=False),
    Column("wins", Integer, nullable=False),
    Column("draws", Integer, nullable=False),
    Column("losses", Integer, nullable=False),
    Column("ended_at", Moment),
    sqlite_autoincrement=True,
)

challenge_consent = Table(
    "challenge_consent",
    metadata,
    Column("team_id", ForeignKey("team.id"), primary_key=True, autoincrement=False),
    Column("accepts", Boolean, nullable=False),
    comment="teams that have decided whether others may challenge their bot; the others accept",
)

setting = Table(
    "setting",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False, comment="always 1"),
    Column("content", Text, nullable=False, comment="JSON of settings.Settings"),
)

journal = Table(
    "journal",
    metadata,
    Column("number", Number, primary_key=True),
    Column("at", Moment, nullable=False),
    Column("account_id", ForeignKey("account.id")),
    Column("action", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("detail", Text, nullable=False, comment="JSON"),
    comment="who did what; only ever added to",
    sqlite_autoincrement=True,
)

casual_game = Table(
    "casual_game",
    metadata,
    Column("id", Number, primary_key=True),
    Column("address", String(32), nullable=False, unique=True, comment="unguessable; in the page's address"),
    Column("game", Text, nullable=False, comment="spec text"),
    Column("opening", Text, nullable=False, comment="as referee/games/opening.py reads it"),
    Column("players", Text, nullable=False, comment="JSON of two casual_games.CasualPlayer"),
    Column("moves", Text, nullable=False, comment="with spaces between them"),
    Column("revision", Integer, nullable=False, comment="number of take-backs"),
    Column("created_at", Moment, nullable=False),
    Column("changed_at", Moment, nullable=False, index=True),
    Column("ended_at", Moment),
    Column("winner", Integer, comment="0, 1, or NULL"),
    Column("sentence", Text, nullable=False, comment="how it ended"),
    comment="games of people, which count for nothing; old ones are deleted",
    sqlite_autoincrement=True,
)

mail_address = Table(
    "mail_address",
    metadata,
    Column("account_id", ForeignKey("account.id"), primary_key=True, autoincrement=False),
    Column("address", Text, comment="mails are sent to it; NULL: none"),
    Column("pending", Text, comment="waits for its confirmation"),
    Column("pending_digest", String(DIGEST_LENGTH), comment="SHA-256 of the secret that confirms it"),
    Column("pending_until", Moment),
    Column("is_own", Boolean, nullable=False, comment="the person has decided: a roster does not change it"),
    Column("checks", Boolean, nullable=False),
    Column("challenges", Boolean, nullable=False),
    Column("tournaments", Boolean, nullable=False),
)

mail = Table(
    "mail",
    metadata,
    Column("id", Number, primary_key=True),
    Column("account_id", ForeignKey("account.id"), nullable=False, index=True),
    Column("kind", String(16), nullable=False),
    Column("address", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("body", Text, nullable=False, comment="without the address of the page, which follows it"),
    Column("path", Text, nullable=False, comment="of the page on the site"),
    Column("seed", Text, comment="with the server's key, the secret of a link, which ends the path"),
    Column("home", Text, nullable=False, comment="identity of the data directory that sends it"),
    Column("created_at", Moment, nullable=False),
    Column("state", String(16), nullable=False, index=True),
    Column("attempts", Integer, nullable=False),
    Column("due_at", Moment, nullable=False, comment="no attempt before"),
    Column("tried_at", Moment, index=True),
    Column("answer", Text, nullable=False, comment="of the mail server to the last attempt"),
    comment="outbox: mails to be sent, and those of the last days",
    sqlite_autoincrement=True,
)
