"""The sample bots by name: spec text -> the command that runs the bot."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sample_bots.minimax import DEFAULT_DEPTH
from sample_bots.options import BadOptionError, parse_depth, parse_seed
from sample_bots.search import MAX_DEPTH

__all__ = [
    "SAMPLE_BOTS",
    "BadOptionError",
    "SampleBot",
    "rule_book_directories",
    "sample_bot_command",
    "sample_bot_files",
]

_HERE = Path(__file__).resolve().parent

_PYTHON_FLAGS = ("-I", "-S")
"""Isolated: no PYTHON* variable and nothing of the current directory changes what runs.  Without
site-packages, which no sample bot needs: starts sooner."""


@dataclass(frozen=True)
class SampleBot:
    """One name that the spec text of a sample bot can begin with."""

    about: str
    """One line for people."""
    script: tuple[str, ...]
    """The file in this folder to run, and its first arguments."""
    option: str = ""
    """How the option is shown to people, for example ``DEPTH``; empty if there is none."""
    parse: Callable[[str], int] | None = None
    """Reads the option, raises BadOptionError; None if there is no option."""


SAMPLE_BOTS: dict[str, SampleBot] = {
    "first_legal": SampleBot(
        "plays its first legal move (in Kalah the lowest pit with seeds); the bot to start from",
        ("launch.py", "first_legal"),
    ),
    "random": SampleBot(
        "plays random moves, the same ones again with the same SEED",
        ("launch.py", "random_bot"),
        "SEED",
        parse_seed,
    ),
    "greedy": SampleBot("plays the move that looks best at once", ("launch.py", "greedy")),
    "minimax": SampleBot(
        f"looks DEPTH plies ahead, 1 to {MAX_DEPTH}, default {DEFAULT_DEPTH}",
        ("launch.py", "minimax"),
        "DEPTH",
        parse_depth,
    ),
}


def sample_bot_command(spec: str) -> list[str] | None:
    """The command that runs the bot of a spec text, ``NAME`` or ``NAME:OPTION``, in any directory.

    None if there is no sample bot of that name.  Raises BadOptionError.
    """
    name, separator, option = spec.partition(":")
    bot = SAMPLE_BOTS.get(name)
    if bot is None:
        return None
    script, *arguments = bot.script
    command = [sys.executable, *_PYTHON_FLAGS, str(_HERE / script), *arguments]
    if separator:
        if bot.parse is None:
            raise BadOptionError(f"{spec!r}: {name} takes no option")
        try:
            command.append(str(bot.parse(option)))
        except BadOptionError as error:
            raise BadOptionError(f"{spec!r}: {error}") from None
    return command


def rule_book_directories() -> list[Path]:
    """What the sample bots read beside their own directory: the protocol's and the referee's packages."""
    return [_HERE.parent / name for name in ("protocol", "referee")]


def sample_bot_files() -> list[Path]:
    """The files that the sample bots consist of, sorted: when one changes, a bot may play differently."""
    return sorted(_HERE.glob("*.py"))
