"""What of our file system a confined bot needs to see so that its program runs: the interpreter, where that
lies outside /usr (a virtual environment, pyenv, a Java of one's own), and where a program of a script's first
line is.
"""

import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

SHOWN_ALWAYS = tuple(
    map(Path, ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc/alternatives"))
)
"""Every sandbox shows these."""
STORES = (Path("/nix/store"), Path("/gnu/store"))
"""Where each program lies in a directory of its own, and needs many others (Nix, Guix)."""
MAX_LINKS = 40
"""Links followed from a program's name to its file; the kernel's own bound (MAXSYMLINKS)."""
FIRST_LINE_BYTES = 256
"""The kernel reads so much of a script to find its interpreter (BINPRM_BUF_SIZE)."""


def first_line(path: Path) -> bytes:
    """The first line of a file without its line feed; empty if it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.readline(FIRST_LINE_BYTES).rstrip(b"\n")
    except OSError:
        return b""


def first_words(program: Path) -> list[str]:
    """What the first line of a script asks for, divided as the kernel does; empty if it is no script."""
    line = first_line(program)
    if not line.startswith(b"#!"):
        return []
    return [word for word in re.split("[ \t]+", line[2:].decode("utf-8", "replace")) if word]


def interpreter_of(program: Path) -> Path | None:
    """The program that the first line of a script asks for; None if it is no script, or that is not there.

    For ``env python3`` that is the interpreter that we run with: another one on PATH may be a slow shim.  An
    ``env`` with other options than -S is not understood.
    """
    words = first_words(program)
    if not words:
        return None
    asked = words[0]
    if Path(asked).name == "env":
        names = words[2:] if words[1:2] == ["-S"] else words[1:]
        if not names or names[0].startswith("-") or "=" in names[0]:
            return None
        asked = sys.executable if names[0] in ("python", "python3") else shutil.which(names[0]) or ""
    return Path(asked) if asked and _is_there(Path(asked)) else None


def needed_paths(program: Path, own: Sequence[Path] = (), *, trusted: bool = False) -> list[Path]:
    """What must be seen, read-only and under its own name, for this program to start.

    ``own`` is what the bot is made of, and is seen anyway.  Which program that is, its first line and its
    links are the bot's author's doing, who must not choose what of ours is seen: only what lies where our own
    PATH leads is shown, and its installation, unless ``trusted`` says that we named the program ourselves.
    """
    found: dict[Path, None] = {}
    for each in (program, interpreter_of(program)):
        if each is not None:
            for path in _needs_of(each, own, trusted=trusted):
                found[path] = None
    return [path for path in found if not _is_inside(path, (*SHOWN_ALWAYS, *own))]


def is_installed(program: Path, home: Path, *, follow: bool = True) -> bool:
    """Whether a program is a host's and no bot's own: it lies where every sandbox shows it or our PATH leads,
    in a store of programs, or in an installation.

    What lies in the bot's ``home`` beside a ``lib`` may be the bot's own all the same, unless it is known as
    an interpreter's.  Links are followed, or not.
    """
    directories = _trusted_directories()
    for path in _links(program):
        if path.parent in directories or _is_inside(path, (*SHOWN_ALWAYS, *STORES)):
            return True
        installation = _installation(path)
        if installation is not None and (installation == path.parent.parent or not path.is_relative_to(home)):
            return True
        if not follow:
            break
    return False


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # in a directory that is closed to us
        return False


def program_directories(program: Path) -> list[str]:
    """What must be on PATH for a script's ``#!/usr/bin/env NAME`` to find what ``interpreter_of`` found."""
    interpreter = interpreter_of(program)
    if interpreter is None or Path(first_words(program)[0]).name != "env":
        return []
    return [str(interpreter.parent)]


def _trusted_directories() -> set[Path]:
    """Where programs lie that we would run ourselves."""
    named = [Path(entry) for entry in os.environ.get("PATH", "").split(os.pathsep) if entry]
    return {Path(sys.executable).parent, Path(sys.base_prefix, "bin"), *named}


def _is_inside(path: Path, others: Iterable[Path]) -> bool:
    return any(path.is_relative_to(other) for other in others)


def _needs_of(program: Path, own: Sequence[Path], *, trusted: bool) -> Iterator[Path]:
    directories = _trusted_directories()
    for path in _links(program):
        if not trusted and _is_inside(path, own):
            continue  # it is seen; where it leads to is looked at next
        trusted = trusted or path.parent in directories or _is_inside(path, SHOWN_ALWAYS)
        if not trusted:
            return
        yield path
        store = next((store for store in STORES if path.is_relative_to(store)), None)
        if store is not None:
            yield store
        prefix = _installation(path)
        if prefix is None:
            continue
        yield prefix
        home = _home_of_environment(prefix)
        if home is not None:
            yield from filter(None, map(_installation, _links(home / path.name)))


def _links(path: Path) -> Iterator[Path]:
    """A path, and where its links lead one after the other, each without ``..``: what is said to be in /usr
    is there.
    """
    path = Path(os.path.normpath(path))
    for _ in range(MAX_LINKS):
        yield path
        if not path.is_symlink():
            real = path.resolve()  # one of its directories may be a link
            if real != path:
                yield real
            return
        path = Path(os.path.normpath(path.parent / path.readlink()))


INSTALLED = (
    *("pyvenv.cfg", "lib/python3*", "lib64/python3*", "lib/pypy*"),  # Python, and its virtual environments
    *("lib/modules", "lib/rt.jar", "jre/lib/rt.jar"),  # Java, new and old
    *("lib/node_modules", "pkg/tool", "lib/ruby", "lib/rustlib", "lib/perl5", "lib/lua"),
    *("lib/julia", "lib/mono", "lib/erlang"),
)
"""By one of these, below it, a directory is known to be the installation of an interpreter."""


def _installation(program: Path) -> Path | None:
    """The directory that an interpreter was installed into: that which holds its ``bin``.

    None where that is none, or is too wide to be shown: somebody's home, the root.
    """
    if program.parent.name != "bin" or _is_inside(program, SHOWN_ALWAYS):
        return None
    prefix = program.parent.parent
    home = Path.home()
    real = prefix.resolve()
    too_wide = home.resolve().is_relative_to(real) or home.is_relative_to(prefix) or real.name == ".local"
    if too_wide or real == Path("/home"):
        return None
    if any(next(prefix.glob(pattern), None) is not None for pattern in INSTALLED):
        return prefix
    return prefix / "lib" if (prefix / "lib").is_dir() else None


def _home_of_environment(prefix: Path) -> Path | None:
    """Where the interpreter of a Python virtual environment lies, as its pyvenv.cfg says."""
    try:
        lines = (prefix / "pyvenv.cfg").read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    for line in lines:
        key, _, value = line.partition("=")
        if key.strip() == "home":
            return Path(value.strip())
    return None
