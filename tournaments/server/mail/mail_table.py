"""``[mail]`` table of server.toml."""

import os
from dataclasses import dataclass
from email.headerregistry import Address
from email.policy import SMTP
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from tournaments.course.model import CourseError
from tournaments.course.texts import email_of

PORTS = {"none": 25, "starttls": 587, "tls": 465}
"""Default port by security (RFC 5321, RFC 6409, RFC 8314)."""
PER_MINUTE = 30
"""Default bound of messages a minute: that of Microsoft's Exchange Online for one sender, which many
universities use.  The links of 200 students take seven minutes."""
MOST_PER_MINUTE = 6_000


class MailTable(BaseModel):
    """The mail server, and the sender of the mails."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    host: str = Field(min_length=1)
    """Mail server that accepts the mails (a relay, or "smart host")."""
    port: int | None = Field(None, ge=1, le=65_535)
    """None is the usual one, see PORTS."""
    security: Literal["none", "starttls", "tls"] = "starttls"
    """``starttls`` begins without TLS and goes on only with it; ``tls`` begins with TLS."""
    ca_file: str | None = None
    """File with the certificates that are trusted; None: those of the system."""
    username: str | None = Field(None, min_length=1)
    password_file: str | None = None
    """File whose first line is the password."""
    password_env: str | None = None
    """Environment variable with the password."""
    sender: str
    """Sender of the mails, such as ``Bots <bots@example.org>``."""
    per_minute: int = Field(PER_MINUTE, ge=1, le=MOST_PER_MINUTE)
    """Maximum number of messages a minute."""

    @field_validator("sender")
    @classmethod
    def _is_one_sender(cls, text: str) -> str:
        sender_of(text)
        return text

    @model_validator(mode="after")
    def _fits_together(self) -> "MailTable":
        passwords = [one for one in (self.password_file, self.password_env) if one is not None]
        if self.username is None and passwords:
            raise ValueError("a password needs a username")
        if self.username is not None and len(passwords) != 1:
            raise ValueError("username needs either password_file or password_env")
        if self.username is not None and self.security == "none":
            raise ValueError('a password needs security = "starttls" or "tls": everybody could read it')
        return self

    @property
    def port_used(self) -> int:
        """The port of the mail server."""
        return self.port or PORTS[self.security]

    def password(self) -> str:
        """Return the password; empty without a username.

        Raises ValueError if its file or its environment variable cannot be read.
        """
        if self.password_env is not None:
            if not os.environ.get(self.password_env):
                raise ValueError(f"mail.password_env: the environment has no variable {self.password_env}")
            return os.environ[self.password_env]
        if self.password_file is None:
            return ""
        try:
            lines = Path(self.password_file).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is no text in UTF-8"
            raise ValueError(f"mail.password_file: {self.password_file} cannot be read: {why}") from error
        if not lines or not lines[0]:
            raise ValueError(f"mail.password_file: {self.password_file} has no password in its first line")
        return lines[0]


def sender_of(text: str) -> Address:
    """Return a sender, such as ``bots@example.org`` or ``Bots <bots@example.org>``.  Raises ValueError."""
    try:
        if not text.isprintable():
            raise ValueError(text)
        (found,) = SMTP.header_factory("From", text).addresses
        return Address(display_name=found.display_name, addr_spec=email_of(found.addr_spec))
    except (CourseError, ValueError):
        raise ValueError(
            f"must be one address, as in bots@example.org or Bots <bots@example.org>, not {text!r}"
        ) from None


@dataclass(frozen=True)
class Mailing:
    """Parameters of a server's mails."""

    table: MailTable
    site: str
    """Public address of the site, without a slash at the end, with which the links in mails begin."""
