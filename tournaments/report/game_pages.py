"""The pages of single games, made by several processes: they are most of a report."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path

from tournaments.database.place import Place
from tournaments.report.disguise import Disguise
from tournaments.report.pages import GamePage, environment, game_html
from tournaments.report.replay import replay_data
from tournaments.report.replay_page import replay_html
from tournaments.report.times import GameTimes, game_times
from tournaments.store import Store, StoreError

GAMES_PER_PROCESS = 150
"""A process takes half a second to start, in which so many pages are written."""


class ReportError(Exception):
    """The report cannot be made; the message says why, and what to do."""


class PlaceError(ReportError):
    """Another place must be chosen for it."""


@dataclass(frozen=True)
class GameWriter:
    """Writes the pages of games."""

    store: Path | Place
    folder: Path
    """Of the report."""
    disguise: Disguise

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
        """Write pages with as many processes as are of use; ``told`` gets the number of pages so far.

        Raises ReportError, OSError and StoreError.
        """
        processes = min(most_processes or cores(), len(pages) // GAMES_PER_PROCESS)
        found: dict[str, GameTimes] = {}
        for key, times in self.write(pages) if processes < 2 else self._shared(pages, processes):
            found[key] = times
            told(len(found))
        return found

    def _shared(self, pages: Sequence[GamePage], processes: int) -> Iterator[tuple[str, GameTimes]]:
        """Each process has its share from the beginning, and a pipe of its own.

        A process whose reader is gone ends at its next page, so that none is left behind.
        """
        context = multiprocessing.get_context("spawn")
        workers = []
        open_ends: list[Connection] = []
        try:
            for number in range(processes):
                ours, theirs = context.Pipe(duplex=False)
                open_ends.append(ours)
                worker = context.Process(
                    target=_work, args=(self, pages[number::processes], theirs), daemon=True
                )
                worker.start()
                workers.append(worker)
                theirs.close()
            while open_ends:
                for end in wait(open_ends):
                    assert isinstance(end, Connection)
                    answer = _received(end)
                    if answer is None:
                        open_ends.remove(end)
                        end.close()
                    else:
                        yield answer
        finally:
            for end in open_ends:
                end.close()
            for worker in workers:
                if open_ends:
                    worker.terminate()
                worker.join()


def _received(end: Connection) -> tuple[str, GameTimes] | None:
    """A page that was written; None when there are no more.  Raises what the process failed with."""
    try:
        answer = end.recv()
    except EOFError as error:
        raise ReportError("a process that writes pages was killed: is there enough memory?") from error
    if isinstance(answer, Exception):
        raise answer
    assert answer is None or isinstance(answer, tuple)
    return answer


def _work(writer: GameWriter, pages: Sequence[GamePage], end: Connection) -> None:
    """What a process does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all; who started us closes the pipe
    try:
        try:
            for answer in writer.write(pages):
                end.send(answer)
            end.send(None)
        except (OSError, StoreError) as error:
            end.send(error)
    except BrokenPipeError:
        pass


def cores() -> int:
    """How many processes can work at a time."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def write_page(path: Path, text: str) -> None:
    """Write a file.  Raises OSError."""
    # Names can hold halves of characters, which UTF-8 has no form for.
    path.write_text(text, encoding="utf-8", errors="backslashreplace")
