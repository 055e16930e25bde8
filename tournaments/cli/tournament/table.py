"""`kalarena tournament table`."""

from pathlib import Path

import click

from tournaments.cli.tournament.results import open_results, terminal_width, without_garbage_collection
from tournaments.tables import FORMATS


@click.command("table")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--format", "form", type=click.Choice(FORMATS), default="text", show_default=True)
def command(directory: Path, form: str) -> None:
    """Print the table of the results in DIR."""
    with open_results(directory) as (_, summary), without_garbage_collection():
        click.echo(summary.render(form, terminal_width()), nl=form != "html")
