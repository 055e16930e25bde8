"""Telling why nothing happens for a while: what a reference player searches with is compiled, once."""

import contextlib

import click

from sample_bots.catalog import BadOptionError, needs_kernels
from sample_bots.strong import kernels


def tell_of_compiling(*texts: str) -> None:
    """Say so on standard error if one of these bots is a reference player that has to be compiled first."""
    for text in texts:
        with contextlib.suppress(BadOptionError):  # ``resolve_bot`` says that better
            if needs_kernels(text) and not kernels.is_prepared():
                click.echo(f"compiling what {text} searches with, once; this takes a minute or so", err=True)
                return
