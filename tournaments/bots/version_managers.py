"""Resolution of version managers' shims: small programs on PATH that start the real ones."""

import os
import shutil
import subprocess
from pathlib import Path

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
        return shutil.which(name) or (str(beside) if _exists(beside) else None)
    rustup = path.parent / RUSTUP
    if path.name != RUSTUP and _exists(rustup) and _exists(path) and path.samefile(rustup):
        return str(rustup)
    return None


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return False
