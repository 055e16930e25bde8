"""The subcommands of `kalarena tournament`, which run tournaments and read their results.

Begin at ``run``, which shows the progress of ``live`` and the messages of ``outcome``.  May import all
layers.
"""

import click

from tournaments.cli.main import LazyGroup

_HERE = "tournaments.cli.tournament"

TOURNAMENT_COMMANDS = {
    "add": (f"{_HERE}.rulings", "Let another bot join, or a new version of one."),
    "compare": (f"{_HERE}.table", "Say whether one bot is stronger than another."),
    "export": (f"{_HERE}.export", "Write games and moves for other programs."),
    "journal": (f"{_HERE}.rulings", "Print what was ruled, oldest first."),
    "marks": (f"{_HERE}.marks", "Write the mark sheet."),
    "pair": (f"{_HERE}.rulings", "Fix or forbid pairings of a coming round."),
    "replay": (f"{_HERE}.rulings", "Have a game played again."),
    "report": (f"{_HERE}.report", "Make the report: pages with charts and replays."),
    "restore": (f"{_HERE}.rulings", "Take a ruling back."),
    "run": (f"{_HERE}.run", "Run a tournament, or go on with one."),
    "show": (f"{_HERE}.show", "Print a game: verdict, moves, standard error, files."),
    "table": (f"{_HERE}.table", "Print the table."),
    "verify": ("tournaments.cli.verify", "Judge all games again, and find what was changed."),
    "void": (f"{_HERE}.rulings", "Let a game count for nobody."),
    "withdraw": (f"{_HERE}.rulings", "Let a bot play no more."),
}
"""Subcommand -> (module with its ``NAME_command``, or ``command``; one line of help)."""


@click.group("tournament", cls=LazyGroup, commands_of=TOURNAMENT_COMMANDS)
def command() -> None:
    """Run tournaments, and make tables, reports and marks of their results."""
