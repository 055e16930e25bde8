"""Directory of a tournament: results.db, the games' files and the reports, for one runner at a time."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from tournaments.files.durable import FileLock, os_errors_as, write_file
from tournaments.reporting import tables
from tournaments.reporting.tournament_results import TournamentResults
from tournaments.results.game_files import LOCK_FILE

STORE_FILE = "results.db"


class DirectoryError(Exception):
    """The directory cannot be used; the message gives the reason."""


class TournamentDirectory:
    """A tournament's directory, which is created if needed.  Raises DirectoryError."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with os_errors_as(DirectoryError, f"{path} cannot be made"):
            path.mkdir(parents=True, exist_ok=True)

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
            lock = FileLock(self.path / LOCK_FILE, create=0o644, wait=False)
        except BlockingIOError as error:
            raise DirectoryError(f"another run is at work in {self.path}: wait for it, or stop it") from error
        except OSError as error:
            raise DirectoryError(f"{self.path} cannot be written to: {error.strerror}") from error
        with lock:
            yield

    def write_reports(self, summary: TournamentResults) -> None:
        """Write report.html, standings.csv, games.csv and results.json.  Raises DirectoryError."""
        contents = {
            self.report_path: summary.render("html"),
            self.path / "standings.csv": summary.render("csv") + "\n",
            self.path / "games.csv": tables.games_csv(summary.games),
            self.path / "results.json": summary.render("json") + "\n",
        }
        for path, text in contents.items():
            try:
                write_file(path, text.encode())
            except OSError as error:
                raise DirectoryError(
                    f"{path} cannot be written: {error.strerror}; the results are safe in {self.store_path}"
                ) from error
