"""The pages of single games, made by several processes: they are most of a report."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from referee.sandbox.host_resources import core_count
from tournaments.database.base import Location
from tournaments.processes.process_pool import WorkerDiedError, map_in_processes
from tournaments.reporting.site.anonymizer import Anonymizer
from tournaments.reporting.site.pages import GamePage, environment, game_html
from tournaments.reporting.site.replay import replay_data
from tournaments.reporting.site.replay_page import replay_html
from tournaments.reporting.site.times import GameTimes, game_times
from tournaments.results.store import Store, StoreError

GAMES_PER_PROCESS = 150
"""Pages that are written in the half second that a process takes to start."""


class ReportError(Exception):
    """The report cannot be made; the message has the reason and a remedy."""


class PlaceError(ReportError):
    """The report needs another folder."""


@dataclass(frozen=True)
class GameWriter:
    """Writes the pages of games."""

    store: Path | Location
    folder: Path
    """The report's folder."""
    disguise: Anonymizer

    def write(self, pages: Sequence[GamePage]) -> Iterator[tuple[str, GameTimes]]:
        """Write pages; yields each game's key and times.  Raises OSError and StoreError."""
        templates = environment()
        with Store(self.store, read_only=True) as store:
            for page in pages:
                record = store.record(page.key)
                times = game_times(record)
                data = replay_data(
                    self.disguise.record(record), public=self.disguise.on, rename=self.disguise.names
                )
                write_page(self.folder / page.file, game_html(templates, page, replay_html(data)))
                yield page.key, times

    def write_all(
        self, pages: Sequence[GamePage], told: Callable[[int], None], most_processes: int | None = None
    ) -> dict[str, GameTimes]:
        """Write pages in as many processes as are useful; ``told`` is called with the number of pages so far.

        Raises ReportError, OSError and StoreError.
        """
        processes = min(most_processes or core_count(), len(pages) // GAMES_PER_PROCESS)
        found: dict[str, GameTimes] = {}
        try:
            for key, times in map_in_processes(self.write, pages, processes, (OSError, StoreError)):
                found[key] = times
                told(len(found))
        except WorkerDiedError as error:
            raise ReportError("a process that writes pages was killed: is there enough memory?") from error
        return found


def write_page(path: Path, text: str) -> None:
    """Write a file.  Raises OSError."""
    # Names can hold halves of characters, which UTF-8 has no form for.
    path.write_text(text, encoding="utf-8", errors="backslashreplace")
