"""Builds of bots: running the build command, and detecting outdated products."""

import contextlib
import os
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Collection, Sequence
from pathlib import Path

from referee.errors import RefereeError
from referee.judge.verdict_text import visible
from referee.process.confined_build import NotBuiltError, build_confined
from referee.sandbox.bubblewrap import Sandbox
from referee.sandbox.runtime_paths import first_line
from tournaments.bots.build_products import ProductError, check_products, product_names, write_products
from tournaments.bots.errors import BuildError
from tournaments.bots.manifest import MANIFEST_FILE
from tournaments.bots.toolchains import find_program, toolchains_for
from tournaments.processes.process_settings import stopping_deferred

BUILD_LIMIT_S = 120.0
"""Time limit of a build command in seconds; a Java or C++ bot of a course compiles in seconds."""
BUILD_LINES_SHOWN = 5
GROUP_GONE_S = 0.2
"""Seconds of waiting after a kill, which takes effect within milliseconds."""
PRINTED_BYTES_READ = 64 * 1024
LONGEST_LINE_SHOWN = 300
"""Characters of a line of a build's output that are shown; command lines of makefiles can be long."""

_LANGUAGES = """
    .java .kt .kts .scala .groovy .clj .c .h .cc .cpp .cxx .hh .hpp .hxx .rs .go .zig .nim .cs .fs .vb
    .swift .ts .tsx .hs .lhs .ml .mli .lisp .scm .pas .f90 .adb .ads .s .asm .inl .ipp .tpp .inc .cu .cuh
    .mm .pyx .pxd .dart .erl
"""
SOURCES = frozenset(_LANGUAGES.split())
"""Suffixes of source files.  Others are not considered: a build may write them after its products.

The language D has the suffix .d of the lists of dependencies that cargo and C compilers write.
"""
SHELLS = frozenset({"sh", "bash", "dash", "ksh", "zsh"})
"""Programs that take CR for a part of the words in a script."""
KEPT = frozenset({*SOURCES, MANIFEST_FILE, ".git"})
"""Files that no confined build may write: sources, the manifest, and files that run commands."""

OTHERS_NS, SOURCES_NS = 946_684_801 * 10**9, 946_684_802 * 10**9
"""Modification times of a copy's files, in nanoseconds since 1970.

They are in 2000: zip archives have no times before 1980, and a build that makes one would fail.
"""


def make_sources_newest(directory: Path) -> None:
    """Set the times of the files of a copy, which has no times of its own, so that sources are the newest.

    The bot is then built from its sources, and not from object files of an earlier build.
    """
    for folder, _, names in os.walk(directory):
        for name in names:
            path = Path(folder, name)
            time_ns = SOURCES_NS if path.suffix.lower() in SOURCES else OTHERS_NS
            os.utime(path, ns=(time_ns, time_ns), follow_symlinks=False)


def is_outdated(directory: Path, products: Sequence[str], skipped: Collection[str] = ()) -> bool:
    """Return whether a source file is newer than the oldest product; all products must exist.

    A product that is a directory is as old as its newest file; a build that overwrites a file does not change
    the directory's own time.  Directories without files are ignored, unless there are no other products.
    ``skipped`` are names of folders that are not searched.
    """
    made_at_ns = [max(times) for name in products if (times := _file_times_ns(directory / name))]
    oldest = min(made_at_ns, default=0)
    for folder, folders, names in os.walk(directory):
        folders[:] = set(folders) - set(skipped)
        for name in names:
            path = Path(folder, name)
            if path.suffix.lower() in SOURCES:
                with contextlib.suppress(OSError):  # a broken link, as editors leave them
                    if path.stat().st_mtime_ns > oldest:
                        return True
    return False


def _file_times_ns(product: Path) -> list[int]:
    files = [path for path in product.rglob("*") if path.is_file()] if product.is_dir() else [product]
    return [path.stat().st_mtime_ns for path in files]


def build(
    directory: Path,
    command: list[str],
    products: Sequence[str] = (),
    sandbox: Sandbox | None = None,
    within_s: float | None = None,
) -> None:
    """Run a bot's build command.  Raises BuildError with the end of its output.

    The command may take ``within_s`` seconds, and ``BUILD_LIMIT_S`` at most.

    With a sandbox, which must confine, the command is run there, in a copy of the directory, and only its
    products are copied back.  Without a sandbox it is run like any command.
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
    _check_line_ends(directory, command)
    if program is None:
        raise BuildError(
            f"{directory}: its build command {shown!r} cannot be run: {command[0]} is not on PATH"
        )
    try:
        names = product_names(directory, products, KEPT)
        artifacts = build_confined(
            directory,
            [program, *command[1:]],
            names,
            sandbox,
            within_s=limit_s,
            toolchains=toolchains_for(program),
        )
        write_products(directory, check_products(artifacts, names, KEPT))
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
    """Return the last lines of a build's output, to end a sentence."""
    lines = [visible(line[:LONGEST_LINE_SHOWN]) for line in printed.strip().splitlines()[-BUILD_LINES_SHOWN:]]
    return ": " + " | ".join(lines) if lines else ""


def _check_line_ends(directory: Path, command: Sequence[str]) -> None:
    """Raise BuildError for a script with the line ends of Windows that the kernel or a shell would run.

    Their own message is "not found".  Only files of the bot are read: a device could block.
    """
    for word in command[:2] if Path(command[0]).name in SHELLS else command[:1]:
        path = Path(os.path.realpath(directory / word))
        if not path.is_relative_to(os.path.realpath(directory)) or not os.path.isfile(path):  # noqa: PTH113
            continue
        line = first_line(path)
        if line.startswith(b"#!") and line.endswith(b"\r"):
            raise BuildError(
                f"{directory}: its build command {shlex.join(command)!r} cannot be run: the lines of "
                f"{visible(word)!r} end in CR LF, as on Windows: save it with LF"
            )


def _build_bare(directory: Path, command: list[str], limit_s: float) -> None:
    _check_line_ends(directory, command)
    shown = shlex.join(command)
    # Into a file: processes that the command leaves running in another session would hold a pipe open.
    with tempfile.TemporaryFile() as output:
        with contextlib.ExitStack() as stack:
            with stopping_deferred():
                try:
                    process = subprocess.Popen(
                        command,
                        cwd=directory,
                        stdin=subprocess.DEVNULL,
                        stdout=output,
                        stderr=subprocess.STDOUT,
                        start_new_session=True,  # so that its child processes can be ended with it
                    )
                except OSError as error:
                    raise BuildError(
                        f"{directory}: its build command {shown!r} cannot be run: {error.strerror}"
                    ) from error
                stack.callback(_end_group, process)
            try:
                status = process.wait(limit_s)
            except subprocess.TimeoutExpired as error:
                raise BuildError(
                    f"{directory}: its build command {shown!r} took over {limit_s:g} s"
                ) from error
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
        while time.monotonic() < until:  # in vain where orphans are not reaped
            os.killpg(process.pid, 0)
            time.sleep(0.001)
    process.wait()
