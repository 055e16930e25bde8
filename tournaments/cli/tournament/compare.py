"""`kalarena tournament compare`."""

from pathlib import Path

import click
from threadpoolctl import threadpool_limits

from referee.games.spec import did_you_mean
from tournaments.analysis.comparison import compare
from tournaments.cli.main import Usage
from tournaments.cli.tournament.results import open_results
from tournaments.reporting.tables import json_text


@click.command("compare")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.argument("one", metavar="BOT")
@click.argument("other", metavar="OTHER")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(directory: Path, one: str, other: str, as_json: bool) -> None:
    """Say whether BOT is stronger than OTHER, by all results in DIR."""
    with open_results(directory) as (_, summary):
        for name in (one, other):
            if name not in summary.bots:
                hint = did_you_mean(name, summary.bots) or f"; there are {', '.join(summary.bots)}"
                raise Usage(f"there is no bot {name!r} here{hint}")
        if one == other:
            raise Usage("two different bots are needed")
        with threadpool_limits(1):
            found = compare(
                summary.bots,
                summary.games,
                one,
                other,
                summary.ghosts,
                is_adaptive=summary.is_adaptive,
                was_stopped=summary.was_stopped,
            )
    if as_json:
        click.echo(json_text({**found.to_json(), "ratings_caveat": summary.caveat}))
        return
    click.echo(found.to_text())
    if summary.caveat:
        click.echo(f"  ({summary.caveat})")
