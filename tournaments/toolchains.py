"""Which compilers of this host a confined build sees: those of /usr, and those that our PATH leads to."""

import os
import shutil
import sys
from functools import lru_cache
from pathlib import Path

from referee.confined_build import Toolchains
from referee.needs import SHOWN_ALWAYS, needed_paths
from tournaments.shims import behind_shim

COMPILERS = (
    *("cc", "gcc", "g++", "clang", "clang++", "cmake", "make", "ninja"),
    *("javac", "java", "ant", "mvn", "gradle", "kotlinc", "scalac"),
    *("rustc", "cargo", "go", "zig", "nim", "dmd", "ghc", "dotnet", "swiftc", "node", "tsc"),
)
"""Programs that a build command may run by name, from a makefile for example."""


def find_program(word: str) -> str | None:
    """The program that the first word of a build command names: a path as it is, else what PATH leads to.

    ``python3`` is the interpreter that we run with, as for bots: another one may be a slow shim.
    """
    if os.sep in word:
        return word
    if word in ("python", "python3"):
        return sys.executable
    found = shutil.which(word)
    return found and behind_shim(os.path.abspath(found))  # noqa: PTH100 - PATH may hold relative folders


def toolchains_for(program: str) -> Toolchains:
    """What must be seen for a build command's program, and for the compilers that it may run.

    A program that the bot's author named by its path is seen only if our PATH leads there, too.
    """
    seen: dict[Path, None] = {}
    folders: dict[str, None] = {}
    ours = ((each, True) for each in _compilers(os.environ.get("PATH", "")))
    for path, trusted in [(program, program == sys.executable), *ours]:
        place = Path(path)
        if not place.is_absolute() or any(place.is_relative_to(shown) for shown in SHOWN_ALWAYS):
            continue
        needed = needed_paths(place, trusted=trusted)
        seen.update(dict.fromkeys(needed))
        if needed:
            folders[str(place.parent)] = None
    return Toolchains(tuple(seen), tuple(folders))


@lru_cache(maxsize=1)
def _compilers(_path: str) -> tuple[str, ...]:
    """The compilers that there are.  Kept for as long as PATH is the same: to ask version managers takes
    0.1 s each.
    """
    return tuple(filter(None, map(find_program, COMPILERS)))
