"""`kalarena tournament export`."""

import contextlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TextIO

import click

from referee.judge.results import GameRecord
from tournaments.cli.main import Fault, Usage
from tournaments.cli.tournament.results import find_game, open_results, show_progress
from tournaments.reporting.exports import (
    COLUMNS,
    WHAT,
    WRITERS,
    ExportError,
    pgn_games,
    protected,
    whole_file,
    why_not,
)
from tournaments.reporting.pgn import pgn_of
from tournaments.reporting.sgf import GameText, write
from tournaments.reporting.tournament_results import TournamentResults
from tournaments.results.game_files import public_view
from tournaments.results.game_summary import GameSummary
from tournaments.results.store import Store

SGF, JSON, PGN = "sgf", "json", "pgn"
GAMES = "games"
FORMATS = {GAMES: (*WRITERS, PGN), "moves": tuple(WRITERS)}
"""Rows -> formats, the default first."""
ONE_GAME = (SGF, JSON, PGN)
"""Formats of one game, the default first."""


@click.command("export")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--what", type=click.Choice(tuple(WHAT)), help="A row for every game, or for every move.")
@click.option("--game", "key", metavar="KEY", help="One game instead, moves and all.")
@click.option(
    "--format",
    "form",
    type=click.Choice((*WRITERS, SGF, PGN)),
    help=f"{PGN}: the games that count, for programs that rate players.  [default: csv; of one game, {SGF}]",
)
@click.option(
    "--out", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False), help="Write into FILE instead."
)
def command(directory: Path, what: str | None, key: str | None, form: str | None, out: Path | None) -> None:
    """Print the games or the moves in DIR, or one game of them."""
    if form == PGN and key is None:
        what = what or GAMES
    if (what is None) == (key is None):
        raise Usage(f"give either --what {'|'.join(WHAT)} or --game KEY")
    known = ONE_GAME if what is None else FORMATS[what]
    form = form or known[0]
    if form not in known:
        asked = "--game" if what is None else f"--what {what}"
        raise Usage(f"{asked} is exported as {' or '.join(known)}, not as {form}")
    if out is not None and (why := protected(out, directory)):
        raise Usage(why)
    with open_results(directory) as (store, results), _destination(out) as file:
        if key is not None:
            game = find_game(results, key)
            key = game.key
            file.write(_one_game(store, results, game, form))
        elif what is not None:
            with _counted_reads(store, results, form, hidden=file.isatty()) as record_of:
                if form == PGN:
                    file.writelines(pgn_games(results.rulings, record_of, results.name))
                else:
                    WRITERS[form](WHAT[what](results.rulings, record_of), file, COLUMNS[what])
    if out is not None:
        about = f"{what}, of {len(results.kept)} games played"
        if key is not None:
            about = f"game {key}"
        elif form == PGN:
            about = f"games that count, {len(results.games)} of {len(results.kept)} played"
        click.echo(f"{out}: {about}")


@contextlib.contextmanager
def _destination(path: Path | None) -> Iterator[TextIO]:
    """Yield the file of a path, or standard output without one.  Raises Fault."""
    if path is None:
        yield sys.stdout
        return
    try:
        with whole_file(path) as file:
            yield file
    except ExportError as error:
        raise Fault(str(error)) from error


@contextlib.contextmanager
def _counted_reads(
    store: Store, results: TournamentResults, form: str, *, hidden: bool
) -> Iterator[Callable[[str], GameRecord]]:
    """Yield a reader of records that shows the progress on a terminal, unless ``hidden``."""
    total = len(results.games if form == PGN else results.kept)
    done = 0

    def record_of(key: str) -> GameRecord:
        nonlocal done
        record = store.record(key)
        done += 1
        if not hidden:
            show_progress(done, total)
        return record

    try:
        yield record_of
    finally:
        if not hidden:
            show_progress(0, 0)


def _one_game(store: Store, results: TournamentResults, game: GameSummary, form: str) -> str:
    """Return the text of one game.  Raises StoreError."""
    key = game.key
    record = store.record(key)
    if form == PGN:
        return pgn_of(record, results.name, game.round)
    if form == JSON:
        return json.dumps(public_view(record), indent=1) + "\n"
    aside = "" if any(game.key == key for game in results.games) else why_not(results.rulings, key)
    return write(GameText.from_record(record, results.name, game.round, aside))
