"""`kalarena admin add`, `reset` and `token`."""

import json
from pathlib import Path

import click

from tournaments.cli.admin.opening import data_option, json_option, open_course
from tournaments.cli.main import Usage, config_option
from tournaments.course.model import LinkPurpose, Role


@click.command("add")
@click.argument("login")
@click.option("--role", type=click.Choice([role.value for role in Role]), required=True)
@click.option("--name", metavar="NAME", help="The person's name.  [default: the login]")
@click.option("--team", metavar="TEAM", help="The student's team, which is created if it is missing.")
@click.option("--email", metavar="ADDRESS", help="Where the link goes, too, if the server sends mail.")
@data_option
@config_option
@json_option
def add_command(
    login: str,
    role: str,
    name: str | None,
    team: str | None,
    email: str | None,
    data: Path,
    config: Path | None,
    as_json: bool,
) -> None:
    """Add the account LOGIN, and print the link with which its owner chooses a password."""
    with open_course(data, config) as opened:
        course = opened.course
        if email is not None and not course.outbox.is_on:
            raise Usage("--email: server.toml has no table [mail]: this server sends no mail")
        with course.transaction():
            team_id = None
            if team is not None:
                team_id = (course.teams.by_name(team) or course.teams.add(team, opened.now)).id
            account = course.accounts.add(login, name or login, Role(role), team_id, opened.now)
            if email is not None:
                course.addresses.enrol(account.id, email)
            secret = course.links.make(account.id, LinkPurpose.INVITATION, opened.now)
            opened.note("account.add", account.login, role=role)
        _print(account.login, opened.link(secret), as_json)


@click.command("reset")
@click.argument("login")
@data_option
@config_option
@json_option
def reset_command(login: str, data: Path, config: Path | None, as_json: bool) -> None:
    """Print a link with which LOGIN chooses a new password; the present one is valid until then."""
    with open_course(data, config) as opened:
        account = opened.account(login)
        purpose = LinkPurpose.RESET if account.has_password else LinkPurpose.INVITATION
        with opened.course.transaction():
            secret = opened.course.links.make(account.id, purpose, opened.now)
            opened.note("account.link", account.login)
        _print(account.login, opened.link(secret), as_json)


def _print(login: str, link: str, as_json: bool) -> None:
    click.echo(json.dumps({"login": login, "link": link}) if as_json else link)


@click.command("token")
@click.argument("login")
@click.option("--days", type=click.IntRange(1, 3660), help="How long it is valid.  [default: for ever]")
@click.option("--name", default="kalarena admin", show_default=True, help="Its name on the page Account.")
@data_option
@config_option
@json_option
def token_command(
    login: str, days: int | None, name: str, data: Path, config: Path | None, as_json: bool
) -> None:
    """Print a new API token of LOGIN, which cannot be printed again."""
    with open_course(data, config) as opened:
        account = opened.account(login)
        with opened.course.transaction():
            secret, token = opened.course.tokens.make(account.id, name, opened.now, days)
            opened.note("token.make", account.login, name=name, days=days)
        expires = None if token.expires_at is None else token.expires_at.isoformat()
        shown = {"login": account.login, "token": secret, "expires_at": expires}
        click.echo(json.dumps(shown) if as_json else secret)
