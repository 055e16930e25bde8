"""Compilers that a confined build can use."""

import os
import shutil
import sys
from functools import lru_cache
from pathlib import Path

from referee.process.confined_build import Toolchains
from referee.sandbox.runtime_paths import SHOWN_ALWAYS, behind_shim, needed_paths

COMPILERS = (
    *("cc", "gcc", "g++", "clang", "clang++", "cmake", "make", "ninja"),
    *("javac", "java", "ant", "mvn", "gradle", "kotlinc", "scalac"),
    *("rustc", "cargo", "go", "zig", "nim", "dmd", "ghc", "dotnet", "swiftc", "node", "tsc"),
)
"""Programs that a build command may run by name, from a makefile for example."""


def find_program(word: str) -> str | None:
    """Return the program for the first word of a command in a manifest: a path unchanged, else that on PATH.

    ``python3`` is the current interpreter: another one may be a slow shim, or missing.
    """
    if os.sep in word:
        return word
    if word in ("python", "python3"):
        return sys.executable
    found = shutil.which(word)
    return found and behind_shim(os.path.abspath(found))  # noqa: PTH100 - PATH may hold relative folders


def toolchains_for(program: str) -> Toolchains:
    """Return the paths that a build command's program, and the compilers that it may run, need.

    A program that the bot's author named by its path is visible only if it is on PATH, too.
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
    """Return the available compilers.

    They are cached for as long as PATH is unchanged: a query of a version manager takes 0.1 s.
    """
    return tuple(filter(None, map(find_program, COMPILERS)))
