"""The subcommands of `kalarena admin`, which manage a server's course.

Begin at ``opening``, which opens the course for all of them.  May import all layers.
"""

import click

from tournaments.cli.main import LazyGroup

ADMIN_COMMANDS = {
    "add": ("tournaments.cli.admin.accounts", "Add an account, and print its link."),
    "adopt": ("tournaments.cli.admin.backup", "Let a data directory take the place of another one."),
    "backup": ("tournaments.cli.admin.backup", "Write all that a server keeps into one file."),
    "mail": ("tournaments.cli.admin.mail", "Try the mail server, and decide about mails that wait."),
    "move": ("tournaments.cli.admin.backup", "Move the databases from SQLite to PostgreSQL."),
    "reset": ("tournaments.cli.admin.accounts", "Print a link for a new password."),
    "restore": ("tournaments.cli.admin.backup", "Make a data directory from a backup."),
    "roster": ("tournaments.cli.admin.roster", "Import a roster."),
    "token": ("tournaments.cli.admin.accounts", "Print a new API token of an account."),
}
"""Subcommand -> (module with it, one line of help)."""


@click.group("admin", cls=LazyGroup, commands_of=ADMIN_COMMANDS)
def command() -> None:
    """Manage a server's course from the command line, also while the server runs."""
