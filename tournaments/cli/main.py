"""The command `kalarena` and its subcommands."""

import codecs
import contextlib
import errno
import importlib
import io
import json
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from referee.version import VERSION
from tournaments.processes.process_settings import stopping_signals

COMMANDS = {
    "admin": ("tournaments.cli.admin", "Manage a server's course: roster, accounts, backup."),
    "challenge": ("tournaments.cli.remote.challenge", "Challenge a bot on a server to unrated games."),
    "connect": ("tournaments.cli.remote.connect", "Let a bot of this host play unrated games on a server."),
    "check": ("tournaments.cli.check", "Check a bot as a server would, with advice on each mistake."),
    "duel": ("tournaments.cli.duel", "Is the new version of a bot stronger than the old one?"),
    "gauntlet": ("tournaments.cli.gauntlet", "Where does a bot stand on the ladder of reference players?"),
    "new": ("tournaments.cli.new", "Begin a bot from a starter kit."),
    "serve": ("tournaments.cli.serve", "Run a course's server: submissions, practice, tournaments, pages."),
    "game": ("tournaments.cli.game", "Commands for the authors of games."),
    "solve": ("tournaments.cli.solve", "The exact value and the best first moves of small Kalah boards."),
    "doctor": ("tournaments.cli.doctor", "Report how well this host confines bots, and what would help."),
    "games": ("tournaments.cli.games", "List the games, their presets and options."),
    "perft": ("tournaments.cli.games", "Count move sequences, the test of a rule book."),
    "play": ("tournaments.cli.play", "Play one game between two bots."),
    "submit": ("tournaments.cli.remote.submit", "Submit a bot to a server, and follow its check there."),
    "tournament": ("tournaments.cli.tournament", "Run tournaments; tables, reports, marks, appeals."),
    "verify": ("tournaments.cli.verify", "Judge games again from their records."),
    "worker": ("tournaments.cli.worker", "Play games of a tournament that runs on another machine."),
}
"""Subcommand -> (module of the command, one line of help)."""

T = TypeVar("T")

DATA_VARIABLE, CONFIG_VARIABLE = "KALARENA_DATA", "KALARENA_CONFIG"
"""Environment variables for ``--data`` and ``--config`` of the commands that open a server's directory.  In a
container they are the same for all commands."""


def config_of_directory(context: click.Context, parameter: click.Parameter, value: T) -> T | None:
    """Return a configuration's path, but None for that of the environment if ``--data`` is another directory.

    KALARENA_CONFIG belongs to the directory of KALARENA_DATA, and may name the database of that server.
    """
    sources = (context.get_parameter_source("data"), context.get_parameter_source(str(parameter.name)))
    if sources != (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT):
        return value
    usual = os.environ.get(DATA_VARIABLE)
    is_same = usual and os.path.realpath(context.params["data"]) == os.path.realpath(usual)
    return value if is_same else None


config_option = click.option(
    "--config",
    type=click.Path(dir_okay=False, path_type=Path),
    envvar=CONFIG_VARIABLE,
    callback=config_of_directory,
    show_envvar=True,
    metavar="FILE",
    help="The server's configuration.  [default: DIR/server.toml, if it is there]",
)

ESCAPES = "kalarena-escapes"
"""Name of the error handler of standard output, for ``codecs``."""
SIGNALLED = 128
"""Exit status of a command that a signal ended, minus the number of the signal, as in shells."""
INTERRUPTED = SIGNALLED + signal.SIGINT
"""Exit status after Ctrl-C."""


class Fault(click.ClickException):
    """A failure of ours: exit status 1."""

    exit_code = 1


class Usage(click.ClickException):
    """Something the user can put right: exit status 2."""

    exit_code = 2


def print_message(text: str, *, newline: bool = True) -> None:
    """Print a message of a run on standard error.

    An error is ignored: the games go on if the reader has gone, the terminal was closed or the disk is full.
    """
    try:
        click.echo(text, nl=newline, err=True)
    except OSError:
        discard_unwritten_messages()


def discard_unwritten_messages() -> None:
    """Discard the text in the buffer of standard error, after a write that failed.

    Otherwise the next start of a worker process fails, too: it flushes the buffer.
    """
    with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
        descriptor = sys.stderr.fileno()
        kept, null = os.dup(descriptor), os.open(os.devnull, os.O_WRONLY)
        stack.callback(os.close, kept)
        stack.callback(os.close, null)
        stack.callback(os.dup2, kept, descriptor)
        os.dup2(null, descriptor)
        sys.stderr.flush()


@contextlib.contextmanager
def single_error(*kinds: type[BaseException]) -> Iterator[None]:
    """Raise the first error of a group by itself if it is of one of these kinds."""
    try:
        yield
    except BaseExceptionGroup as group:
        from tournaments.running.runner import first_error  # takes long to import

        leaf = first_error(group)
        if isinstance(leaf, kinds):
            raise leaf from group  # noqa: ASYNC123 - only its message is shown, and that is whole
        raise


class LazyGroup(click.Group):
    """A command group that loads its subcommands when used: `--help` must not load a database layer."""

    def __init__(self, *arguments: Any, commands_of: Mapping[str, tuple[str, str]], **options: Any) -> None:
        """``commands_of``: subcommand -> (module, one line of help).

        The module has the command as ``command``, or as ``SUBCOMMAND_command``.
        """
        super().__init__(*arguments, **options)
        self._known = commands_of

    def list_commands(self, _context: click.Context) -> list[str]:
        """Return all names, sorted."""
        return sorted(self._known)

    def get_command(self, _context: click.Context, name: str) -> click.Command | None:
        """Return the command of a name; None if there is none."""
        if name not in self._known:
            return None
        module = importlib.import_module(self._known[name][0])
        found = getattr(module, f"{name.replace('-', '_')}_command", None) or module.command
        assert isinstance(found, click.Command)
        return found

    def format_commands(self, _context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands in `--help`."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, about) for name, (_, about) in sorted(self._known.items())])


def _version(context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        click.echo(f"kalarena {VERSION}")
        context.exit()


def entry() -> None:
    """Run the console command."""
    for number in stopping_signals():
        signal.signal(number, _stop)  # until a game or tournament takes over
    sys.unraisablehook = _show_unraisable
    codecs.register_error(ESCAPES, _escaped)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors=ESCAPES)
    try:
        try:
            main()
        finally:
            if sys.stdout is not None:  # it is None if it was closed: `>&-`
                sys.stdout.flush()  # or the interpreter does it, and shows a traceback if it cannot
    except UnicodeEncodeError as error:
        if codecs.lookup(error.encoding) == codecs.lookup("utf-8"):
            raise
        click.echo(
            f"Error: {error.object[error.start : error.end]!r} cannot be part of a file's name in this "
            f"locale, whose encoding is {error.encoding}: set the environment variable LC_ALL=C.UTF-8",
            err=True,
        )
        sys.exit(Usage.exit_code)
    except OSError as error:
        if _is_of_working_directory(error):
            click.echo("Error: the working directory was deleted: change to another one with cd", err=True)
            sys.exit(Usage.exit_code)
        if not _is_of_output(error):
            raise
        # The output that could not be written is still buffered: discard it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if error.errno != errno.EPIPE:  # a reader such as `| head` has seen enough
            click.echo(f"Error: standard output: {error.strerror}", err=True)
        sys.exit(Fault.exit_code)


def _stop(number: int, _frame: object) -> None:
    """Exit with the status of a signal; the blocks that are left end their processes, such as a build."""
    sys.exit(SIGNALLED + number)


def _escaped(error: UnicodeError) -> tuple[str, int]:
    """Return characters that an output's encoding lacks as JSON writes them, so that JSON stays valid."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end


def _show_unraisable(unraisable: "sys.UnraisableHookArgs") -> None:
    """Ignore a Ctrl-C in a callback of the interpreter, where it has no effect; report all else as usual."""
    if not isinstance(unraisable.exc_value, SystemExit | KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)


def _is_of_working_directory(error: OSError) -> bool:
    """Return True if an error is one of ``os.getcwd()``, whose directory is not there any more."""
    if error.errno != errno.ENOENT or error.filename is not None:
        return False
    try:
        os.getcwd()  # noqa: PTH109
    except FileNotFoundError:
        return True
    return False


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

    Exit status: 0 done, 1 an internal failure, 2 bad usage or bad input, 130 stopped.  Some commands, such as
    check and verify, have more; their help lists them.
    """
