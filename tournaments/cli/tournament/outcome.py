"""Outcome of a run on the command line: its results, and the messages at its end."""

import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import click
from click.core import ParameterSource

from referee.judge.verdict_text import visible
from tournaments.cli.tournament.results import terminal_width
from tournaments.reporting.tournament_directory import TournamentDirectory
from tournaments.reporting.tournament_results import TournamentResults
from tournaments.running.runner import RunReport

PROGRAM = "kalarena"
PROBLEM_LINES = 20
"""Most games with a problem of one kind that are listed; further ones are counted, as most share a reason."""


Results = TypeVar("Results", bound=TournamentResults)


@dataclass(frozen=True)
class Outcome(Generic[Results]):
    """Outcome of a run that is over, or was stopped."""

    results: Results
    report: RunReport
    directory: TournamentDirectory
    interrupted: bool = False
    """True if a signal stopped it."""
    changed: Sequence[str] = ()
    """Names of bots whose files changed during the run."""

    def text(self, *, quiet: bool) -> str:
        """Return the table, the location of the files and, unless ``quiet``, the next commands."""
        table = self.results.render("text", terminal_width())
        lines = [f"results  {self.directory.store_path}", f"report   {self.directory.report_path}"]
        if (head := self.results.head) is not None:
            lines.insert(0, f"head     {head.digest} (entry {head.number})")
        if not quiet:
            lines += [f"next     {command}" for command in self.next_commands()]
        return "\n\n".join([table, "\n".join(lines)])

    def next_commands(self) -> Iterator[str]:
        """Yield the commands that a lecturer needs now, each with a comment."""
        directory = str(self.directory.path)
        yield f"{shlex.join([program(), 'tournament', 'report', directory])}  # pages to hand out"
        faults = sum(game.fault is not None for game in self.results.games)
        if faults:
            what = "the fault" if faults == 1 else f"the {faults} faults"
            yield f"{shlex.join([program(), 'verify', directory])}  # judges all games again, {what} too"

    def problem_lines(self) -> Iterator[str]:
        """Yield a line for each changed bot, and for each game that could not be played or cleaned up.

        Of many games only the first have lines.
        """
        for name in self.changed:
            yield (
                f"the files of {visible(name)} changed during the run (were they edited, or does the bot "
                "write into its own folder?): the changed bot may have played some of the games; to play all "
                "games again, use another --out"
            )
        warned = list(self.report.warnings.items())
        for key, warnings in warned[:PROBLEM_LINES]:
            yield f"game {key} has its result, but {visible('; '.join(warnings))}"
        if len(warned) > PROBLEM_LINES:
            yield f"and {len(warned) - PROBLEM_LINES} more games could not be cleaned up"
        games = list(self.report.unplayed.items())
        for key, why in games[:PROBLEM_LINES]:
            yield f"game {key} could not be played, and counts for nobody: {why}"
        if len(games) > PROBLEM_LINES:
            yield f"and {len(games) - PROBLEM_LINES} more games could not be played"

    def stopped(self, command: str = "the same command") -> str:
        """Return the number of games that are left after an interruption; ``command`` plays them."""
        missing, total = self.report.missing, self.report.total
        return f"stopped with {missing} of {total} games to play; {command} goes on:"

    def missing(self) -> str:
        """Return the number of games that could not be played."""
        missing, total = self.report.missing, self.report.total
        return f"{missing} of {total} games have no result; the same command tries them again"


def program() -> str:
    """Return the command for this program: its name if the shell finds it, else the path of the call."""
    called = Path(sys.argv[0])
    if called.name != PROGRAM or not called.exists():  # called as a module, or by another program
        return PROGRAM
    found = shutil.which(PROGRAM)
    return PROGRAM if found is not None and Path(found).samefile(called) else str(called)


def same_command(
    context: click.Context, subcommand: Sequence[str] = ("tournament", "run"), **also: str
) -> str:
    """Return the command that was given, with its arguments, for a shell.

    ``also`` are options, by the names of their parameters, that are added whether they were given or not.
    """
    options: list[str] = []
    arguments: list[str] = []
    for parameter in context.command.params:
        name = parameter.name or ""
        if name not in also and context.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
            continue
        value = also.get(name, str(context.params[name]))
        if isinstance(parameter, click.Argument):
            arguments.append(value)
        elif isinstance(parameter, click.Option):
            options += [parameter.opts[0]] if parameter.is_flag else [parameter.opts[0], value]
    words = [*arguments, *options]
    if any(argument.startswith("-") for argument in arguments):
        words = [*options, "--", *arguments]
    return shlex.join([program(), *subcommand, *words])
