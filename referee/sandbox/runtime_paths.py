"""Paths of the host that a confined bot's program needs, such as its interpreter.

The interpreter can be outside /usr, in a virtual environment, in pyenv or in a private Java.  A script's
first line can name a program on PATH, or the one behind a version manager's shim there.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

SHOWN_ALWAYS = tuple(
    map(Path, ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc/alternatives"))
)
"""Paths that every sandbox shows."""
STORES = (Path("/nix/store"), Path("/gnu/store"))
"""Stores of programs (Nix, Guix), in which each program has a directory of its own, and needs many others."""
SHIM_MANAGERS = ("pyenv", "rbenv", "nodenv", "jenv", "goenv", "asdf", "mise")
"""Version managers with a ``shims`` folder on PATH, whose ``which`` prints the program behind a shim."""
RUSTUP = "rustup"
"""Manager whose programs are links to itself, in the same folder; it has a ``which``, too."""
SHIM_LIMIT_S = 10.0
"""Time limit in seconds for a version manager's ``which``, which takes about 0.1 s."""
MAX_LINKS = 40
"""Most links followed from a program's name to its file; the kernel's own bound (MAXSYMLINKS)."""
FIRST_LINE_BYTES = 256
"""Bytes of a script that the kernel reads to find its interpreter (BINPRM_BUF_SIZE)."""


def is_there(path: Path) -> bool:
    """Return True if a path exists and this process may look it up."""
    try:
        return path.exists()
    except OSError:
        return False


def first_line(path: Path) -> bytes:
    """Return the first line of a file without its line feed; empty if it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.readline(FIRST_LINE_BYTES).rstrip(b"\n")
    except OSError:
        return b""


def first_words(program: Path) -> list[str]:
    """Return the words of a script's first line, split as the kernel does; empty if it is not a script."""
    line = first_line(program)
    if not line.startswith(b"#!"):
        return []
    return [word for word in re.split("[ \t]+", line[2:].decode("utf-8", "replace")) if word]


def interpreter_of(program: Path) -> Path | None:
    """Return the program named by a script's first line; None if there is no such line or program.

    For ``env python3`` that is the interpreter that runs Kalarena: another one on PATH may be a slow shim.
    An ``env`` with other options than -S is not supported.
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
    return Path(asked) if asked and is_there(Path(asked)) else None


def needed_paths(program: Path, own: Sequence[Path] = (), *, trusted: bool = False) -> list[Path]:
    """Return the paths that the sandbox must show, read-only and under their own names, to run a program.

    ``own`` are the bot's files, which are shown anyway.  The program, its first line and its links are chosen
    by the bot's author, who must not choose which files of the host are shown: only files in directories of
    this process's PATH are shown, or those that version managers name for their shims there, and their
    installations, unless ``trusted`` is True because the operator or Kalarena itself named the program.
    """
    found: dict[Path, None] = {}
    for each in (program, interpreter_of(program)):
        if each is not None:
            for path in _needs_of(each, own, trusted=trusted):
                found[path] = None
    return [path for path in found if not _is_inside(path, (*SHOWN_ALWAYS, *own))]


def is_installed(program: Path, home: Path, *, follow: bool = True) -> bool:
    """Return True if a program belongs to the host, not to a bot.

    That is so if it is in a directory that every sandbox shows or that is on PATH, behind a shim on PATH, in
    a store of programs, or in an installation.  A program in the bot's ``home`` beside a ``lib`` can be the
    bot's own all the same, unless its directory is recognized as an interpreter's.  Links are followed if
    ``follow`` is True.
    """
    for path in _links(program):
        if _is_trusted(path) or _is_inside(path, STORES):
            return True
        installation = _installation(path)
        if installation is not None and (path.is_relative_to(installation) or not path.is_relative_to(home)):
            return True
        if not follow:
            break
    return False


def program_directories(program: Path) -> list[str]:
    """Return the directories that a script's PATH needs for ``env NAME`` to find its interpreter.

    The interpreter is the result of ``interpreter_of``.
    """
    interpreter = interpreter_of(program)
    if interpreter is None or Path(first_words(program)[0]).name != "env":
        return []
    return [str(interpreter.parent)]


def _is_trusted(program: Path) -> bool:
    """Return True if this process itself would run a program: it is on PATH, or behind a shim there."""
    on_path = [Path(entry) for entry in os.environ.get("PATH", "").split(os.pathsep) if entry]
    if program.parent in (Path(sys.executable).parent, Path(sys.base_prefix, "bin"), *on_path):
        return True
    if _is_inside(program, SHOWN_ALWAYS):
        return True
    # Managers install programs beside their shims; for a program elsewhere, no manager has to be called.
    shims = [folder / program.name for folder in on_path if program.is_relative_to(folder.parent)]
    return any(_is_behind(program, shim) for shim in shims)


_behind: set[tuple[Path, Path]] = set()
"""Programs that a version manager named, each with its shim.

Other answers are not kept: a manager can fail once, or its user can choose another version.
"""


def _is_behind(program: Path, shim: Path) -> bool:
    """Return True if a version manager names, or has named, this program as that behind its shim."""
    if (program, shim) not in _behind and is_there(shim):
        named = Path(os.path.normpath(behind_shim(str(shim))))
        _behind.add((named, shim))
    return (program, shim) in _behind


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


def _is_inside(path: Path, others: Iterable[Path]) -> bool:
    return any(path.is_relative_to(other) for other in others)


def _needs_of(program: Path, own: Sequence[Path], *, trusted: bool) -> Iterator[Path]:
    for path in _links(program):
        if not trusted and _is_inside(path, own):
            continue  # shown anyway; the target of the link is next
        trusted = trusted or _is_trusted(path)
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
    """Yield a path and the targets of its links one after the other, each without ``..``.

    A path that begins with /usr is therefore really there.
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
"""Patterns of paths; a directory that contains one of them is the installation of an interpreter."""
WITHOUT_BIN = {"dotnet": "host/fxr", "zig": "lib/std"}
"""Program that is in no ``bin`` -> path beside the program by which its installation is recognized."""


def home_directory() -> Path | None:
    """Return the user's home directory; None for a user without a home."""
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 - does not fail without any home
    return home if home.is_absolute() else None


def _installation(program: Path) -> Path | None:
    """Return the directory that an interpreter was installed into: that above its ``bin``, or its own.

    None if there is none, or if it is too wide to be shown: a home directory, the root.
    """
    mark = WITHOUT_BIN.get(program.name)
    has_bin = mark is None or not is_there(program.parent / mark)
    if (has_bin and program.parent.name != "bin") or _is_inside(program, SHOWN_ALWAYS):
        return None
    prefix = program.parent.parent if has_bin else program.parent
    home = home_directory()
    real = prefix.resolve()
    if home is not None and (home.resolve().is_relative_to(real) or home.is_relative_to(prefix)):
        return None
    if real.name == ".local" or real == Path("/home"):
        return None
    if not has_bin or any(next(prefix.glob(pattern), None) is not None for pattern in INSTALLED):
        return prefix
    return prefix / "lib" if (prefix / "lib").is_dir() else None


def _home_of_environment(prefix: Path) -> Path | None:
    """Return the directory of a Python virtual environment's base interpreter, as given in pyvenv.cfg."""
    try:
        lines = (prefix / "pyvenv.cfg").read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    for line in lines:
        key, _, value = line.partition("=")
        if key.strip() == "home":
            return Path(value.strip())
    return None
