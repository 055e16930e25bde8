"""Making a bot: its build command, and whether what that made is still what its sources say."""

import contextlib
import os
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Collection, Sequence
from pathlib import Path

from referee.confined_build import NotBuiltError, build_confined
from referee.errors import RefereeError
from referee.sandbox import Sandbox
from referee.sentences import visible
from tournaments.manifest import MANIFEST_FILE
from tournaments.products import ProductError, checked, product_names, put
from tournaments.toolchains import find_program, toolchains_for

BUILD_LIMIT_S = 120.0
"""A build command may take this long; a Java or C++ bot of a course compiles in seconds."""
BUILD_LINES_SHOWN = 5
GROUP_GONE_S = 0.2
"""A kill takes effect within milliseconds."""
PRINTED_BYTES_READ = 64 * 1024
LONGEST_LINE_SHOWN = 300
"""A line of what a build printed is cut after so many characters: a long command line of a makefile's."""

_LANGUAGES = """
    .java .kt .kts .scala .groovy .clj .c .h .cc .cpp .cxx .hh .hpp .hxx .rs .go .zig .nim .d .cs .fs .vb
    .swift .ts .tsx .hs .ml .mli .lisp .scm .pas .f90 .adb .ads .s .asm
"""
SOURCES = frozenset(_LANGUAGES.split())
"""Suffixes of what is compiled.  Only these are looked at: a build may write other files after its
products."""
KEPT = frozenset({*SOURCES, MANIFEST_FILE, ".git"})
"""What no confined build may write: its own sources, what says how it is built, and what runs commands."""


class BuildError(Exception):
    """A bot could not be built; the message says what went wrong."""

    def __init__(self, message: str, *, is_ours: bool = False, printed: str = "") -> None:
        super().__init__(message)
        self.is_ours = is_ours
        """Whether this host failed, and not the bot."""
        self.printed = printed
        """What the build command printed: its end, or its beginning and its end."""


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


def build(
    directory: Path,
    command: list[str],
    products: Sequence[str] = (),
    sandbox: Sandbox | None = None,
    within_s: float | None = None,
) -> None:
    """Run a bot's build command.  Raises BuildError with the end of what it printed.

    It may take ``within_s``, or ``BUILD_LIMIT_S`` if that is less.

    With a sandbox, which must be one that confines, it is run there, in a copy of the directory, and of what
    it made only the products come back.  Without one it is run as any command.
    """
    limit_s = BUILD_LIMIT_S if within_s is None else min(within_s, BUILD_LIMIT_S)
    if sandbox is None:
        _build_bare(directory, command, limit_s)
    else:
        _build_in(sandbox, directory, command, products, limit_s)


def _build_in(
    sandbox: Sandbox, directory: Path, command: list[str], products: Sequence[str], limit_s: float
) -> None:
    shown = shlex.join(command)
    program = find_program(command[0])
    if program is None:
        raise BuildError(
            f"{directory}: its build command {shown!r} cannot be run: {command[0]} is not on PATH"
        )
    try:
        names = product_names(directory, products, KEPT)
        parcels = build_confined(
            directory,
            [program, *command[1:]],
            names,
            sandbox,
            within_s=limit_s,
            toolchains=toolchains_for(program),
        )
        put(directory, checked(parcels, names, KEPT))
    except NotBuiltError as error:
        raise BuildError(
            f"{directory}: its build command {shown!r} {error}" + _end_of(error.printed),
            printed=error.printed,
        ) from error
    except ProductError as error:
        raise BuildError(
            f"{directory}: what its build command {shown!r} makes cannot be taken: {error}"
        ) from error
    except RefereeError as error:
        raise BuildError(
            f"{directory}: it could not be built, which is this host's fault, not the bot's: {error}",
            is_ours=True,
        ) from error
    except OSError as error:
        raise BuildError(
            f"{directory}: what its build command {shown!r} made could not be kept: {error.strerror}",
            is_ours=True,
        ) from error


def _end_of(printed: str) -> str:
    """The last lines of what a build printed, to end a sentence."""
    lines = [visible(line[:LONGEST_LINE_SHOWN]) for line in printed.strip().splitlines()[-BUILD_LINES_SHOWN:]]
    return ": " + " | ".join(lines) if lines else ""


def _build_bare(directory: Path, command: list[str], limit_s: float) -> None:
    shown = shlex.join(command)
    # Into a file: a pipe would be held open by what the command leaves running in a session of its own.
    with tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(
                command,
                cwd=directory,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # so that what it starts can be ended with it
            )
        except OSError as error:
            raise BuildError(
                f"{directory}: its build command {shown!r} cannot be run: {error.strerror}"
            ) from error
        try:
            status = process.wait(limit_s)
        except subprocess.TimeoutExpired as error:
            raise BuildError(f"{directory}: its build command {shown!r} took over {limit_s:g} s") from error
        finally:
            _end_group(process)
        if status != 0:
            output.seek(max(0, output.seek(0, os.SEEK_END) - PRINTED_BYTES_READ))
            printed = output.read().decode("utf-8", "backslashreplace")
            raise BuildError(
                f"{directory}: its build command {shown!r} ended with exit status {status}"
                + _end_of(printed),
                printed=printed,
            )


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and its group, and wait a moment until they are gone."""
    until = time.monotonic() + GROUP_GONE_S
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        while time.monotonic() < until:  # where nobody reaps orphans, it would be in vain
            os.killpg(process.pid, 0)
            time.sleep(0.001)
    process.wait()
