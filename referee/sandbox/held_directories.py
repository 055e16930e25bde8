"""Descriptors of the directories that a confined bot can write, and checks whether they are full.

They are opened before a program of the bot starts.  An open descriptor keeps a file system in memory until it
is closed, also after the end of the sandbox.
"""

import contextlib
import os
from dataclasses import dataclass, field
from pathlib import Path

from referee.errors import RefereeError
from referee.sandbox.bubblewrap import SCRATCH
from referee.sandbox.working_directory import WorkingDirectory

HOME, TMP = "$HOME", "/tmp"
WORKING_DIRECTORY = "its working directory"


@dataclass(slots=True)
class HeldDirectories:
    """The writable directories of one sandbox.  The caller must ``close`` them."""

    plan: WorkingDirectory | None
    working: int | None = None
    """Descriptor of the working directory; None where that is read-only."""
    _others: dict[str, int] = field(default_factory=dict)
    _submitted: int = 0
    """Number of files, folders and links of the submission."""

    @classmethod
    def open(cls, pid: int, plan: WorkingDirectory | None) -> "HeldDirectories":
        """Open the directories of a complete sandbox, and finish the working directory.

        ``pid`` is the sandbox's first process.  Raises RefereeError if that cannot be done.
        """
        held = cls(plan)
        try:
            for name, path in ((HOME, SCRATCH), (TMP, TMP)):
                held._others[name] = _open(pid, Path(path))
            if plan is not None:
                held.working = _open(pid, plan.path)
                plan.finish(held.working)
                held._submitted = _inodes(held.working)
        except OSError as error:
            held.close()
            raise RefereeError(f"a bot's directory could not be opened: {error}") from error
        except BaseException:
            held.close()
            raise
        return held

    def new_files(self) -> int:
        """Return the number of files and folders in the working directory beyond those of the submission."""
        return 0 if self.working is None else max(0, _inodes(self.working) - self._submitted)

    def full(self) -> tuple[str, ...]:
        """Return the names of the directories that have no space left."""
        named = {**({} if self.working is None else {WORKING_DIRECTORY: self.working}), **self._others}
        return tuple(name for name, descriptor in named.items() if not os.fstatvfs(descriptor).f_bavail)

    def close(self) -> None:
        """Close all descriptors; if the sandbox has ended, the contents are freed."""
        for descriptor in [*self._others.values(), *([] if self.working is None else [self.working])]:
            with contextlib.suppress(OSError):
                os.close(descriptor)
        self._others.clear()
        self.working = None


def _open(pid: int, path: Path) -> int:
    return os.open(f"/proc/{pid}/root{path}", os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def _inodes(directory: int) -> int:
    found = os.fstatvfs(directory)
    return found.f_files - found.f_ffree
