"""`kalarena tournament table` and `kalarena tournament compare`: the standings, and two bots in them."""

from functools import partial
from pathlib import Path

import click
from threadpoolctl import threadpool_limits

from tournaments.analysis.comparison import compare
from tournaments.cli.main import Fault, Usage
from tournaments.cli.tournament.results import (
    check_workbook,
    open_results,
    terminal_width,
    without_garbage_collection,
)
from tournaments.files.validation_errors import suggestion
from tournaments.reporting.exports import ExportError, protected, write_whole
from tournaments.reporting.tables import FORMATS, json_text, to_grid
from tournaments.reporting.workbook import XLSX, workbook
from tournaments.results.game_files import has_folder


@click.command("table")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--format", "form", type=click.Choice((*FORMATS, XLSX)), default="text", show_default=True)
@click.option(
    "--out", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False), help="Write into FILE instead."
)
def table_command(directory: Path, form: str, out: Path | None) -> None:
    """Print the table of the results in DIR."""
    if form == XLSX:
        check_workbook(out)
    with open_results(directory) as (_, results), without_garbage_collection():
        in_folder = partial(has_folder, directory)
        if out is None:
            click.echo(results.render(form, terminal_width(), in_folder), nl=form != "html")
            return
        if why := protected(out, directory):
            raise Usage(why)
        if form == XLSX:
            content = workbook([to_grid(results.table, results.ranking, results.caveat)])
        else:
            text = results.render(form, has_folder=in_folder) + ("" if form == "html" else "\n")
            content = text.encode("utf-8", "backslashreplace")
    try:
        write_whole(out, content)
    except ExportError as error:
        raise Fault(str(error)) from error
    click.echo(f"{out}: the table")


@click.command("compare")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.argument("one", metavar="BOT")
@click.argument("other", metavar="OTHER")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def compare_command(directory: Path, one: str, other: str, as_json: bool) -> None:
    """Say whether BOT is stronger than OTHER, by all results in DIR."""
    with open_results(directory) as (_, results):
        for name in (one, other):
            if name not in results.bots:
                raise Usage(f"there is no bot {name!r} here{suggestion(name, results.bots)}")
        if one == other:
            raise Usage("two different bots are needed")
        with threadpool_limits(1):
            found = compare(
                results.bots,
                results.games,
                one,
                other,
                results.ghosts,
                is_adaptive=results.is_adaptive,
                was_stopped=results.was_stopped,
            )
    if as_json:
        click.echo(json_text({**found.to_json(), "ratings_caveat": results.caveat}))
        return
    click.echo(found.to_text())
    if results.caveat:
        click.echo(f"  ({results.caveat})")
