"""A server's course, opened from the command line."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from tournaments.cli.main import DATA_VARIABLE, Fault, Usage
from tournaments.course.backup.backup import COURSE_FILE
from tournaments.course.course import Course
from tournaments.course.model import Account, CourseError
from tournaments.database.base import StoreError
from tournaments.database.location import POSTGRESQL, SQLITE, Database
from tournaments.web.data_directory import (
    DATABASE_FILE,
    IDENTITY_FILE,
    DataDirectory,
    DataDirectoryError,
    recorded_database,
)
from tournaments.web.server_config import (
    ServerFile,
    ServerFileError,
    exists_for_server,
    read_server_file,
    server_file_path,
)

DATA = Path("kalarena-data")
"""Default data directory of `kalarena serve`."""

data_option = click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    default=DATA,
    envvar=DATA_VARIABLE,
    show_default=True,
    show_envvar=True,
    metavar="DIR",
    help="The server's data directory.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


@contextmanager
def explained() -> Iterator[None]:
    """Convert errors of the course and of databases into those of the command line."""
    try:
        yield
    except (CourseError, ServerFileError, DataDirectoryError) as error:
        raise Usage(str(error)) from error
    except StoreError as error:
        raise (Fault if error.is_ours else Usage)(str(error)) from error


@dataclass(frozen=True)
class Opened:
    """An open course, with the server's settings and the current time."""

    course: Course
    file: ServerFile
    now: datetime

    def link(self, secret: str) -> str:
        """Return the address of a one-time link."""
        return f"{self.file.public_url or f'http://127.0.0.1:{self.file.port}'}/links/{secret}"

    def account(self, login: str) -> Account:
        """Return the account of a login.  Raises Usage."""
        found = self.course.accounts.by_login(login)
        if found is None:
            raise Usage(f"there is no account {login!r}")
        return found

    def note(self, action: str, subject: str, **detail: Any) -> None:
        """Add an entry of the command line to the course's journal, within a transaction."""
        with self.course.act(self.now, None, action, subject, **detail, by="kalarena admin"):
            pass


def server_file(data: Path, config: Path | None) -> ServerFile:
    """Return the settings of a data directory's server; the defaults without a file.

    Raises:
        ServerFileError: The file cannot be used, or the server was last started with a database of the other
            kind: then the file is probably not the server's.
        DataDirectoryError: The data directory cannot be read.

    """
    file = read_server_file(data, config)
    recorded = recorded_database(data) if exists_for_server(data / DATABASE_FILE) else None
    kind = SQLITE if file.database is None else POSTGRESQL
    if recorded not in (None, kind):
        path = server_file_path(data, config)
        used = "SQLite files" if recorded == SQLITE else "a PostgreSQL database"
        names = f"{path} names {'no' if file.database is None else 'a'} PostgreSQL database"
        found = names if exists_for_server(path) else f"there is no {path}"
        raise ServerFileError(
            f"the server of {data} was last started with {used}, but {found}: name the server's "
            "configuration with --config, or start the server once with this one"
        )
    return file


@contextmanager
def open_course(data: Path, config: Path | None) -> Iterator[Opened]:
    """Open the course of a data directory.  Raises Usage and Fault."""
    with explained():
        file = server_file(data, config)
        if file.database is None and not exists_for_server(data / COURSE_FILE):
            raise Usage(
                f"{data} holds no {COURSE_FILE}: say with --data where the server's data are, or start the "
                "server once, which makes it"
            )
        if file.mail is not None and not exists_for_server(data / IDENTITY_FILE):
            # The server makes the file itself: one that root makes here, its user cannot read.
            raise Usage(f"{data} has no file {IDENTITY_FILE}, which mails need: start the server once")
        mail = None if file.mail is None else DataDirectory(data).mail_home()
        with Course(Database.at(file.database or data).course(), mail=mail) as course:
            yield Opened(course, file, datetime.now(UTC))
