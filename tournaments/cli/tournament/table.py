"""`kalarena tournament table`."""

from pathlib import Path

import click

from tournaments.cli.main import Fault, Usage
from tournaments.cli.tournament.results import (
    check_workbook,
    open_results,
    terminal_width,
    without_garbage_collection,
)
from tournaments.reporting.exports import ExportError, protected, write_whole
from tournaments.reporting.tables import FORMATS, to_grid
from tournaments.reporting.workbook import XLSX, workbook


@click.command("table")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--format", "form", type=click.Choice((*FORMATS, XLSX)), default="text", show_default=True)
@click.option(
    "--out", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False), help="Write into FILE instead."
)
def command(directory: Path, form: str, out: Path | None) -> None:
    """Print the table of the results in DIR."""
    if form == XLSX:
        check_workbook(out)
    with open_results(directory) as (_, summary), without_garbage_collection():
        if out is None:
            click.echo(summary.render(form, terminal_width()), nl=form != "html")
            return
        if why := protected(out, directory):
            raise Usage(why)
        if form == XLSX:
            content = workbook([to_grid(summary.table, summary.ranking, summary.caveat)])
        else:
            text = summary.render(form) + ("" if form == "html" else "\n")
            content = text.encode("utf-8", "backslashreplace")
    try:
        write_whole(out, content)
    except ExportError as error:
        raise Fault(str(error)) from error
    click.echo(f"{out}: the table")
