"""What stands behind a program of a version manager: on PATH is a small one that starts the real one."""

import os
import shutil
import subprocess
from pathlib import Path

SHIM_MANAGERS = ("pyenv", "rbenv", "nodenv", "jenv", "goenv", "asdf", "mise")
"""Version managers whose ``shims`` folder is on PATH, and whose ``which`` tells the program behind a shim."""
RUSTUP = "rustup"
"""Its programs are links to itself, beside it; it has a ``which``, too."""
SHIM_LIMIT_S = 10.0


def behind_shim(program: str) -> str:
    """What a version manager's shim stands for: the shim costs 0.1 s and needs the whole manager.

    The program itself if it is none, or its manager does not tell.
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
    """The version manager that a program is a shim of; None if it is none."""
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
