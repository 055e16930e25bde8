"""Where the compiled kernels are kept, so that a bot need not compile them at each start.

Theory of operation.  numba keeps machine code in a directory of its choice.  Compiling all kernels takes tens
of seconds, loading them about one.  ``prepare`` compiles them once, in a process of its own, into a directory
whose name holds a digest of all that the code depends on; the directory appears under that name when it is
complete.  A confined bot sees it read-only, where numba would not look into it, so the bot copies it to its
own scratch directory first (``use``).
"""

import contextlib
import hashlib
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
"""numba's own name for it; read when numba is imported."""
COMPLETE = "complete"
"""A file that is there when all kernels are."""
PREPARE_LIMIT_S = 300.0
"""Compiling took 20 to 40 s on the machine that this was written on; more than this is no compiling."""


class NotPreparedError(Exception):
    """The kernels could not be compiled; the message says why."""


def can_compile() -> bool:
    """Whether numba is installed and wanted, and there is a place for machine code; does not load numba."""
    return not os.environ.get(PURE_VARIABLE) and find_spec("numba") is not None and _base() is not None


def _base() -> Path | None:
    """The user's directory for what can be made again; None for a user without any home."""
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not base.is_absolute():  # the XDG specification: a relative one is to be ignored
        base = Path(os.path.expanduser("~/.cache"))  # noqa: PTH111 - does not fail without any home
    return base if base.is_absolute() else None


def directory() -> Path:
    """Where the machine code belongs; it need not be there."""
    from importlib import metadata  # slow to import, and seldom needed

    whole = hashlib.sha256()
    for path in sorted([*HERE.glob("*.py"), *(HERE.parent / "solver").glob("*.py")]):
        whole.update(path.read_bytes())
    versions = [metadata.version(name) for name in ("numba", "llvmlite", "numpy")]
    whole.update("\0".join([*versions, platform.python_version(), platform.machine(), str(HERE)]).encode())
    base = _base()
    assert base is not None  # ``can_compile`` was asked before
    return base / "kalarena" / f"kernels-{whole.hexdigest()[:16]}"


def own_directory() -> Path:
    """Where processes that are no bots keep what they compile, each kernel when it is first called."""
    return directory().with_name(f"own-{directory().name}")


def is_prepared() -> bool:
    """Whether the machine code is there, all of it."""
    return (directory() / COMPLETE).is_file()


def prepare() -> Path:
    """Compile all kernels unless that was done; return the directory.  Raises NotPreparedError.

    Several processes may do so at the same time: the first that is ready wins.
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
            if not (goal / COMPLETE).is_file():  # else another process was sooner
                raise
    except subprocess.TimeoutExpired as error:
        raise NotPreparedError(f"compiling took over {PREPARE_LIMIT_S:g} s") from error
    except OSError as error:
        raise NotPreparedError(f"{error.filename}: {error.strerror}") from error
    finally:
        shutil.rmtree(building, ignore_errors=True)
    _remove_older(goal)
    return goal


def use(kept: str) -> None:
    """Let numba find the machine code of a directory that ``prepare`` returned.  Before numba is imported.

    Where it is not writable, as in a sandbox, it is copied to a scratch directory.  If it is not there, the
    kernels are compiled again, into that directory.
    """
    where = Path(kept)
    if not os.access(where, os.W_OK):
        scratch = Path(tempfile.gettempdir()) / "kernels"
        with contextlib.suppress(OSError):
            shutil.copytree(where, scratch, copy_function=shutil.copyfile)
        where = scratch
    os.environ[CACHE_VARIABLE] = str(where)


def _remove_older(kept: Path) -> None:
    """Remove what earlier versions left, except the newest two: an older installation may still be in use.

    What a killed ``prepare`` left goes, too.
    """
    for pattern in ("kernels-*", "own-kernels-*"):
        others = [path for path in kept.parent.glob(pattern) if path.name.removeprefix("own-") != kept.name]
        for path in sorted(others, key=_modified, reverse=True)[2:]:
            shutil.rmtree(path, ignore_errors=True)
    for path in kept.parent.glob("building-*"):
        if time.time() - _modified(path) > PREPARE_LIMIT_S:
            shutil.rmtree(path, ignore_errors=True)


def _modified(path: Path) -> float:
    """When a directory was changed; long ago, if another process has removed it."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
