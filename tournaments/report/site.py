"""A report's folder: made aside, then put in its place as a whole."""

import contextlib
import fcntl
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from tournaments.report.disguise import Disguise
from tournaments.report.game_pages import GameWriter, ReportError, write_page
from tournaments.report.pages import Pages
from tournaments.report.view import View
from tournaments.summary import Summary

ASSETS = Path(__file__).parent / "assets"
MARKER = ".kalarena-report"
"""A file that says that a folder is a report, which the next one may replace."""


class Built(NamedTuple):
    """What was made."""

    page: Path
    """The page to open."""
    files: int
    bytes: int
    largest: int
    """Bytes of the largest page."""


def build_site(
    store: Path,
    summary: Summary,
    out: Path,
    pseudonyms: Mapping[str, str] | None = None,
    told: Callable[[int, int], None] = lambda _done, _all: None,
) -> Built:
    """Make the report of a store in the folder ``out``, whose ``summary`` was just loaded.

    ``pseudonyms`` (name -> pseudonym, in an order that says nothing) are used instead of names.  ``told``
    gets how many of all games' pages are written.  Raises ReportError and StoreError; then ``out`` is as it
    was.
    """
    out = out.resolve()  # a link to a folder is replaced behind the link
    with _making(out) as part:
        disguise = Disguise(pseudonyms or {}, summary.bots)
        view = View(disguise.summary(summary), disguise)
        pages = Pages(view)
        games = pages.game_pages()
        with _explained(part):
            shutil.copytree(ASSETS, part / "assets")
            for folder in ("bots", "games"):
                (part / folder).mkdir()
        times = GameWriter(store, part, disguise).write_all(games, lambda done: told(done, len(games)))
        view = View(view.summary, disguise, times)
        pages = Pages(view)
        write_page(part / "index.html", pages.index())
        write_page(part / "games.html", pages.games())
        for line in view.table:
            write_page(part / view.addresses.bot_file(line.name), pages.bot(line))
        with _explained(part):
            sizes = {path: path.stat().st_size for path in part.rglob("*") if path.is_file()}
    largest = max(size for path, size in sizes.items() if path.suffix == ".html")
    return Built(out / "index.html", len(sizes), sum(sizes.values()), largest)


@contextlib.contextmanager
def _making(out: Path) -> Iterator[Path]:
    """A folder beside ``out`` that takes its place if all goes well, and else is removed."""
    _check_replaceable(out)
    part = out.with_name(f".{out.name}.part")
    old = out.with_name(f".{out.name}.old")
    with _locked(part):
        try:
            (part / MARKER).touch()
            yield part
            with _explained(out):
                _remove(old)
                if out.exists():
                    _check_replaceable(out)
                    out.rename(old)
                part.rename(out)
                _remove(old)
        except BaseException:
            if not out.exists() and old.exists():
                with contextlib.suppress(OSError):
                    old.rename(out)
            shutil.rmtree(part, ignore_errors=True)
            raise


@contextlib.contextmanager
def _locked(part: Path) -> Iterator[None]:
    """The folder, made, empty, and ours alone; what a killed build left in it goes."""
    with _explained(part):
        part.parent.mkdir(parents=True, exist_ok=True)
        part.mkdir(exist_ok=True)
        descriptor = os.open(part, os.O_RDONLY)
    try:
        with _explained(part):
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
    """Whether a folder is still the one that was opened."""
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(descriptor), path.stat())
    return False


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _check_replaceable(out: Path) -> None:
    """Raise ReportError if there is something that is no report."""
    with _explained(out):
        if out.is_dir():
            if not (out / MARKER).is_file() and any(out.iterdir()):
                raise ReportError(
                    f"{out} is there already and is no report: choose another folder with --out, or move it"
                )
        elif out.exists():
            raise ReportError(f"{out} is there already and is no folder: choose another one with --out")


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ReportError(f"{error.filename or path}: {error.strerror}") from error
