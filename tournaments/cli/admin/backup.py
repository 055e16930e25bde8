"""`kalarena admin backup`, `restore`, `adopt` and `move`."""

import json
from datetime import UTC, datetime
from pathlib import Path

import click
from sqlalchemy import URL

from referee.version import VERSION
from tournaments.cli.admin.opening import data_option, explained, json_option, server_file
from tournaments.cli.main import Usage, config_option
from tournaments.course.backup.backup import COURSE_FILE, back_up
from tournaments.course.backup.database_migration import Moved, MoveError, move
from tournaments.course.backup.manifest import BackupError, Manifest
from tournaments.course.backup.restore import restore
from tournaments.database.location import Database
from tournaments.database.server_lock import ServerLock
from tournaments.web.data_directory import DataDirectory
from tournaments.web.server_config import exists_for_server, read_server_file, server_file_path

MEGABYTE = 1_000_000


@click.command("backup")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@data_option
@config_option
@json_option
def backup_command(file: Path, data: Path, config: Path | None, as_json: bool) -> None:
    """Write everything that a server stores into FILE, a tar archive.  The server may run meanwhile.

    With PostgreSQL, FILE has everything but the databases: back them up first, with pg_dump.
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
    _print_summary(file, manifest, as_json)
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
    help="The new data directory, which must be empty or missing.",
)
@json_option
def restore_command(file: Path, data: Path, as_json: bool) -> None:
    """Make the data directory DIR from FILE, which `kalarena admin backup` wrote."""
    try:
        manifest = restore(file, data)
    except BackupError as error:
        raise Usage(str(error)) from error
    _print_summary(data, manifest, as_json)
    if not manifest.databases_inside:
        click.echo(
            "The databases were not in it: restore them with pg_restore, and see docs/operations.md.",
            err=True,
        )


def _print_summary(place: Path, manifest: Manifest, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(manifest.summary(), indent=1))
        return
    size = manifest.size / MEGABYTE
    databases = len(manifest.rows)
    click.echo(
        f"{place}: {len(manifest.files)} files, {databases} databases among them, {size:.1f} MB, all verified"
    )


@click.command("adopt")
@data_option
@config_option
def adopt_command(data: Path, config: Path | None) -> None:
    """Give the PostgreSQL database of server.toml to the data directory DIR, as after a restore.

    The directory to which the database belonged cannot be served with it any more.
    """
    with explained():
        address = read_server_file(data, config).database
        where = None if address is None else Database.at(address).address
        if not isinstance(where, URL):
            raise Usage("the databases are SQLite's, in the data directory itself: there is nothing to adopt")
        if not exists_for_server(data):
            raise Usage(f"there is no {data}: name the server's data directory with --data")
        directory = DataDirectory(data)
        with directory.locked(), ServerLock(where) as lock:
            lock.claim(directory.identity(), adopt=True)
            click.echo(f"{lock.name} belongs to {data} now.")


@click.command("move")
@click.option(
    "--to", "to", required=True, metavar="URL", help="postgresql://USER@HOST/DATABASE, which is empty."
)
@data_option
@config_option
@json_option
def move_command(to: str, data: Path, config: Path | None, as_json: bool) -> None:
    """Copy the databases of a server that does not run from SQLite to PostgreSQL, and verify them.

    Files, such as submissions, stay in the data directory, and so do the databases of SQLite.
    """
    with explained():
        if "://" not in to:
            raise Usage(f"--to: {to!r} is no address of a database, such as postgresql://USER@HOST/DATABASE")
        if server_file(data, config).database is not None:
            raise Usage("the server's database is PostgreSQL already")
        if not exists_for_server(data / COURSE_FILE):
            raise Usage(f"{data} holds no {COURSE_FILE}: say with --data where the server's data are")
        moved: list[Moved] = []

        def on_moved(one: Moved) -> None:
            moved.append(one)
            if not as_json:
                rows = ", ".join(f"{held.rows} of {name}" for name, held in one.tables.items())
                click.echo(f"{one.target}: {rows}; the same as in {one.source}")

        directory = DataDirectory(data)
        with directory.locked():
            try:
                move(Database.at(data), Database.at(to), on_moved)
            except MoveError as error:
                raise Usage(str(error)) from error
            directory.forget_database()
    if as_json:
        click.echo(json.dumps([_moved_json(one) for one in moved], indent=1))
    else:
        path = server_file_path(data, config)
        click.echo(f'Now say in {path}: database = "postgresql://..." (the address given), and start.')


def _moved_json(one: Moved) -> dict[str, object]:
    tables = {name: {"rows": held.rows, "sha256_sum": held.digest} for name, held in one.tables.items()}
    return {"source": one.source, "target": one.target, "tables": tables}
