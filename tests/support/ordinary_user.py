"""Running a command as an ordinary user without any privilege, where the tests are run by root.

What the command needs may lie below directories that are closed to others (the interpreter in root's home,
a temporary directory of the tests).  In a mount namespace of the command's own these are covered by empty
ones, with what is needed put back in.  Nothing outside that namespace changes, but the owner of the writable
directories.

``forbid`` lets calls fail in the process of the tests, as for such a user.
"""

import errno
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.paths import REPOSITORY_ROOT

if TYPE_CHECKING:  # not needed in a virtual machine
    import pytest

USER = 54321
"""A user id without an account."""
REPOSITORY = REPOSITORY_ROOT

# Arguments: how many directories to cover and those, how many paths to put back and those, the command.
# A path that is put back is bound to a directory of its own first, since covering hides it.
_SCRIPT = """
set -e
mount -t tmpfs -o mode=0755 none /mnt
covered=$1; shift
while [ "$covered" -gt 0 ]; do cover="$cover $1"; shift; covered=$((covered - 1)); done
count=$1; shift
number=0
for path in "$@"; do
  [ "$number" -lt "$count" ] || break
  mkdir "/mnt/$number"
  mount --rbind "$path" "/mnt/$number"
  number=$((number + 1))
done
for folder in $cover; do mount -t tmpfs -o mode=0755 none "$folder"; done
number=0
while [ "$number" -lt "$count" ]; do
  mkdir -p "$1"
  mount --rbind "/mnt/$number" "$1"
  shift
  number=$((number + 1))
done
exec "$@"
"""


def as_ordinary_user(
    command: Sequence[str], writable: Sequence[Path], readable: Sequence[Path] = ()
) -> list[str]:
    """Return the command line that runs a command as an ordinary user; the command itself without root.

    The ``writable`` directories are given to that user, with all that is in them; the first of them is HOME
    and holds its temporary files.  The interpreter and the repository can be read, and what is ``readable``.
    """
    if os.geteuid() != 0:
        return list(command)
    for folder in writable:
        _give(folder)
    needed = _outermost([Path(sys.base_prefix), Path(sys.prefix), REPOSITORY, *readable, *writable])
    closed = {path: _closed_parent(path) for path in needed}
    covered = _outermost(filter(None, closed.values()))
    assert not any(" " in str(folder) for folder in covered)
    put_back = [path for path, parent in closed.items() if parent is not None]
    home = str(writable[0].resolve())
    return [
        *("unshare", "--mount", "--propagation", "private", "sh", "-c", _SCRIPT, "sh"),
        *(str(len(covered)), *map(str, covered), str(len(put_back)), *map(str, put_back)),
        *("setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--inh-caps=-all", "--"),
        *("env", f"HOME={home}", f"TMPDIR={home}", "USER=ordinary", "LOGNAME=ordinary"),
        *command,
    ]


def forbid(monkeypatch: "pytest.MonkeyPatch", method: str, folder: Path) -> None:
    """Let a method of ``Path`` fail for all paths below a folder, as for a user who may not enter it."""
    allowed = getattr(Path, method)

    def refuse(path: Path, *arguments: Any, **options: Any) -> Any:
        if folder in path.parents:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return allowed(path, *arguments, **options)

    monkeypatch.setattr(Path, method, refuse)


def _give(folder: Path) -> None:
    for inside, folders, names in os.walk(folder):
        for name in [".", *folders, *names]:
            os.chown(Path(inside, name), USER, USER, follow_symlinks=False)


def _outermost(paths: Iterable[Path]) -> list[Path]:
    found: list[Path] = []
    for path in sorted({path.resolve() for path in paths}, key=lambda path: len(path.parts)):
        if not any(path.is_relative_to(other) for other in found):
            found.append(path)
    return found


def _closed_parent(path: Path) -> Path | None:
    """The outermost directory above a path that others cannot go through."""
    for parent in reversed(path.parents):
        if not parent.stat().st_mode & 0o001:
            return parent
    return None
