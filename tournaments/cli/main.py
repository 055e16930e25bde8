"""The command `kalarena` and its subcommands."""

import errno
import io
import os
import signal
import sys

import click

from referee.version import VERSION
from tournaments.cli.lazy import LazyGroup

COMMANDS = {
    "admin": ("tournaments.cli.admin", "Manage a server's course: roster, accounts, backup."),
    "check": ("tournaments.cli.check", "Try a bot as a server would, and say what to put right."),
    "duel": ("tournaments.cli.duel", "Is the new version of a bot stronger than the old one?"),
    "gauntlet": ("tournaments.cli.gauntlet", "Where does a bot stand on the ladder of reference players?"),
    "new": ("tournaments.cli.new", "Begin a bot from a starter kit."),
    "serve": ("tournaments.cli.serve", "Run a course's server: submissions, practice, tournaments, pages."),
    "solve": ("tournaments.cli.solve", "The exact value and the best first moves of small Kalah boards."),
    "doctor": ("tournaments.cli.doctor", "Say how well this host can hold bots, and what would help."),
    "games": ("tournaments.cli.games", "List the games, their presets and options."),
    "perft": ("tournaments.cli.perft", "Count move sequences, the test of a rule book."),
    "play": ("tournaments.cli.play", "Play one game between two bots."),
    "submit": ("tournaments.cli.submit", "Submit a bot to a server, and follow its check there."),
    "tournament": ("tournaments.cli.tournament", "Run tournaments; tables, reports, marks, appeals."),
    "verify": ("tournaments.cli.verify", "Judge games again from their records."),
    "worker": ("tournaments.cli.worker", "Play games of a tournament that runs on another machine."),
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
        click.echo(f"kalarena {VERSION}")
        context.exit()


def entry() -> None:
    """Run the console command."""
    signal.signal(signal.SIGINT, lambda *_: sys.exit(INTERRUPTED))  # until a game or tournament takes over
    sys.unraisablehook = _say_what_is_no_end
    try:
        try:
            main()
        finally:
            if sys.stdout is not None:  # it is None if it was closed: `>&-`
                sys.stdout.flush()  # or the interpreter does it, and shows a traceback if it cannot
    except OSError as error:
        if not _is_of_output(error):
            raise
        # The output that could not be written is still buffered: discard it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if error.errno != errno.EPIPE:  # a reader such as `| head` has seen enough
            click.echo(f"Error: standard output: {error.strerror}", err=True)
        sys.exit(Fault.exit_code)


def _say_what_is_no_end(unraisable: "sys.UnraisableHookArgs") -> None:
    """Ignore a Ctrl-C that came while the interpreter ran a callback of its own, where it has no effect;
    report everything else as always.
    """
    if not isinstance(unraisable.exc_value, SystemExit | KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)


def _is_of_output(error: OSError) -> bool:
    """Return True if an error is one of writing to standard output, which then still holds the text."""
    if error.filename is not None or sys.stdout is None:
        return False
    if isinstance(sys.stdout.buffer, io.RawIOBase):  # PYTHONUNBUFFERED: nothing is ever left there
        return True
    try:
        sys.stdout.flush()
    except OSError:
        return True
    return False


@click.group(cls=LazyGroup, commands_of=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_version, help="Print the version."
)
def main() -> None:
    """Referee, reference players and tournaments for board-game bots.

    Exit status: 0 done, 1 a failure of ours, 2 bad usage or bad input, 130 stopped.
    """
