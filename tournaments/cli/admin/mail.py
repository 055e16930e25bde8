"""`kalarena admin mail`."""

import json
from datetime import UTC, datetime
from pathlib import Path

import click

from tournaments.cli.admin.opening import data_option, explained, json_option, open_course, server_file
from tournaments.cli.main import Fault, Usage, config_option
from tournaments.course.model import Mail, MailKind
from tournaments.course.texts import email_of
from tournaments.server.mail.mail_table import Mailing
from tournaments.server.mail.smtp import MailServerError, RefusedError, deliver, message_of, name_of
from tournaments.web.server_config import ServerFile

OFF = "server.toml has no table [mail]: this server sends no mail"


@click.group("mail")
def command() -> None:
    """The mails of a course."""


@command.command("test")
@click.argument("address")
@data_option
@config_option
def test_command(address: str, data: Path, config: Path | None) -> None:
    """Send a mail to ADDRESS at once, and print the answer of the mail server."""
    with explained():
        mailing = _mailing(server_file(data, config))
        mail = Mail(
            id=0,
            kind=MailKind.ADDRESS,
            address=email_of(address),
            subject="Kalarena can send mail",
            body="This is a test by kalarena admin mail test.",
            path="/",
            created_at=datetime.now(UTC),
            attempts=0,
        )
    try:
        answer = deliver(mailing.table, message_of(mailing, mail), mail.address)
    except MailServerError as error:
        raise Fault(str(error)) from error
    except RefusedError as error:
        raise Fault(f"{name_of(mailing.table)} refused the mail: {error}") from error
    click.echo(f"{name_of(mailing.table)}: {answer}")


@command.command("list")
@data_option
@config_option
@json_option
def list_command(data: Path, config: Path | None, as_json: bool) -> None:
    """Print how many mails wait, are held or have failed, and the last failures."""
    with open_course(data, config) as opened:
        status = opened.course.outbox.status()
    if as_json:
        failures = [
            {
                "login": one.login,
                "kind": one.kind.value,
                "address": one.address,
                "tried_at": one.tried_at.isoformat(),
                "answer": one.answer,
            }
            for one in status.failures
        ]
        oldest = None if status.oldest is None else status.oldest.isoformat()
        counts = {"waiting": status.waiting, "held": status.held, "failed": status.failed}
        click.echo(json.dumps({**counts, "oldest": oldest, "failures": failures}, indent=1))
        return
    click.echo(f"{status.waiting} waiting, {status.held} held, {status.failed} failed")
    for one in status.failures:
        click.echo(f"{one.tried_at:%Y-%m-%d %H:%M} UTC {one.login} <{one.address}> {one.kind}: {one.answer}")


@command.command("retry")
@data_option
@config_option
def retry_command(data: Path, config: Path | None) -> None:
    """Let the mails be sent again that have failed, as after a correction of the mail server."""
    with open_course(data, config) as opened:
        _mailing(opened.file)
        click.echo(f"{_counted(opened.course.outbox.retry(opened.now))} waiting again")


@command.command("release")
@data_option
@config_option
def release_command(data: Path, config: Path | None) -> None:
    """Let the mails be sent that are held, because another data directory wrote them.

    After a restore, the server of the original may have sent them already.
    """
    with open_course(data, config) as opened:
        _mailing(opened.file)
        click.echo(f"{_counted(opened.course.outbox.release(opened.now))} released")


@command.command("discard")
@data_option
@config_option
def discard_command(data: Path, config: Path | None) -> None:
    """Delete the mails that are held; see `release`."""
    with open_course(data, config) as opened:
        _mailing(opened.file)
        click.echo(f"{_counted(opened.course.outbox.discard())} discarded")


def _mailing(file: ServerFile) -> Mailing:
    if file.mailing is None:
        raise Usage(OFF)
    return file.mailing


def _counted(number: int) -> str:
    return "1 mail is" if number == 1 else f"{number} mails are"
