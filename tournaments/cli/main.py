"""The command `kalarena` and its subcommands."""

import signal
import sys

import click

from tournaments.cli.lazy import LazyGroup

COMMANDS = {
    "doctor": ("tournaments.cli.doctor", "Say how well this host can hold bots, and what would help."),
    "games": ("tournaments.cli.games", "List the games, their presets and options."),
    "perft": ("tournaments.cli.perft", "Count move sequences, the test of a rule book."),
    "play": ("tournaments.cli.play", "Play one game between two bots."),
    "tournament": ("tournaments.cli.tournament", "Run tournaments; tables, reports, marks, appeals."),
    "verify": ("tournaments.cli.verify", "Judge games again from their records."),
}
"""Subcommand -> (module whose ``command`` it is, one line of help)."""


INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells have it: 128 + SIGINT."""


class Fault(click.ClickException):
    """A failure of ours: exit status 1."""

    exit_code = 1


class Usage(click.ClickException):
    """Something the user can put right: exit status 2."""

    exit_code = 2


def _version(context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        from importlib import metadata

        click.echo(f"kalarena {metadata.version('kalarena')}")
        context.exit()


def entry() -> None:
    """What the console command runs."""
    signal.signal(signal.SIGINT, lambda *_: sys.exit(INTERRUPTED))  # until a game or tournament takes over
    main()


@click.group(cls=LazyGroup, commands_of=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_version, help="Print the version."
)
def main() -> None:
    """Referee, reference players and tournaments for board-game bots.

    Exit status: 0 done, 1 a failure of ours, 2 bad usage or bad input, 130 stopped.
    """
