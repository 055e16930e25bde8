"""Message about the one-time compilation of a reference player's search, which takes a minute or so."""

import contextlib

import click

from sample_bots.catalog import BadOptionError, needs_kernels
from sample_bots.strong import kernels


def announce_compilation(*texts: str) -> None:
    """Print it on standard error if one of these bots is a reference player that must be compiled first."""
    for text in texts:
        with contextlib.suppress(BadOptionError):  # ``resolve_bot`` has a better message
            if needs_kernels(text) and not kernels.is_prepared():
                click.echo(f"compiling what {text} searches with, once; this takes a minute or so", err=True)
                return
