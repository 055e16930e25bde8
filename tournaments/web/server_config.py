"""server.toml: the settings of the server's operator.  The lecturer's are on the settings page."""

from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from tournaments.config.cluster_table import ServerClusterTable
from tournaments.files.toml_file import TomlError, read_toml
from tournaments.files.validation_errors import problem_lines
from tournaments.server.config import MAX_PLACES
from tournaments.server.mail.mail_table import Mailing, MailTable

SERVER_FILE = "server.toml"
"""Name of the file in the data directory, from which it is read by default."""


class ServerFileError(ValueError):
    """A file that cannot be used; the message has one line for each problem."""


class ServerFile(BaseModel):
    """Contents of the file.  Every key is optional."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    host: str = "127.0.0.1"
    port: int = Field(8000, ge=0, le=65_535)
    database: str | None = None
    """``postgresql://USER@HOST/DATABASE``; None: SQLite files in the data directory."""
    public_url: str | None = None
    """Public address of the site, which cookies, links and the check of forms depend on."""
    trusted_proxies: list[str] = []
    """Addresses or networks whose ``X-Forwarded-For`` is trusted."""
    places: Annotated[int | None, Field(ge=1, le=MAX_PLACES)] = None
    """Games and checks at a time; None: one per core."""
    cluster: ServerClusterTable | None = None
    """Cluster on which the games of tournaments are played; None: on this machine."""
    mail: MailTable | None = None
    """Mail server that sends the course's mails; None: no mail is sent."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["text", "json"] = "text"
    """``json``: one object a line."""
    metrics: str | None = None
    """``ADDRESS:PORT`` at which Prometheus can read the metrics; None: nowhere."""

    @field_validator("database")
    @classmethod
    def _is_postgresql(cls, text: str | None) -> str | None:
        if text is not None and urlsplit(text).scheme not in ("postgresql", "postgres"):
            raise ValueError("must be as in postgresql://USER@HOST/DATABASE; leave it out for SQLite")
        return text

    @field_validator("public_url")
    @classmethod
    def _is_an_origin(cls, text: str | None) -> str | None:
        if text is None:
            return None
        text = text.rstrip("/")
        try:
            parts = urlsplit(text)
            known = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            known = False
        if not known or text != f"{parts.scheme}://{parts.netloc}" or "@" in parts.netloc:
            raise ValueError("must be as in https://bots.example.org: no path, and nothing else")
        return text.lower()

    @field_validator("metrics")
    @classmethod
    def _is_an_address(cls, text: str | None) -> str | None:
        if text is not None:
            address_and_port(text)
        return text

    @field_validator("trusted_proxies")
    @classmethod
    def _are_networks(cls, texts: list[str]) -> list[str]:
        for text in texts:
            _network(text)
        return texts

    @model_validator(mode="after")
    def _mails_have_links(self) -> "ServerFile":
        if self.mail is not None and self.public_url is None:
            raise ValueError("mail: public_url is missing, with which the links in mails begin")
        return self

    @property
    def mailing(self) -> Mailing | None:
        """Parameters of the server's mails; None if it sends none."""
        if self.mail is None or self.public_url is None:
            return None
        return Mailing(self.mail, self.public_url)

    @property
    def networks(self) -> tuple[IPv4Network | IPv6Network, ...]:
        """The trusted proxies as networks."""
        return tuple(_network(text) for text in self.trusted_proxies)


def address_and_port(text: str) -> tuple[str, int]:
    """Return the parts of ``127.0.0.1:9464`` or ``[::1]:9464``.  Raises ValueError."""
    try:
        parts = urlsplit(f"//{text}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if not host or port is None or text != parts.netloc or "@" in text:
        raise ValueError("must be an address and a port, as in 127.0.0.1:9464 or [::1]:9464")
    return host, port


def _network(text: str) -> IPv4Network | IPv6Network:
    try:
        return ip_network(text)
    except ValueError:
        raise ValueError(f"{text!r} is no address and no network, such as 127.0.0.1 or 10.0.0.0/8") from None


def exists_for_server(path: Path) -> bool:
    """Return whether a file or directory of the server exists.

    Raises:
        ServerFileError: This user may not enter its folder.

    """
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise ServerFileError(
            f"{path} cannot be read: {error.strerror}; run this as the server's user"
        ) from error
    return True


def server_file_path(data: Path, config: Path | None) -> Path:
    """Return the path of the configuration: ``config``, or the file in the data directory."""
    return config or data / SERVER_FILE


def read_server_file(data: Path, config: Path | None) -> ServerFile:
    """Return the settings of a data directory's server; the defaults without a file.

    Args:
        data: The data directory.
        config: The value of ``--config``; None if it was not given.

    Raises:
        ServerFileError: The file cannot be read or used.

    """
    path = server_file_path(data, config)
    return load_server_file(path) if config is not None or exists_for_server(path) else ServerFile()


def load_server_file(path: Path) -> ServerFile:
    """Read the file.

    Raises:
        ServerFileError: The file cannot be read or used.

    """
    try:
        values = read_toml(path)
    except TomlError as error:
        raise ServerFileError(f"{path}: {error}") from error
    try:
        return ServerFile.model_validate(values)
    except ValidationError as error:
        lines = problem_lines(error, ServerFile)
        raise ServerFileError("\n".join(f"{path}: {line}" for line in lines)) from error
