"""`kalarena tournament export`."""

import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import click

from referee.games.spec import did_you_mean
from tournaments.cli.main import Fault, Usage
from tournaments.cli.tournament.results import open_results
from tournaments.exports import COLUMNS, WHAT, WRITERS, ExportError, protected, whole_file, why_not
from tournaments.gamefiles import public_view
from tournaments.sgf import GameText, write
from tournaments.store import Store
from tournaments.summary import Summary

SGF, JSON = "sgf", "json"
ONE_GAME = (SGF, JSON)
"""Formats of one game, the default first."""


@click.command("export")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--what", type=click.Choice(tuple(WHAT)), help="A row for every game, or for every move.")
@click.option("--game", "key", metavar="KEY", help="One game instead, moves and all.")
@click.option(
    "--format",
    "form",
    type=click.Choice((*WRITERS, SGF)),
    help=f"[default: csv; of one game, {SGF}]",
)
@click.option(
    "--out", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False), help="Write into FILE instead."
)
def command(directory: Path, what: str | None, key: str | None, form: str | None, out: Path | None) -> None:
    """Print the games or the moves in DIR, or one game of them."""
    if (what is None) == (key is None):
        raise Usage(f"say either --what {'|'.join(WHAT)} or --game KEY")
    known = tuple(WRITERS) if key is None else ONE_GAME
    form = form or known[0]
    if form not in known:
        raise Usage(
            f"{'--what' if key is None else '--game'} is exported as {' or '.join(known)}, not as {form}"
        )
    if out is not None and (why := protected(out, directory)):
        raise Usage(why)
    with open_results(directory) as (store, summary), _destination(out) as file:
        if key is not None:
            file.write(_one_game(store, summary, key, form))
        elif what is not None:
            WRITERS[form](WHAT[what](summary.rulings, store.record), file, COLUMNS[what])
    if out is not None:
        about = f"game {key}" if key is not None else f"{what}, of {len(summary.kept)} games played"
        click.echo(f"{out}: {about}")


@contextlib.contextmanager
def _destination(path: Path | None) -> Iterator[TextIO]:
    """Standard output without a path.  Raises Fault."""
    if path is None:
        yield sys.stdout
        return
    try:
        with whole_file(path) as file:
            yield file
    except ExportError as error:
        raise Fault(str(error)) from error


def _one_game(store: Store, summary: Summary, key: str, form: str) -> str:
    """Raises Usage, StoreError."""
    game = next((game for game in summary.kept if game.key == key), None)
    if game is None:
        hint = did_you_mean(key, [game.key for game in summary.kept])
        raise Usage(f"there is no game {key!r} here{hint or '; see the column key of --what games'}")
    record = store.record(key)
    if form == JSON:
        return json.dumps(public_view(record), indent=1) + "\n"
    aside = "" if any(game.key == key for game in summary.games) else why_not(summary.rulings, key)
    return write(GameText.of(record, summary.name, game.round, aside))
