"""The sample bots by name: spec text -> the command that runs the bot."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sample_bots.minimax import DEFAULT_DEPTH
from sample_bots.options import (
    HIGHEST_LEVEL,
    LOWEST_LEVEL,
    BadOptionError,
    parse_depth,
    parse_level,
    parse_seconds,
    parse_seed,
)
from sample_bots.search import MAX_DEPTH
from sample_bots.strong import kernels

__all__ = [
    "SAMPLE_BOTS",
    "BadOptionError",
    "SampleBot",
    "needs_kernels",
    "rule_book_directories",
    "sample_bot_command",
    "sample_bot_files",
    "searches",
]

_HERE = Path(__file__).resolve().parent

_ISOLATED = ("-I",)
"""No PYTHON* variable and nothing of the current directory changes what runs."""
_ALONE = (*_ISOLATED, "-S")
"""Without site-packages, too, which only compiled searches need: starts sooner."""

LOWEST_SEARCH = 5
"""The lowest level of any game's ladder that searches with an engine."""


@dataclass(frozen=True)
class SampleBot:
    """One name that the spec text of a sample bot can begin with."""

    about: str
    """One line for people."""
    script: tuple[str, ...]
    """The file in this folder to run, and its first arguments."""
    option: str = ""
    """How the option is shown to people, for example ``DEPTH``; empty if there is none."""
    parse: Callable[[str], object] | None = None
    """Reads the option, raises BadOptionError; None if there is no option."""
    must: bool = False
    """Whether the option has to be given."""
    searches: Callable[[str], bool] = lambda _option: False
    """Whether the bot of an option searches with the compiled kernels, where they can be had."""
    folders: tuple[str, ...] = ()
    """The folders in this one that it consists of, beside the files that lie here."""


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
    "ladder": SampleBot(
        f"the reference player of LEVEL: {LOWEST_LEVEL}, random moves, to {HIGHEST_LEVEL}, the strongest",
        ("launch.py", "searching", "ladder"),
        "LEVEL",
        parse_level,
        must=True,
        searches=lambda option: parse_level(option)[0] >= LOWEST_SEARCH,
        folders=("ladder", "strong"),
    ),
    "strong": SampleBot(
        "the strongest player, in all the time that it has, at most SECONDS a move",
        ("launch.py", "searching", "strong"),
        "SECONDS",
        parse_seconds,
        searches=lambda _option: True,
        folders=("strong",),
    ),
    "swap_happy": SampleBot(
        "takes the other seat whenever it may, then plays its last legal move", ("launch.py", "swap_happy")
    ),
}


def sample_bot_command(spec: str, *, compiled: bool = True) -> list[str] | None:
    """The command that runs the bot of a spec text, ``NAME`` or ``NAME:OPTION``, in any directory.

    With ``compiled``, a bot that searches does so with compiled kernels, where these can be had.  None if
    there is no sample bot of that name.  Raises BadOptionError.
    """
    found = _find(spec)
    if found is None:
        return None
    bot, option = found
    script, *arguments = bot.script
    if not (compiled and needs_kernels(spec)):
        return [sys.executable, *_ALONE, str(_HERE / script), *arguments, *option]
    module, *rest = arguments
    kept = ["--kernels", str(kernels.directory())]
    return [sys.executable, *_ISOLATED, str(_HERE / script), module, *kept, *rest, *option]


def searches(spec: str) -> bool:
    """Whether the bot of a spec text uses its time to search.  Raises BadOptionError."""
    found = _find(spec)
    return found is not None and found[0].searches("".join(found[1]))


def needs_kernels(spec: str) -> bool:
    """Whether the bot of a spec text is one that searches with compiled kernels, and these can be had."""
    return searches(spec) and kernels.can_compile()


def _find(spec: str) -> tuple[SampleBot, list[str]] | None:
    """The bot of a spec text, and its option, if there is one.  Raises BadOptionError."""
    name, separator, option = spec.partition(":")
    bot = SAMPLE_BOTS.get(name)
    if bot is None:
        return None
    if not separator and not bot.must:
        return bot, []
    if bot.parse is None:
        raise BadOptionError(f"{spec!r}: {name} takes no option")
    try:
        value = bot.parse(option)
    except BadOptionError as error:
        raise BadOptionError(f"{spec!r}: {error}") from None
    return bot, [str(value) if isinstance(value, int) else option]


def rule_book_directories() -> list[Path]:
    """What the sample bots read beside their own directory: the protocol's and the referee's packages."""
    return [_HERE.parent / name for name in ("protocol", "referee")]


def sample_bot_files(spec: str = "") -> list[Path]:
    """The files that a sample bot consists of, sorted: when one changes, it may play differently.

    Without a spec text those that all of them share.
    """
    found = _find(spec)
    files = list(_HERE.glob("*.py"))
    for folder in found[0].folders if found else ():
        files += [path for path in (_HERE / folder).iterdir() if path.suffix in (".py", ".toml", ".json")]
    return sorted(files)
