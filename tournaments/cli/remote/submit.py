"""`kalarena submit`."""

import sys
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import click

from referee.judge.verdict_text import visible
from tournaments.cli.main import Usage
from tournaments.cli.remote.api_client import Client, SubmitError, pack
from tournaments.cli.remote.server_options import (
    UNDECIDED,
    Unreachable,
    odd_answer,
    server_options,
    warn_of_exposure,
)
from tournaments.reporting.tables import json_text

FAILED = 1
"""Exit status if the version did not qualify."""


@click.command("submit")
@click.argument("bot", type=click.Path(path_type=Path))
@server_options
@click.option("--no-wait", is_flag=True, help="Do not wait for the check.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print what became of it as one JSON object, nothing else."
)
def command(bot: Path, server: str, token: str, no_wait: bool, as_json: bool) -> None:
    """Submit the folder (or file) BOT to a server, and follow its check there.

    Exit status: 0 qualified (with --no-wait: accepted), 1 not qualified, 2 not accepted, 3 the server failed
    or could not be reached; a version that it has accepted is kept there.
    """
    try:
        package = pack(bot)
        client = Client(server, token)
        warn_of_exposure(client)
        submitted = client.submit(package)
        version = submitted["version"]
        if not as_json:
            _print_submission(package.name, package.left_out, submitted, client.page(version["page"]))
        if no_wait:
            if as_json:
                click.echo(json_text(submitted))
            return
        client.follow(version["id"], (lambda _: None) if as_json else _print_line, time.sleep)
        found = client.patiently(partial(client.version, version["id"]), time.sleep)
    except SubmitError as error:
        raise (Unreachable if error.is_ours else Usage)(str(error)) from error
    except (LookupError, TypeError) as error:
        raise odd_answer(server, error) from error
    if as_json:
        click.echo(json_text({**submitted, **found}))
    else:
        _print_decision(found)
    state = found["version"]["state"]
    if state != "qualified":
        sys.exit(FAILED if state == "failed" else UNDECIDED)


def _print_line(text: str) -> None:
    click.echo(f"  {visible(text)}")


def _print_submission(name: str, left_out: tuple[str, ...], submitted: Mapping[str, Any], page: str) -> None:
    version = submitted["version"]
    again = "" if submitted["new"] else ", which has the very same files already"
    click.echo(f"{name} was accepted as version {version['number']}{again}: {page}")
    left_aside = [*left_out, *submitted["passed_over"]]
    if left_aside:
        shown = ", ".join(visible(each) for each in left_aside[:5]) + (", ..." if len(left_aside) > 5 else "")
        click.echo(f"left out, as no part of the bot or made by its build: {shown}")


def _print_decision(found: Mapping[str, Any]) -> None:
    version, report = found["version"], found["report"]
    number = version["number"]
    match version["state"]:
        case "qualified" if version["current"]:
            click.echo(f"version {number} qualified, and is the one that plays now")
        case "qualified":
            click.echo(f"version {number} qualified; a newer one plays")
        case "failed":
            failed = [item for item in (report or {}).get("items", []) if item.get("status") == "failed"]
            for item in failed:
                click.echo(f"failed: {visible(str(item['sentence']))}")
                if item.get("advice"):
                    click.echo(f"        {visible(str(item['advice']))}")
            click.echo(f"version {number} did not qualify; the one before it, if any, plays on")
        case _:
            click.echo(
                f"version {number} could not be checked, which is the server's fault: it is kept, and your "
                "lecturer can have it checked again",
                err=True,
            )
