"""`kalarena challenge`."""

import sys
import time
from collections.abc import Mapping
from functools import partial
from typing import Any

import click

from referee.judge.verdict_text import visible
from tournaments.cli.main import Usage
from tournaments.cli.remote.api_client import POLL_S, Client, SubmitError
from tournaments.cli.remote.server_options import (
    Unreachable,
    odd_answer,
    server_options,
    warn_of_exposure,
)
from tournaments.reporting.tables import json_text

FAILED = 1
"""Exit status if the challenge was not played to its end."""


@click.command("challenge")
@click.argument("opponent", required=False)
@server_options
@click.option(
    "--pairs",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Pairs of games, seats exchanged.",
)
@click.option("--bot", default="", metavar="NAME", help="A connected remote bot, in place of your version.")
@click.option("--no-wait", is_flag=True, help="Do not wait for the games.")
@click.option("--json", "as_json", is_flag=True, help="Print the challenge as one JSON object, nothing else.")
def command(
    opponent: str | None, server: str, token: str, pairs: int, bot: str, no_wait: bool, as_json: bool
) -> None:
    """Let your team's bot play OPPONENT on a server, in games that are in no standings.

    Without OPPONENT, list the bots that can be challenged.

    Exit status: 0 all games were played, also if they were lost (with --no-wait: accepted), 1 not played
    to the end, 2 not accepted, 3 the server failed or could not be reached, or did not say what became of an
    accepted challenge, which is still played.
    """
    try:
        client = Client(server, token)
        warn_of_exposure(client)
        if opponent is None:
            _print_opponents(client.opponents(), as_json)
            return
        challenge = client.challenge(opponent, pairs, bot)["challenge"]
        if not as_json:
            click.echo(
                f"challenge {challenge['id']}: {visible(challenge['bot'])} against "
                f"{visible(challenge['opponent'])}: {client.page(challenge['page'])}"
            )
        if not no_wait:
            challenge = _followed(client, challenge, as_json)
    except SubmitError as error:
        raise (Unreachable if error.is_ours else Usage)(str(error)) from error
    except (LookupError, TypeError) as error:
        raise odd_answer(server, error) from error
    if as_json:
        click.echo(json_text({"challenge": challenge}))
    if no_wait:
        return
    if not as_json:
        _print_end(challenge)
    if challenge["state"] != "finished":
        sys.exit(FAILED)


def _print_opponents(found: Mapping[str, Any], as_json: bool) -> None:
    if as_json:
        click.echo(json_text(found))
        return
    for one in found["opponents"]:
        click.echo(visible(one["name"]))


def _followed(client: Client, challenge: dict[str, Any], quiet: bool) -> dict[str, Any]:
    """Print the results of the games as they end, and return the challenge when it is over."""
    shown = 0
    while True:
        if not quiet:
            for game in challenge["results"][shown:]:
                page = client.page(game["page"])
                click.echo(f"  {game['outcome']}: {visible(game['detail'])}: {page}")
        shown = len(challenge["results"])
        if challenge["is_over"]:
            return challenge
        time.sleep(POLL_S)
        answer = client.patiently(partial(client.challenge_now, challenge["id"]), time.sleep)
        challenge = answer["challenge"]


def _print_end(challenge: Mapping[str, Any]) -> None:
    if challenge["message"]:
        click.echo(visible(challenge["message"]), err=True)
    click.echo(
        f"{challenge['state']}: {challenge['wins']} won, {challenge['draws']} drawn, "
        f"{challenge['losses']} lost"
    )
