"""`kalarena tournament report`."""

from pathlib import Path

import click
from threadpoolctl import threadpool_limits

from tournaments.cli.main import Fault, Usage
from tournaments.cli.tournament.results import open_results, show_progress
from tournaments.reporting.pseudonyms import KEY_FILE, PseudonymError, pseudonyms_for
from tournaments.reporting.site.site import LARGE, PAGES, Built, PlaceError, ReportError, build_site
from tournaments.reporting.tournament_results import TournamentResults

REPORT = "report"
ANONYMOUS_REPORT = "report-anonymous"
"""The folders in a tournament's directory."""
MEGABYTE = 1_000_000


@click.command("report")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where the report goes.  [default: report in DIR; report-anonymous with --anonymous]",
)
@click.option("--anonymous", is_flag=True, help="Pseudonyms for bots, and nothing that is private to them.")
@click.option(
    "--key",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help=f"Where the pseudonyms are kept.  [default: {KEY_FILE} in DIR]",
)
@click.option(
    "--pages",
    type=click.Choice(list(PAGES)),
    help="Pages of games: whole ones need no scripts, those that share files need a tenth of the disk.  "
    f"[default: shared from {LARGE} games on]",
)
def command(directory: Path, out: Path | None, anonymous: bool, key: Path | None, pages: str | None) -> None:
    """Make a report of DIR: pages for a browser, with tables, charts and a replay of every game.

    It needs no network and no server.  A report that is there already is replaced.
    """
    if key is not None and not anonymous:
        raise Usage("--key says where pseudonyms are kept: it needs --anonymous")
    place = out or directory / (ANONYMOUS_REPORT if anonymous else REPORT)
    with open_results(directory) as (store, results), threadpool_limits(1):
        try:
            names = _pseudonyms(results, key or directory / KEY_FILE, place) if anonymous else None
            whole = None if pages is None else PAGES[pages]
            built = build_site(store.location, results, place, names, show_progress, whole_pages=whole)
        except (PlaceError, PseudonymError) as error:
            raise Usage(str(error)) from error
        except ReportError as error:
            raise Fault(str(error)) from error
        finally:
            show_progress(0, 0)
    click.echo(_message(built))


def _pseudonyms(results: TournamentResults, key: Path, place: Path) -> dict[str, str]:
    if key.resolve().is_relative_to(place.resolve()):
        raise Usage(f"{key} would be a part of the report, and reveal the names: choose another --key")
    return pseudonyms_for(key, results.bots)


def _message(built: Built) -> str:
    size = built.bytes / MEGABYTE
    largest = built.largest / MEGABYTE
    return f"{built.page}\n{built.files} files, {size:.1f} MB; the largest page has {largest:.2f} MB"
