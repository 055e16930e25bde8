"""What the subcommands that read a tournament's directory have in common."""

import gc
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tournaments.cli.main import Fault, Usage
from tournaments.directory import STORE_FILE
from tournaments.rulings import RulingError
from tournaments.store import Store, StoreError
from tournaments.summary import Summary


@contextmanager
def open_results(directory: Path) -> Iterator[tuple[Store, Summary]]:
    """The store of a directory, for reading, and its summary.

    Raises Usage if there is none to be read, Fault if it is damaged, be that found while it is in use.
    """
    path = directory / STORE_FILE
    if not path.is_file():
        raise Usage(f"{directory} holds no {STORE_FILE}: is it the directory of a tournament?")
    try:
        with Store(path, read_only=True) as store:
            with without_garbage_collection():
                summary = Summary.load(store)
                _ = summary.rulings  # a damaged journal is found now
            yield store, summary
    except StoreError as error:
        raise (Fault if error.is_ours else Usage)(str(error)) from error
    except RulingError as error:
        raise Usage(str(error)) from error


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """For what reads, prints and ends: looking through 100,000 games for cycles, again and again, takes a
    fifth of the time that their table takes.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def terminal_width() -> int | None:
    """The width of the terminal that is printed to; None if it is none."""
    return shutil.get_terminal_size().columns if sys.stdout is not None and sys.stdout.isatty() else None
