"""The result of reading an upload: its files, or a refusal."""

from dataclasses import dataclass

from referee.judge.verdict_text import visible

LONGEST_NAME = 120
"""A name in a message is cut after this many characters; the longest path that is taken has 240 bytes."""


class UploadError(ValueError):
    """An upload that is refused.  The message is one sentence for the student: what is wrong, where, and what
    to do.
    """


@dataclass(frozen=True)
class SubmittedFile:
    """One file of a submission."""

    path: str
    """Path from the submission's top, with ``/`` between its parts."""
    content: bytes
    executable: bool = False
    """True if the file is executable; no other permission is kept."""


@dataclass(frozen=True)
class Upload:
    """The files of an upload, all of them within the limits and below one directory."""

    files: tuple[SubmittedFile, ...]
    """Files by path, in ascending order of code points; at least one."""
    stripped: str | None = None
    """The only folder at the top of the upload, which was taken off all paths; None if there was none."""
    passed_over: tuple[str, ...] = ()
    """Paths of files and whole folders that are no part of a bot and were left out: the first hundred, in
    ascending order."""


def shown(name: str) -> str:
    """Return a name in quotes for a message, on one line and cut to ``LONGEST_NAME`` characters."""
    cut = name if len(name) <= LONGEST_NAME else name[:LONGEST_NAME] + "..."
    return f'"{visible(cut)}"'
