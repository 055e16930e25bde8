"""A command group that loads its subcommands when used: `--help` must not load a database layer."""

import importlib
from collections.abc import Mapping
from typing import Any

import click


class LazyGroup(click.Group):
    """``commands_of``: subcommand -> (module whose ``command`` it is, one line of help)."""

    def __init__(self, *arguments: Any, commands_of: Mapping[str, tuple[str, str]], **options: Any) -> None:
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
