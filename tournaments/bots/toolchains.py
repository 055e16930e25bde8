"""Compilers that a confined build can use, and resolution of version managers' shims."""

import os
import shutil
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

from referee.process.confined_build import Toolchains
from referee.sandbox.runtime_paths import SHOWN_ALWAYS, is_there, needed_paths

SHIM_MANAGERS = ("pyenv", "rbenv", "nodenv", "jenv", "goenv", "asdf", "mise")
"""Version managers with a ``shims`` folder on PATH, whose ``which`` prints the program behind a shim."""
RUSTUP = "rustup"
"""Manager whose programs are links to itself, in the same folder; it has a ``which``, too."""
SHIM_LIMIT_S = 10.0


def behind_shim(program: str) -> str:
    """Return the program behind a version manager's shim, which costs 0.1 s and needs the whole manager.

    Returns the program itself if it is no shim, or its manager fails.
    """
    path = Path(program)
    command = _manager(path)
    if not command:
        return program
    try:
        done = subprocess.run(
            [command, "which", path.name], capture_output=True, text=True, timeout=SHIM_LIMIT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return program
    found = done.stdout.strip()
    return found if done.returncode == 0 and os.access(found, os.X_OK) else program


def _manager(path: Path) -> str | None:
    """Return the version manager of a shim; None if the program is no shim."""
    if path.parent.name == "shims":
        name = next((name for name in SHIM_MANAGERS if name in path.parent.parent.name), None)
        if name is None:
            return None
        beside = path.parent.parent / "libexec" / name
        return shutil.which(name) or (str(beside) if is_there(beside) else None)
    rustup = path.parent / RUSTUP
    if path.name != RUSTUP and is_there(rustup) and is_there(path) and path.samefile(rustup):
        return str(rustup)
    return None


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
