"""Files of an upload, limits of uploads, and the error for an upload that is refused.

The starter kits have 4 or 5 files and at most 42 kB.  The default limits leave room for the tables of
openings or endgames and the libraries of a course's bots, and bound the cost of one upload for the server.
"""

from dataclasses import dataclass

from referee.judge.verdict_text import visible

LONGEST_NAME = 120
"""Maximum characters of a name in a message; the longest path that is accepted has 240 bytes."""


class UploadError(ValueError):
    """An upload is refused; the message is one sentence for the student: the error, its place, the remedy."""


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
    passed_over: tuple[str, ...] = ()
    """Paths of files and whole folders that were left out, as no part of a bot: the first hundred, in
    ascending order."""


def shown(name: str) -> str:
    """Return a name in quotes for a message, on one line and cut to ``LONGEST_NAME`` characters."""
    cut = name if len(name) <= LONGEST_NAME else name[:LONGEST_NAME] + "..."
    return f'"{visible(cut)}"'


MEBIBYTE = 1 << 20


@dataclass(frozen=True)
class UploadLimits:
    """Limits of uploads, each of them the largest accepted value."""

    upload_bytes: int = 20 * MEBIBYTE
    """Bytes of the upload as it is sent: about ``total_bytes`` of texts and programs, compressed (the median
    of 276 files of this repository is 2.6 to 1)."""
    total_bytes: int = 64 * MEBIBYTE
    """Bytes of all files together, unpacked.  They are held in memory while they are read, and kept unpacked:
    a hundred students with ten versions each fill 63 GiB at worst."""
    file_bytes: int = 32 * MEBIBYTE
    """Bytes of one file, unpacked: a table that leaves half of ``total_bytes`` for the bot."""
    files: int = 2_000
    """Files, and folders that an archive lists by themselves.  A student's own program has some tens of
    files, with libraries some hundreds.  ``tournaments.bots.resolve`` refuses over 10,000 files."""
    path_bytes: int = 240
    """Bytes of a path in UTF-8.  Windows accepts 260 characters with the folder above, and the file systems
    of Linux accept names of 255 bytes, so that none of them refuses an accepted path."""
    depth: int = 16
    """Parts of a path.  Java's packages below Maven's ``src/main/java`` need about ten."""
    ratio: int = 100
    """Bytes of a file for each byte of its compressed data.  Of 276 texts, programs and tables of this
    repository, the most compressible has 24; deflate's own bound is 1032 (zlib's technical details)."""
    ratio_from_bytes: int = MEBIBYTE
    """Bytes up to which ``ratio`` does not apply: a small file is no zip bomb."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value < 1:
                raise ValueError(f"{name} = {value}: a limit is at least 1")


def size_text(count: int) -> str:
    """Return a number of bytes with its unit."""
    if count >= MEBIBYTE:
        return f"{count / MEBIBYTE:.4g} MiB"
    return f"{count:,} bytes"


def excess_text(count: int, limit: int, what: str = "") -> str:
    """Return the words for a size and the limit below it, in bytes if the two would look equal in MiB."""
    has, allowed = size_text(count), size_text(limit)
    if has == allowed:
        has, allowed = f"{count:,} bytes", f"{limit:,} bytes"
    return f"{has}{what}, {allowed} are allowed"
