"""Cache of the compiled kernels, so that a bot need not compile them at each start.

Theory of operation.  Compiling all kernels takes tens of seconds, loading them about one.  ``prepare``
compiles them once, in a process of its own, into a directory whose name has two digests.  The first covers
the source files and the versions of the libraries; the second covers the processor, which may differ between
machines that share a home.  The directory appears under that name when it is complete.  numba ignores a
directory that it cannot write, as in a sandbox, so a confined bot first copies the directory to its scratch
directory (``use``).
"""

import contextlib
import hashlib
import itertools
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

from sample_bots.options import PURE_VARIABLE

HERE = Path(__file__).resolve().parent
CACHE_VARIABLE = "NUMBA_CACHE_DIR"
"""Environment variable that numba reads when it is imported: its directory of machine code."""
COMPLETE = "complete"
"""Name of a file that exists if the machine code of all kernels does."""
PREPARE_LIMIT_S = 300.0
"""Time limit for compiling all kernels, which took 20 to 40 s on a laptop."""

PROCESSORS = Path("/proc/cpuinfo")
"""List of the host's processors (proc(5))."""
PROCESSOR_FIELDS = {
    *("vendor_id", "cpu family", "model", "model name", "flags"),  # x86
    *("cpu implementer", "cpu part", "features", "cpu", "isa"),  # other architectures
}
"""Fields of PROCESSORS, in lower case, on which the machine code that numba generates depends."""
PROCESSOR_VARIABLES = ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES")
"""Environment variables by which numba generates machine code for another processor."""


class NotPreparedError(Exception):
    """The kernels could not be compiled; the message has the reason."""


def can_compile() -> bool:
    """Return whether numba is installed and enabled, and there is a cache directory; does not load numba."""
    return not os.environ.get(PURE_VARIABLE) and find_spec("numba") is not None and _base() is not None


def _base() -> Path | None:
    """Return the user's cache directory; None for a user without a home."""
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not base.is_absolute():  # the XDG specification: a relative path is ignored
        base = Path(os.path.expanduser("~/.cache"))  # noqa: PTH111 - does not fail without any home
    return base if base.is_absolute() else None


def directory() -> Path:
    """Return the directory of the machine code, which need not exist."""
    from importlib import metadata  # slow to import, and seldom needed

    whole = hashlib.sha256()
    for path in sorted([*HERE.rglob("*.py"), *(HERE.parent / "solver").rglob("*.py")]):
        whole.update(path.read_bytes())
    versions = [metadata.version(name) for name in ("numba", "llvmlite", "numpy")]
    whole.update("\0".join([*versions, platform.python_version(), str(HERE)]).encode())
    base = _base()
    assert base is not None  # ``can_compile`` was called before
    processor = hashlib.sha256(_processor().encode()).hexdigest()
    return base / "kalarena" / f"kernels-{whole.hexdigest()[:16]}-{processor[:8]}"


def _processor() -> str:
    """Return the processor's model and features.  LLVM's names of these would take 40 ms to import."""
    settings = [os.environ.get(variable, "") for variable in PROCESSOR_VARIABLES]
    try:
        with PROCESSORS.open(encoding="utf-8", errors="replace") as lines:
            first = itertools.takewhile(str.strip, lines)  # the others may differ in their speed alone
            found = [line for line in first if line.partition(":")[0].strip().lower() in PROCESSOR_FIELDS]
    except OSError:
        found = [platform.processor()]
    return "\0".join([platform.machine(), *settings, *found])


def shared_directory() -> Path:
    """Return the directory of processes that are no bots.

    As long as ``prepare`` was not called, it is one of their own, where each kernel is compiled at its first
    call.
    """
    prepared = directory()
    return prepared if is_prepared() else prepared.with_name(f"own-{prepared.name}")


def is_prepared() -> bool:
    """Return whether the machine code of all kernels exists."""
    return (directory() / COMPLETE).is_file()


def prepare() -> Path:
    """Compile all kernels unless that was done before; return the directory.  Raises NotPreparedError.

    Several processes may call this at the same time: the first that is ready wins.
    """
    goal = directory()
    if (goal / COMPLETE).is_file():
        return goal
    shutil.rmtree(goal, ignore_errors=True)
    try:
        goal.parent.mkdir(parents=True, exist_ok=True)
        building = Path(tempfile.mkdtemp(prefix="building-", dir=goal.parent))
    except OSError as error:
        raise NotPreparedError(f"{error.filename}: {error.strerror}") from error
    try:
        program = (
            "import sys; sys.path.insert(0, sys.argv[1]); import sample_bots.strong.engines as e; e.warm_up()"
        )
        done = subprocess.run(
            [sys.executable, "-I", "-c", program, str(HERE.parent.parent)],
            env={**os.environ, CACHE_VARIABLE: str(building)},
            capture_output=True,
            text=True,
            timeout=PREPARE_LIMIT_S,
            check=False,
        )
        if done.returncode != 0:
            lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
            raise NotPreparedError(lines[-1])
        (building / COMPLETE).touch()
        building.chmod(0o755)  # a bot runs as another user
        try:
            building.rename(goal)
        except OSError:
            if not (goal / COMPLETE).is_file():  # else another process was faster
                raise
    except subprocess.TimeoutExpired as error:
        raise NotPreparedError(f"compiling took over {PREPARE_LIMIT_S:g} s") from error
    except OSError as error:
        raise NotPreparedError(f"{error.filename}: {error.strerror}") from error
    finally:
        shutil.rmtree(building, ignore_errors=True)
    _remove_older(goal)
    return goal


def use(prepared: str) -> None:
    """Set numba's directory of machine code to one that ``prepare`` returned, before numba is imported.

    A directory that is not writable, as in a sandbox, is copied to a scratch directory.  If the directory
    does not exist, the kernels are compiled again into the scratch directory.
    """
    where = Path(prepared)
    if not os.access(where, os.W_OK):
        scratch = Path(tempfile.gettempdir()) / "kernels"
        with contextlib.suppress(OSError):
            shutil.copytree(where, scratch, copy_function=shutil.copyfile)
        where = scratch
    os.environ[CACHE_VARIABLE] = str(where)


def _remove_older(current: Path) -> None:
    """Remove the directories of earlier versions but the newest two, since older installations may be in use.

    A version's directories for other processors are kept with it.  Directories of a killed ``prepare`` are
    removed, too.
    """
    for pattern in ("kernels-*", "own-kernels-*"):
        paths = sorted(current.parent.glob(pattern), key=_modified, reverse=True)
        others = dict.fromkeys(version for path in paths if (version := _version(path)) != _version(current))
        removed = list(others)[2:]
        for path in paths:
            if _version(path) in removed:
                shutil.rmtree(path, ignore_errors=True)
    for path in current.parent.glob("building-*"):
        if time.time() - _modified(path) > PREPARE_LIMIT_S:
            shutil.rmtree(path, ignore_errors=True)


def _version(path: Path) -> str:
    """Return the part of a directory's name that is the same for all processors."""
    return "-".join(path.name.removeprefix("own-").split("-")[:2])


def _modified(path: Path) -> float:
    """Return the time of the last change of a directory; 0 if another process has removed it."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
