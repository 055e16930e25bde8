"""Writer of a report's folder, which is built aside and then replaces the previous one as a whole.

Several processes write the pages of single games, which are most of a report.
"""

import contextlib
import errno
import json
import os
import shutil
import zlib
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment

from referee.judge.results import GameRecord
from referee.sandbox.host_resources import core_count
from tournaments.database.base import Location
from tournaments.files.durable import FileLock, remove
from tournaments.processes.process_pool import WorkerDiedError, map_in_processes
from tournaments.processes.process_settings import prepare_for_many_games
from tournaments.reporting.board.drawing import Scene
from tournaments.reporting.site.anonymizer import Anonymizer
from tournaments.reporting.site.pages import GamePage, Pages, environment, game_body, game_html, game_loader
from tournaments.reporting.site.replay import replay_data
from tournaments.reporting.site.replay_page import SharedPlyData, packed_replay, replay_html
from tournaments.reporting.site.times import GameTimes, game_times
from tournaments.reporting.site.view import View
from tournaments.reporting.tournament_results import TournamentResults
from tournaments.results.store import Store, StoreError

ASSETS = Path(__file__).parent / "assets"
MARKER = ".kalarena-report"
"""A file that marks a folder as a report, which the next report may replace."""

_WRONG_PLACES = {errno.EEXIST, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP, errno.EINVAL}
"""Errors of a path that cannot be a folder: no fault of the disk."""
GAMES_PER_PROCESS = 150
"""Pages that are written in the half second that a process takes to start."""
LARGE = 200
"""Number of games from which on their pages share files by default: whole pages have 90 KB each."""
PAGES = {"whole": True, "shared": False}
"""Choice of the pages of games -> ``whole_pages`` of ``build_site``."""
GAMES_IN_FILE = 20
"""Games whose data share a file: a page reads 150 KB, and deflate shortens what games have in common."""
DEFLATE_LEVEL = 3
"""Level 6 takes twice the time, for a tenth fewer bytes."""


class ReportError(Exception):
    """The report cannot be made; the message contains the reason and a remedy."""


class PlaceError(ReportError):
    """The report needs another folder."""


class Built(NamedTuple):
    """A report that was built."""

    page: Path
    """The page to open."""
    files: int
    bytes: int
    largest: int
    """Bytes of the largest page."""


def build_site(
    store: Path | Location,
    summary: TournamentResults,
    out: Path,
    pseudonyms: Mapping[str, str] | None = None,
    on_progress: Callable[[int, int], None] = lambda _done, _all: None,
    most_processes: int | None = None,
    *,
    whole_pages: bool | None = None,
) -> Built:
    """Make the report of a store in the folder ``out``, whose ``summary`` was just loaded.

    ``pseudonyms`` (name -> pseudonym, in an order that reveals nothing) replace names.  ``on_progress`` is
    called with the numbers of written and of all games' pages.  At most ``most_processes`` write these, by
    default one per core.  ``whole_pages`` makes pages of games that need no scripts; by default a report of
    fewer than LARGE games has these, and the pages of a larger one share files with their data.
    Raises ReportError and StoreError (PlaceError if another ``out`` is needed); then ``out`` is as it was.
    """
    with _explained(out):
        out = out.resolve()  # a link to a folder is replaced behind the link
    with _explained(out), _making(out) as part:
        anonymizer = Anonymizer(pseudonyms or {}, summary.bots)
        shown = anonymizer.summary(summary)
        if anonymizer.on:
            shown.head = None  # the digest identifies the tournament to everybody who has its results
        view = View(shown, anonymizer)
        pages = Pages(view)
        games = pages.game_pages()
        if not (len(games) < LARGE if whole_pages is None else whole_pages):
            games = [
                replace(page, data=f"data/games-{number // GAMES_IN_FILE + 1:04d}.js")
                for number, page in enumerate(games)
            ]
        for folder in ("assets", "bots", "games", *(["data"] if any(page.data for page in games) else [])):
            (part / folder).mkdir()
        for asset in ASSETS.iterdir():  # not copytree, whose errors have lost their number
            shutil.copyfile(asset, part / "assets" / asset.name)
        times = GameWriter(store, part, anonymizer).write_all(
            games, lambda done: on_progress(done, len(games)), most_processes
        )
        view = View(view.summary, anonymizer, times)
        pages = Pages(view)
        write_page(part / "index.html", pages.index())
        write_page(part / "games.html", pages.games())
        for line in view.table:
            write_page(part / view.addresses.bot_file(line.name), pages.bot(line))
        sizes = {path: path.stat().st_size for path in part.rglob("*") if path.is_file()}
    largest = max(size for path, size in sizes.items() if path.suffix == ".html")
    return Built(out / "index.html", len(sizes), sum(sizes.values()), largest)


@contextlib.contextmanager
def _making(out: Path) -> Iterator[Path]:
    """Provide a folder beside ``out`` that replaces it if the block succeeds, and is removed otherwise."""
    _check_replaceable(out)
    part = out.with_name(f".{out.name}.part")
    old = out.with_name(f".{out.name}.old")
    with _locked(part):
        try:
            (part / MARKER).touch()
            yield part
            remove(old)
            if out.exists():
                _check_replaceable(out)
                out.rename(old)
            part.rename(out)
            with contextlib.suppress(OSError):  # the new one is in its place: the next build removes it
                remove(old)
        except BaseException:
            if not out.exists() and old.exists():
                with contextlib.suppress(OSError):
                    old.rename(out)
            shutil.rmtree(part, ignore_errors=True)
            raise


@contextlib.contextmanager
def _locked(part: Path) -> Iterator[None]:
    """Make the folder, lock it for this process alone, and empty it of the files that a killed build left."""
    part.parent.mkdir(parents=True, exist_ok=True)
    part.mkdir(exist_ok=True)
    try:
        lock = FileLock(part, wait=False)
    except BlockingIOError as error:
        raise ReportError(
            f"another report is being made in {part.parent}: wait for it, or stop it"
        ) from error
    with lock:
        if not lock.is_in_place():
            raise ReportError(f"another report was just made in {part.parent}")
        for path in part.iterdir():
            remove(path)
        yield


def _check_replaceable(out: Path) -> None:
    """Raise PlaceError if ``out`` exists and is no report."""
    if out.is_dir():
        if not (out / MARKER).is_file() and any(out.iterdir()):
            raise PlaceError(
                f"{out} is there already and is no report: choose another folder with --out, or move it"
            )
    elif out.exists():
        raise PlaceError(f"{out} is there already and is no folder: choose another one with --out")


@contextlib.contextmanager
def _explained(out: Path) -> Iterator[None]:
    """Turn errors of the file system into messages for the user."""
    try:
        yield
    except OSError as error:
        kind = PlaceError if error.errno in _WRONG_PLACES else ReportError
        # Unlike the methods of paths, these functions return False below a folder that may not be entered.
        others = (path for path in out.parents if os.path.exists(path) and not os.path.isdir(path))  # noqa: PTH110, PTH112
        in_the_way = next(others, None)
        why = (error.strerror or str(error)).lower()
        if kind is PlaceError and in_the_way is not None:
            why = f"{in_the_way} is no folder"
        raise kind(
            f"the report cannot be written to {out}: {why}; nothing was changed; choose another place with "
            "--out"
        ) from error


@dataclass(frozen=True)
class GameWriter:
    """Writes the pages of games."""

    store: Path | Location
    folder: Path
    """The report's folder."""
    anonymizer: Anonymizer

    def write(self, groups: Sequence[Sequence[GamePage]]) -> Iterator[dict[str, GameTimes]]:
        """Write groups of pages; yields the times of each group's games.  Raises OSError and StoreError."""
        templates = environment()
        scenes: dict[str, Scene] = {}
        with prepare_for_many_games(), Store(self.store, read_only=True) as store:
            for group in groups:
                found = store.records([page.key for page in group])
                records = [(page, found[page.key]) for page in group]
                if group[0].data:
                    self._write_together(templates, records, scenes)
                else:
                    for page, record in records:
                        html = game_html(templates, page, replay_html(self._data(record)))
                        write_page(self.folder / page.file, html)
                yield {page.key: game_times(record) for page, record in records}

    def _data(self, record: GameRecord, scenes: dict[str, Scene] | None = None) -> dict[str, Any]:
        return replay_data(self.anonymizer.record(record), public=self.anonymizer.on, scenes=scenes)

    def _write_together(
        self,
        templates: Environment,
        records: Sequence[tuple[GamePage, GameRecord]],
        scenes: dict[str, Scene],
    ) -> None:
        """Write the data of games in one file, and a small page for each game."""
        shared = SharedPlyData()
        bodies, replays = [], []
        for page, record in records:
            data = self._data(record, scenes)
            bodies.append(game_body(templates, page, replay_html(data, bare=True)))
            replays.append(packed_replay(data, shared))
        keys = [page.shown for page, _ in records]
        found = {**shared.to_json(), "keys": keys, "bodies": bodies, "replays": replays}
        text = json.dumps(found, separators=(",", ":"), check_circular=False)
        packed = zlib.compress(text.encode(), DEFLATE_LEVEL)
        write_page(self.folder / records[0][0].data, f'kalarenaGames("{b64encode(packed).decode()}");\n')
        for page, _ in records:
            write_page(self.folder / page.file, game_loader(templates, page, f"{zlib.crc32(packed):08x}"))

    def write_all(
        self, pages: Sequence[GamePage], on_progress: Callable[[int], None], most_processes: int | None = None
    ) -> dict[str, GameTimes]:
        """Write pages in as many processes as are useful; ``on_progress`` is called with their number so far.

        Raises ReportError, OSError and StoreError.
        """
        processes = min(most_processes or core_count(), len(pages) // GAMES_PER_PROCESS)
        groups = [pages[at : at + GAMES_IN_FILE] for at in range(0, len(pages), GAMES_IN_FILE)]
        found: dict[str, GameTimes] = {}
        try:
            for times in map_in_processes(self.write, groups, processes, (OSError, StoreError)):
                found |= times
                on_progress(len(found))
        except WorkerDiedError as error:
            raise ReportError("a process that writes pages was killed: is there enough memory?") from error
        return found


def write_page(path: Path, text: str) -> None:
    """Write a file.  Raises OSError."""
    # Names can contain lone surrogates, which UTF-8 cannot encode.
    path.write_text(text, encoding="utf-8", errors="backslashreplace")
