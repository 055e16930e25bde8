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
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from tournaments.reporting.tournament_results import TournamentResults
from tournaments.results.chain_check import ChainCheck
from tournaments.results.game_summary import GameSummary


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

    Earlier versions left the conclusion out of report.html, used an anchor without games, and left formulas
    inside the texts of CSV files.
    """
    follows = made(results)
    without = f"<p>{html.escape(results.conclusion)}</p>" if name == "report.html" else ""
    if written in (follows, follows.replace(without, "", 1)):
        return True
    if name.endswith(".csv") and _with_formulas(written) == _with_formulas(follows):
        return True
    if results.anchored == results.anchor:
        return False
    earlier = replace(results)
    earlier.anchored = results.anchor
    return written == made(earlier)


def _with_formulas(text: str) -> str:
    """Return CSV with the formulas inside texts that ``tables.inert`` breaks."""
    return re.sub(r""";'(?=[\s"]*[=+@-])""", ";", text)


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


def games_in_tables(directory: Path) -> set[int]:
    """Return the numbers of games that the tables in a directory give, as far as these can be read."""
    found = {number_in(directory, "games")}
    with contextlib.suppress(csv.Error):
        found.add(len(_rows(directory / "games.csv")))
    with contextlib.suppress(csv.Error, LookupError, TypeError, ValueError):
        found.add(sum(int(row["played"]) for row in _rows(directory / "standings.csv")) // 2)
    return {number for number in found if number is not None}


def _rows(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(read_text(path) or "")))


def earlier_results(
    summary: TournamentResults, order: Mapping[str, StoringPosition], numbers: Collection[int]
) -> Iterator[TournamentResults]:
    """Yield the results of earlier times at which one of these numbers of games counted.

    Tables are written when nothing is played, so their games are those that were stored first.  The rulings
    of that time are the first ones of the journal.

    Args:
        order: Key of a game -> its position in the order of storing.
        numbers: Numbers of games that counted.
    """
    stored = sorted(summary.kept, key=lambda game: order.get(game.key, NO_POSITION))
    for rulings in range(len(summary.journal), -1, -1):
        ruled = summary.before_rulings(rulings)
        for number in numbers:
            with contextlib.suppress(LookupError, TypeError, ValueError, ArithmeticError):
                then = _when_counted(number, ruled, stored)
                if then is not None:
                    yield then


def _when_counted(
    number: int, results: TournamentResults, stored: Sequence[GameSummary]
) -> TournamentResults | None:
    """Return the results with the first of the stored games, of which ``number`` count.

    The games that were set aside are among them.  Returns None if no later game is stored.
    """
    counted, aside = {game.key for game in results.games}, results.rulings.set_aside
    places = [place for place, game in enumerate(stored, 1) if game.key in counted][:number]
    places += [place for place, game in enumerate(stored, 1) if game.key in aside]
    last = max(places, default=0)
    if last == len(stored):
        return None
    keys = {game.key for game in stored[:last]}
    then = replace(results, kept=[game for game in results.kept if game.key in keys])
    return then if len(then.games) == number else None


def fewer_games(
    earlier: Iterable[TournamentResults],
    is_table_of: Callable[[TournamentResults], bool],
    recorded_rounds: int | None,
) -> int | None:
    """Return the number of games from which a table was made, if it is one of these earlier results."""
    for then in earlier:
        with contextlib.suppress(LookupError, TypeError, ValueError, ArithmeticError):
            if is_table_of(then) or fewer_rounds(then, is_table_of, recorded_rounds) is not None:
                return len(then.games)
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
