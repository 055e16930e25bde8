"""The options of how bots are confined, the same for every command that plays single games."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from referee.limits import DEFAULT_MEMORY_MB
from referee.probe import AUTO, MODES

Command = TypeVar("Command", bound=Callable[..., Any])

sandbox_option = click.option(
    "--sandbox",
    type=click.Choice(MODES),
    default=AUTO,
    show_default=True,
    help="How bots are confined: as well as this host can (see `kalarena doctor`), not at all, or well.",
)
memory_option = click.option(
    "--memory-mb",
    type=int,
    default=DEFAULT_MEMORY_MB,
    show_default=True,
    metavar="MB",
    help="Memory of all processes of a bot together.",
)


def sandbox_options(command: Command) -> Command:
    """Give a command both."""
    return sandbox_option(memory_option(command))
