"""Options and errors of the commands that use a server with a token."""

import click

from tournaments.cli.game_options import with_options
from tournaments.cli.main import Fault
from tournaments.cli.remote.api_client import Client

TOKEN_VARIABLE, SERVER_VARIABLE = "KALARENA_TOKEN", "KALARENA_SERVER"
UNDECIDED = 3
"""Exit status if the server cannot be reached, or could not do its part."""

server_options = with_options(
    click.option(
        "--server",
        metavar="URL",
        envvar=SERVER_VARIABLE,
        required=True,
        help=f"The server's address.  [default: the variable {SERVER_VARIABLE}]",
    ),
    click.option(
        "--token",
        metavar="T",
        envvar=TOKEN_VARIABLE,
        required=True,
        help=f"From your account's page.  [default: the variable {TOKEN_VARIABLE}]",
    ),
)
"""Decorator that adds the options of a server and a token."""


class Unreachable(Fault):
    """The server failed, or cannot be reached."""

    exit_code = UNDECIDED


def odd_answer(server: str, error: Exception) -> Unreachable:
    """Return the error for an answer of an unexpected shape."""
    return Unreachable(f"{server} does not answer like a kalarena server of this version ({error!r})")


def warn_of_exposure(client: Client) -> None:
    """Print a warning if the token can be read on the way to the server."""
    if client.exposes_token:
        click.echo(
            f"warning: {client.base} is not https: the token travels unencrypted, and anybody who sees it "
            "can submit for you",
            err=True,
        )
