"""Recognition of tables that were written at an earlier time of the tournament.

A run or a ruling that was killed has not written its tables.  The tables of an earlier time are then still
there; they are old, but not wrong.
"""

import contextlib
import csv
import html
import io
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from tournaments.reporting.tournament_results import TournamentResults
from tournaments.results.chain_check import ChainCheck


class StoringPosition(NamedTuple):
    """Position of a game in the order of storing."""

    number: int
    """Number of its entry in the chain; 0 if it was stored before there was a chain."""
    started_at: str
    """Time of its start, UTC, ISO 8601; empty if the record cannot be read."""


NO_POSITION = StoringPosition(0, "")
"""Position of a game that is not stored."""


def read_text(path: Path) -> str | None:
    """Return the text of a file; None if there is none.  Line ends are unchanged."""
    try:
        return path.read_bytes().decode("utf-8", "replace")
    except (FileNotFoundError, NotADirectoryError):
        return None


def linked_games(page: str) -> frozenset[str]:
    """Return the keys of the games to whose files report.html links: these may have been moved since."""
    return frozenset(re.findall(r'<a href="games/([^"/]+)/', page))


def is_made_from(
    name: str, written: str, made: Callable[[TournamentResults], str], results: TournamentResults
) -> bool:
    """Return True if a table was made from these results, by this version or by an earlier one.

    Earlier versions left the conclusion out of report.html.
    """
    follows = made(results)
    return written == follows or (
        name == "report.html"
        and written == follows.replace(f"<p>{html.escape(results.conclusion)}</p>", "", 1)
    )


def order_of_storing(chain: ChainCheck | None, started: Mapping[str, str]) -> dict[str, StoringPosition]:
    """Return key of a game -> its position in the order of storing.

    Clocks of hosts differ, and are put back, so the order is that of the chain, as far as there was one.

    Args:
        chain: The chain, if the store has one.
        started: Key of a game -> time of its start.
    """
    links = {} if chain is None else chain.games
    adopted = 0 if chain is None or chain.adopted is None else chain.adopted.number
    numbers = {key: link.number for key, link in links.items() if link.number > adopted}
    return {key: StoringPosition(numbers.get(key, 0), at) for key, at in started.items()}


def _made_from(
    games_csv: str, summary: TournamentResults, order: Mapping[str, StoringPosition]
) -> int | None:
    """Return the number of games behind the tables, if the tables are of an earlier time; else None.

    Tables are of an earlier time if all their games are still stored, and all games that they lack were
    stored after these: a table is made when nothing is played.  A game that is older than a table, but not
    in it, was set aside then, and a ruling that restores the game writes the tables anew.
    """
    try:
        rows = list(csv.reader(io.StringIO(games_csv)))
    except csv.Error:
        return None
    if not rows:
        return None
    keys = {row[0] for row in rows[1:] if row}
    lacking = {game.key for game in summary.games} - keys
    if not lacking or not keys <= {game.key for game in summary.kept}:
        return None
    newest = max((order.get(key, NO_POSITION) for key in keys), default=NO_POSITION)
    return len(keys) if all(order.get(key, NO_POSITION) > newest for key in lacking) else None


def games_at_that_time(
    games_csv: str, summary: TournamentResults, order: Mapping[str, StoringPosition]
) -> int | None:
    """Return the number of games behind the tables, by the rulings of then or earlier ones; else None.

    Args:
        games_csv: Text of games.csv.
        order: Key of a game -> its position in the order of storing.
    """
    for number in range(len(summary.journal), -1, -1):
        found = _made_from(games_csv, summary.before_rulings(number), order)
        if found is not None:
            return found
    return None


def missing_rulings(summary: TournamentResults, is_table_of: Callable[[TournamentResults], bool]) -> int:
    """Return the number of the latest rulings that were made after a table was written; 0 without any."""
    for number in range(len(summary.journal) - 1, -1, -1):
        with contextlib.suppress(LookupError, TypeError, ValueError, ArithmeticError):
            if is_table_of(summary.before_rulings(number)):
                return len(summary.journal) - number
    return 0


def fewer_rounds(
    summary: TournamentResults, is_table_of: Callable[[TournamentResults], bool], recorded: int | None
) -> int | None:
    """Return the number of rounds with which a table is as it was written, if there are more now.

    A run with more rounds was killed before it stored a game.  Only numbers with all stored games count:
    ``recorded``, or without a record the number of the last round that has a game.
    """
    played = max((game.round for game in summary.kept), default=0)
    rounds = played if recorded is None else recorded
    with contextlib.suppress(LookupError, TypeError, ValueError, ArithmeticError):
        if played <= rounds < summary.plan.rounds and is_table_of(summary.with_rounds(rounds)):
            return rounds
    return None


def number_in(directory: Path, key: str) -> int | None:
    """Return a number in results.json; None if there is none."""
    with contextlib.suppress(ValueError, LookupError, TypeError):
        number = json.loads(read_text(directory / "results.json") or "")[key]
        return number if isinstance(number, int) else None
    return None
