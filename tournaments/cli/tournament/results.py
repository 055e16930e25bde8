"""Common parts of the subcommands that read a tournament's directory."""

import contextlib
import gc
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from referee.games.spec import did_you_mean
from tournaments.cli.main import Fault, Usage
from tournaments.reporting.tournament_directory import DirectoryError, TournamentDirectory, find_store
from tournaments.reporting.tournament_results import TournamentResults
from tournaments.reporting.workbook import MISSING, XLSX, is_available
from tournaments.results.game_summary import GameSummary
from tournaments.results.rulings import RulingError
from tournaments.results.store import Store, StoreError

SHOWN_KEYS = 3
"""Keys in a message about several games."""
SHOWN_EVERY = 20
"""Games from one message of progress to the next."""


@contextmanager
def open_results(directory: Path, *, for_rulings: bool = False) -> Iterator[tuple[Store, TournamentResults]]:
    """Open the store of a directory for reading; yield it and its results.

    With ``for_rulings`` it can be written, and no run can begin in the meantime.  Raises Usage if there is no
    store, or a run is at work; Fault if the store is damaged, also if that is found in the block.
    """
    path = find_store(directory, missing=Usage, unreadable=Usage)
    try:
        with contextlib.ExitStack() as stack:
            if for_rulings:
                stack.enter_context(TournamentDirectory(directory).locked())
            store = stack.enter_context(Store(path, read_only=not for_rulings))
            with without_garbage_collection():
                results = TournamentResults.load(store)
                _ = results.rulings  # a damaged journal is found now
            yield store, results
    except StoreError as error:
        raise (Fault if error.is_ours else Usage)(str(error)) from error
    except (DirectoryError, RulingError) as error:
        raise Usage(str(error)) from error


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Switch garbage collection off in a command that reads, prints and ends.

    The collector would search 100,000 games for cycles again and again, which takes a fifth of the time of
    their table.  The objects that exist at the end of the block are left out of all later collections, too,
    such as those at the end of the process.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_on:
            gc.enable()


def find_game(results: TournamentResults, wanted: str) -> GameSummary:
    """Return the game of a key, of the beginning of one, or of a number as in the list of `show`.

    Raises Usage if there is no such game, or more than one.
    """
    games = results.kept
    exact = next((game for game in games if game.key == wanted), None)
    if exact is not None:
        return exact
    found = [game for game in games if wanted and game.key.startswith(wanted)]
    if len(found) == 1:
        return found[0]
    if found:
        some = ", ".join(game.key for game in found[:SHOWN_KEYS]) + (
            ", ..." if len(found) > SHOWN_KEYS else ""
        )
        raise Usage(f"{len(found)} games have keys that begin with {wanted!r}: {some}; give more of the key")
    digits = wanted.lstrip("0")
    if digits.isdecimal() and len(digits) <= len(str(len(games))) and int(digits) <= len(games):
        return games[int(digits) - 1]
    hint = did_you_mean(wanted, [game.key for game in games])
    raise Usage(f"there is no game {wanted!r} here{hint or '; kalarena tournament show DIR lists the games'}")


def check_workbook(out: Path | None) -> None:
    """Raise Usage if no workbook can be written, or if it would be printed."""
    if out is None:
        raise Usage(f"{XLSX} is a file for spreadsheet programs: say where it goes, with --out FILE.xlsx")
    if not is_available():
        raise Usage(MISSING)


def show_progress(done: int, games: int) -> None:
    """Show how many games are done, if standard error is a terminal; remove the line with 0 of 0."""
    if sys.stderr.isatty() and (done % SHOWN_EVERY == 0 or done == games):
        text = f"game {done} of {games}" if games else ""
        print(f"\r{text}\x1b[K", end="", file=sys.stderr, flush=True)


def terminal_width() -> int | None:
    """Return the width of the terminal on standard output; None if it is not a terminal."""
    return shutil.get_terminal_size().columns if sys.stdout is not None and sys.stdout.isatty() else None
