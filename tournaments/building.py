"""Making a bot: its build command, and whether what that made is still what its sources say."""

import contextlib
import os
import shlex
import signal
import subprocess
from collections.abc import Collection, Sequence
from pathlib import Path

from referee.sentences import visible

BUILD_LIMIT_S = 120.0
"""A build command may take this long; a Java or C++ bot of a course compiles in seconds."""
BUILD_LINES_SHOWN = 5

_LANGUAGES = """
    .java .kt .kts .scala .groovy .clj .c .h .cc .cpp .cxx .hh .hpp .hxx .rs .go .zig .nim .d .cs .fs .vb
    .swift .ts .tsx .hs .ml .mli .lisp .scm .pas .f90 .adb .ads .s .asm
"""
SOURCES = frozenset(_LANGUAGES.split())
"""Suffixes of what is compiled.  Only these are looked at: a build may write other files after its
products."""


class BuildError(Exception):
    """A bot could not be built; the message says what went wrong."""


def is_outdated(directory: Path, products: Sequence[str], skipped: Collection[str] = ()) -> bool:
    """Whether a source file is newer than the oldest product; all products are there.

    ``skipped`` are names of folders that are not looked into.
    """
    oldest = min((directory / name).stat().st_mtime_ns for name in products)
    for folder, folders, names in os.walk(directory):
        folders[:] = set(folders) - set(skipped)
        for name in names:
            path = Path(folder, name)
            if path.suffix.lower() in SOURCES:
                with contextlib.suppress(OSError):  # a link to nowhere, as editors leave them
                    if path.stat().st_mtime_ns > oldest:
                        return True
    return False


def build(directory: Path, command: list[str]) -> None:
    """Run a bot's build command.  Raises BuildError with the end of what it printed."""
    shown = shlex.join(command)
    try:
        process = subprocess.Popen(
            command,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # so that what it starts can be ended with it
        )
    except OSError as error:
        raise BuildError(
            f"{directory}: its build command {shown!r} cannot be run: {error.strerror}"
        ) from error
    try:
        printed, _ = process.communicate(timeout=BUILD_LIMIT_S)
    except subprocess.TimeoutExpired as error:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()  # until nobody holds its output open any more
        raise BuildError(f"{directory}: its build command {shown!r} took over {BUILD_LIMIT_S:g} s") from error
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
    if process.returncode != 0:
        end = printed.decode("utf-8", "backslashreplace").strip().splitlines()[-BUILD_LINES_SHOWN:]
        raise BuildError(
            f"{directory}: its build command {shown!r} ended with exit status {process.returncode}: "
            + " | ".join(map(visible, end))
        )
