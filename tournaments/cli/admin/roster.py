"""`kalarena admin roster import`."""

import csv
import io
import json
from pathlib import Path

import click

from tournaments.cli.admin.opening import data_option, json_option, open_course
from tournaments.cli.main import Usage, config_option
from tournaments.course.people.roster import RosterError, decode_roster, enrol, parse_roster


@click.group("roster")
def command() -> None:
    """The students of a course."""


@command.command("import")
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False))
@data_option
@config_option
@json_option
def import_command(path: Path, data: Path, config: Path | None, as_json: bool) -> None:
    """Import the roster FILE, a CSV with the columns login, name and team.

    New students are added, and known ones are renamed or moved; nobody is deleted.  An empty team is a team
    of one.  Prints a CSV with the one-time links of new students, which cannot be printed again.  If the
    server sends mail, a column email is read, and the links go out by mail, too.  If anything is wrong with
    FILE, nothing is changed.
    """
    try:
        roster = parse_roster(decode_roster(path.read_bytes()))
    except OSError as error:
        raise Usage(f"{path}: cannot be read: {error.strerror}") from error
    except RosterError as error:
        raise Usage(_of_file(path, error)) from error
    with open_course(data, config) as opened:
        try:
            with opened.course.transaction():
                result = enrol(opened.course, roster, opened.now)
                opened.note(
                    "roster.import",
                    f"{len(roster.rows)} students",
                    added=[account.login for account in result.added],
                    moved=[account.login for account in result.moved],
                    renamed=[account.login for account in result.renamed],
                )
        except RosterError as error:
            raise Usage(_of_file(path, error)) from error
        links = {login: opened.link(secret) for login, secret in result.links.items()}
    if as_json:
        summary = {
            "added": [account.login for account in result.added],
            "moved": [account.login for account in result.moved],
            "renamed": [account.login for account in result.renamed],
            "disabled": [account.login for account in result.disabled],
            "unchanged": result.unchanged,
            "links": links,
            "readdressed": [account.login for account in result.readdressed],
            "mailed": result.mailed,
        }
        click.echo(json.dumps(summary, indent=1))
        return
    if links:
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(("login", "link"))
        writer.writerows(links.items())
        click.echo(out.getvalue(), nl=False)
    click.echo(
        f"{len(result.added)} added, {len(result.moved)} moved, {len(result.renamed)} renamed, "
        f"{result.unchanged} as they were",
        err=True,
    )
    if result.readdressed:
        addresses = "1 address" if len(result.readdressed) == 1 else f"{len(result.readdressed)} addresses"
        links_go = "1 link goes" if result.mailed == 1 else f"{result.mailed} links go"
        click.echo(f"{addresses} set; {links_go} out by mail", err=True)


def _of_file(path: Path, error: RosterError) -> str:
    return "\n".join(f"{path}: {line}" for line in str(error).split("\n"))
