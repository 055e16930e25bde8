"""Uploads: their limits, and the result of reading one, which is its files or a refusal.

The starter kits have 4 or 5 files and at most 42 kB.  The default limits leave room for what bots of a
course bring along, tables of openings or of endgames and libraries, and bound what one upload can cost the
server.
"""

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


MEBIBYTE = 1 << 20


@dataclass(frozen=True)
class UploadLimits:
    """Limits, each of which is the largest value that is still accepted."""

    upload_bytes: int = 20 * MEBIBYTE
    """Of the upload as it is sent: what ``total_bytes`` come to when they are compressed as texts and
    programs are (the median of 276 files of this repository is 2.6 to 1)."""
    total_bytes: int = 64 * MEBIBYTE
    """Of all files together, unpacked.  They are held in memory while they are read, and kept unpacked: a
    hundred students with ten versions each fill 63 GiB at worst."""
    file_bytes: int = 32 * MEBIBYTE
    """Of one file, unpacked.  Half of what all may have: a table beside which there is room for a bot."""
    files: int = 2_000
    """And as many folders that an archive lists by themselves.  A program of one's own has some tens of
    files, with libraries some hundreds.  Far below the 10,000 at which ``tournaments.bots.resolve`` says that
    a directory is no bot's."""
    path_bytes: int = 240
    """Of a path in UTF-8.  Windows takes 260 characters with the folder above, and one name has 255 bytes at
    most in the file systems of Linux; ours then never refuses what was taken here."""
    depth: int = 16
    """Parts of a path.  Java's packages below Maven's ``src/main/java`` need about ten."""
    ratio: int = 100
    """A file's size for each byte of its compressed data.  Of 276 texts, programs and tables of this
    repository, the most compressible has 24; deflate's own bound is 1032 (zlib's technical details)."""
    ratio_from_bytes: int = MEBIBYTE
    """Files up to this size may be compressed as well as they like: a small one is no bomb."""

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
    """Return the words for a size and a lower limit; they are in bytes if they would read alike in MiB."""
    has, allowed = size_text(count), size_text(limit)
    if has == allowed:
        has, allowed = f"{count:,} bytes", f"{limit:,} bytes"
    return f"{has}{what}, {allowed} are allowed"
