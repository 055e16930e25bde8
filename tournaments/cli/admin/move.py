"""`kalarena admin move`."""

import json
from pathlib import Path

import click

from tournaments.cli.admin.opening import config_option, data_option, explained, json_option, server_file
from tournaments.cli.main import Usage
from tournaments.course.backup.backup import COURSE_FILE
from tournaments.course.backup.database_migration import Moved, MoveError, move
from tournaments.database.location import Database
from tournaments.web.data_directory import DataDirectory
from tournaments.web.server_config import SERVER_FILE


@click.command("move")
@click.option(
    "--to", "to", required=True, metavar="URL", help="postgresql://USER@HOST/DATABASE, which is empty."
)
@data_option
@config_option
@json_option
def command(to: str, data: Path, config: Path | None, as_json: bool) -> None:
    """Copy the databases of a server that does not run from SQLite to PostgreSQL, and verify them.

    Files, such as submissions, stay in the data directory.  Nothing there is changed.
    """
    with explained():
        if "://" not in to:
            raise Usage(f"--to: {to!r} is no address of a database, such as postgresql://USER@HOST/DATABASE")
        if server_file(data, config).database is not None:
            raise Usage("the server's database is PostgreSQL already")
        if not (data / COURSE_FILE).is_file():
            raise Usage(f"{data} holds no {COURSE_FILE}: say with --data where the server's data are")
        moved: list[Moved] = []

        def told(one: Moved) -> None:
            moved.append(one)
            if not as_json:
                rows = ", ".join(f"{held.rows} of {name}" for name, held in one.tables.items())
                click.echo(f"{one.target}: {rows}; the same as in {one.source}")

        with DataDirectory(data).locked():
            try:
                move(Database.at(data), Database.at(to), told)
            except MoveError as error:
                raise Usage(str(error)) from error
    if as_json:
        click.echo(json.dumps([_json(one) for one in moved], indent=1))
    else:
        click.echo(
            f'Now say in {data / SERVER_FILE}: database = "postgresql://..." (the address given), and start.'
        )


def _json(one: Moved) -> dict[str, object]:
    tables = {name: {"rows": held.rows, "sha256_sum": held.digest} for name, held in one.tables.items()}
    return {"source": one.source, "target": one.target, "tables": tables}
