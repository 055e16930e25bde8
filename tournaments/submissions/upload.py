"""What an upload has become once it was read: files, or a refusal."""

from dataclasses import dataclass

from referee.sentences import visible

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
    """From the submission's top, with ``/`` between its parts."""
    content: bytes
    executable: bool = False
    """All that is kept of its permissions."""


@dataclass(frozen=True)
class Upload:
    """The files of an upload, all of them within the limits and below one directory."""

    files: tuple[SubmittedFile, ...]
    """By path, in ascending order of code points; at least one."""
    stripped: str | None = None
    """The only folder at the top of what was uploaded, whose content this is."""
    passed_over: tuple[str, ...] = ()
    """Paths of what is no part of a bot and was left out: files, and folders with all that is in them.
    The first hundred of these, in ascending order."""


def shown(name: str) -> str:
    """A name in quotes for a message, on one line and not too long, whatever is in it."""
    cut = name if len(name) <= LONGEST_NAME else name[:LONGEST_NAME] + "..."
    return f'"{visible(cut)}"'
