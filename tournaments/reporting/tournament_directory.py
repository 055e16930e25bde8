"""Directory of a tournament: results.db, the games' files and the reports, for one runner at a time."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from tournaments.reporting import tables
from tournaments.reporting.summary import Summary

STORE_FILE = "results.db"
LOCK_FILE = ".lock"


class DirectoryError(Exception):
    """The directory cannot be used; the message gives the reason."""


class TournamentDirectory:
    """A tournament's directory, which is created if needed.  Raises DirectoryError."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DirectoryError(f"{path} cannot be made: {error.strerror}") from error

    @property
    def store_path(self) -> Path:
        """Path of the store."""
        return self.path / STORE_FILE

    @property
    def report_path(self) -> Path:
        """Path of the report page for browsers."""
        return self.path / "report.html"

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Exclude other runners; the lock ends with the process, however it ends.  Raises DirectoryError."""
        try:
            descriptor = os.open(self.path / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise DirectoryError(f"{self.path} cannot be written to: {error.strerror}") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(descriptor)
            raise DirectoryError(f"another run is at work in {self.path}: wait for it, or stop it") from error
        try:
            yield
        finally:
            os.close(descriptor)

    def write_reports(self, summary: Summary) -> None:
        """Write report.html, standings.csv, games.csv and results.json.  Raises DirectoryError."""
        contents = {
            self.report_path: summary.render("html"),
            self.path / "standings.csv": summary.render("csv") + "\n",
            self.path / "games.csv": tables.games_csv(summary.games),
            self.path / "results.json": summary.render("json") + "\n",
        }
        for path, text in contents.items():
            temporary = path.with_name(path.name + ".part")
            try:
                temporary.write_text(text, encoding="utf-8")
                os.replace(temporary, path)  # noqa: PTH105
            except OSError as error:
                raise DirectoryError(
                    f"{path} cannot be written: {error.strerror}; the results are safe in {self.store_path}"
                ) from error
