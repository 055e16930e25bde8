"""The folder of a report, which is built aside and then replaces the previous one as a whole."""

import contextlib
import errno
import fcntl
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from tournaments.database.base import Location
from tournaments.reporting.site.anonymizer import Anonymizer
from tournaments.reporting.site.game_pages import GameWriter, PlaceError, ReportError, write_page
from tournaments.reporting.site.pages import Pages
from tournaments.reporting.site.view import View
from tournaments.reporting.summary import Summary

ASSETS = Path(__file__).parent / "assets"
MARKER = ".kalarena-report"
"""A file that marks a folder as a report, which the next report may replace."""

_WRONG_PLACES = {errno.EEXIST, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP, errno.EINVAL}
"""Errors of a path that cannot be a folder: no fault of the disk."""


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
    summary: Summary,
    out: Path,
    pseudonyms: Mapping[str, str] | None = None,
    told: Callable[[int, int], None] = lambda _done, _all: None,
    most_processes: int | None = None,
) -> Built:
    """Make the report of a store in the folder ``out``, whose ``summary`` was just loaded.

    ``pseudonyms`` (name -> pseudonym, in an order that reveals nothing) are used instead of names.  ``told``
    is called with the numbers of written and of all games' pages; ``most_processes`` write them, by default
    one per core.
    Raises ReportError and StoreError (PlaceError if another ``out`` is needed); then ``out`` is as it was.
    """
    with _explained(out):
        out = out.resolve()  # a link to a folder is replaced behind the link
    with _explained(out), _making(out) as part:
        disguise = Anonymizer(pseudonyms or {}, summary.bots)
        view = View(disguise.summary(summary), disguise)
        pages = Pages(view)
        games = pages.game_pages()
        for folder in ("assets", "bots", "games"):
            (part / folder).mkdir()
        for asset in ASSETS.iterdir():  # not copytree, whose errors have lost their number
            shutil.copyfile(asset, part / "assets" / asset.name)
        times = GameWriter(store, part, disguise).write_all(
            games, lambda done: told(done, len(games)), most_processes
        )
        view = View(view.summary, disguise, times)
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
            _remove(old)
            if out.exists():
                _check_replaceable(out)
                out.rename(old)
            part.rename(out)
            with contextlib.suppress(OSError):  # the new one is in its place: the next build removes it
                _remove(old)
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
    descriptor = os.open(part, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ReportError(
                f"another report is being made in {part.parent}: wait for it, or stop it"
            ) from error
        if not _same(descriptor, part):
            raise ReportError(f"another report was just made in {part.parent}")
        for path in part.iterdir():
            _remove(path)
        yield
    finally:
        os.close(descriptor)


def _same(descriptor: int, path: Path) -> bool:
    """Return whether a folder is still the one that was opened."""
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(descriptor), path.stat())
    return False


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


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
        in_the_way = next((path for path in out.parents if path.exists() and not path.is_dir()), None)
        why = (error.strerror or str(error)).lower()
        if kind is PlaceError and in_the_way is not None:
            why = f"{in_the_way} is no folder"
        raise kind(
            f"the report cannot be written to {out}: {why}; nothing was changed; choose another place with "
            "--out"
        ) from error
