"""Directory of a tournament: results.db, the games' files and the reports, for one runner at a time."""

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from tournaments.files.durable import FileLock, os_errors_as, write_file
from tournaments.reporting import tables
from tournaments.reporting.tournament_results import TournamentResults
from tournaments.results.game_files import LOCK_FILE, has_folder

STORE_FILE = "results.db"


class DirectoryError(Exception):
    """The directory cannot be used; the message gives the reason."""


def find_store(
    directory: Path, *, missing: Callable[[str], Exception], unreadable: Callable[[str], Exception]
) -> Path:
    """Return the path of the store in a directory, which is not created.

    Args:
        directory: Directory of a tournament.
        missing: Class of the exception if there is no store.
        unreadable: Class of the exception if this user may not enter the directory.

    """
    path = directory / STORE_FILE
    with os_errors_as(unreadable, f"{directory} cannot be read"):
        is_there = path.is_file()
    if not is_there:
        raise missing(f"{directory} holds no {STORE_FILE}: is it the directory of a tournament?")
    return path


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

    def refuse_other_files(self) -> None:
        """Refuse a directory with files of something else that a run would overwrite.

        A directory with a lock file is a tournament's, also if somebody has removed its results to begin
        anew.  Raises DirectoryError.
        """
        with os_errors_as(DirectoryError, f"{self.path} cannot be read"):
            if self.store_path.exists() or (self.path / LOCK_FILE).exists():
                return
            found = next((name for name in tables.TABLE_FILES if (self.path / name).exists()), None)
        if found is not None:
            raise DirectoryError(
                f"{self.path} has a {found}, which a run would overwrite, but no {STORE_FILE}: move the "
                "file, or choose another directory"
            )

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
        texts = (
            summary.render("html", has_folder=partial(has_folder, self.path)),
            summary.render("csv") + "\n",
            tables.games_csv(summary.games),
            summary.render("json") + "\n",
        )
        for name, text in zip(tables.TABLE_FILES, texts, strict=True):
            path = self.path / name
            try:
                write_file(path, text.encode())
            except OSError as error:
                raise DirectoryError(
                    f"{path} cannot be written: {error.strerror}; the results are safe in {self.store_path}"
                ) from error
