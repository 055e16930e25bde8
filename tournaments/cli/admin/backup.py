"""`kalarena admin backup` and `restore`."""

import json
from datetime import UTC, datetime
from pathlib import Path

import click

from referee.version import VERSION
from tournaments.cli.admin.opening import config_option, data_option, explained, json_option, server_file
from tournaments.cli.main import Usage
from tournaments.course.backup.backup import back_up
from tournaments.course.backup.manifest import BackupError, Manifest
from tournaments.course.backup.restore import restore

MEGABYTE = 1_000_000


@click.command("backup")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@data_option
@config_option
@json_option
def backup_command(file: Path, data: Path, config: Path | None, as_json: bool) -> None:
    """Write all that a server keeps into FILE, a tar archive; the server may run meanwhile.

    With PostgreSQL, FILE has everything but the databases: back those up with pg_dump, and first.
    """
    with explained():
        on_server = server_file(data, config).database is not None
    try:
        manifest = back_up(
            data,
            file,
            databases_inside=not on_server,
            version=VERSION,
            now=datetime.now(UTC),
        )
    except BackupError as error:
        raise Usage(str(error)) from error
    _say(file, manifest, as_json)
    if on_server:
        click.echo(
            "The databases are not in it: back them up with pg_dump, see docs/operations.md.", err=True
        )


@click.command("restore")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option(
    "--data",
    required=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where the data go: an empty directory, or none yet.",
)
@json_option
def restore_command(file: Path, data: Path, as_json: bool) -> None:
    """Make the data directory DIR from FILE, which `kalarena admin backup` wrote."""
    try:
        manifest = restore(file, data)
    except BackupError as error:
        raise Usage(str(error)) from error
    _say(data, manifest, as_json)
    if not manifest.databases_inside:
        click.echo("The databases were not in it: restore them with pg_restore.", err=True)


def _say(place: Path, manifest: Manifest, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(manifest.summary(), indent=1))
        return
    size = manifest.size / MEGABYTE
    databases = len(manifest.rows)
    click.echo(
        f"{place}: {len(manifest.files)} files, {databases} databases among them, {size:.1f} MB, all verified"
    )
