"""Options for the confinement of bots, the same for every command that plays single games."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from referee.sandbox.detection import AUTO, MODES
from referee.sandbox.host_resources import default_memory_here

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
    default=lambda: default_memory_here(),
    show_default="by this host, see `kalarena doctor`",
    metavar="MB",
    help="Memory of all processes of a bot together.",
)


def sandbox_options(command: Command) -> Command:
    """Add both options to a command."""
    return sandbox_option(memory_option(command))
