"""Limits on a bot's resources other than time (pure)."""

from dataclasses import dataclass

from protocol.lines import MAX_LINE_BYTES
from referee.judge.stderr import DEFAULT_KEPT_BYTES

MIB = 1 << 20

DEFAULT_MEMORY_MB = 512
"""Default memory of all of a bot's processes together, in MiB.  A Java bot of the course uses 60 to 150 MB, a
transposition table of ten million entries 240 MB; with two games at a time four bots then fit into 2 GB."""
MOST_DEFAULT_MEMORY_MB = 2048
"""Highest default, for a host with much memory; a bot that needs more gets an explicit limit."""
MEMORY_PART, MEMORY_STEP_MB = 4, 64
"""The default is a quarter of the host's memory for each game at a time, rounded down to steps of 64 MiB: the
two bots of all games then use half of it."""
DEFAULT_PROCESSES = 64
"""Processes and threads together: a Java virtual machine on a large host starts 30 to 40 threads
of its own."""
DEFAULT_FILE_MB = 64
DEFAULT_SCRATCH_MB = 64
"""Size of a bot's own directory for files, in MiB; it is in memory and vanishes with the game."""
DEFAULT_DIRECTORY_MB = 64
"""MiB that may be written in the working directory beside the files of the submission."""
DEFAULT_DIRECTORY_FILES = 10_000
"""New files in the working directory; each file in memory costs 1.2 KiB even when it is empty."""
DEFAULT_WIRE_BYTES = 1 << 20
"""Bytes of one bot's lines in one game.  The longest games of real bots have 10 KB."""
END_GRACE_S = 0.5
"""Seconds for a bot to end by itself after END, as in the course's engine; then it is killed."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one bot in one game.  Raises ValueError for a limit below its least sensible value."""

    memory_mb: int = DEFAULT_MEMORY_MB
    """Memory of all its processes together, in MiB; also the base of the limit of each process's data."""
    processes: int = DEFAULT_PROCESSES
    """Processes and threads that live at the same time."""
    file_mb: int = DEFAULT_FILE_MB
    """Size of a single file, in MiB."""
    scratch_mb: int = DEFAULT_SCRATCH_MB
    """All files in its directory for scratch files together, in MiB (confined bots only)."""
    stderr_bytes: int = DEFAULT_KEPT_BYTES
    """Bytes kept of its standard error."""
    line_bytes: int = MAX_LINE_BYTES
    """Most bytes of a line that it sends."""
    wire_bytes: int = DEFAULT_WIRE_BYTES
    """Bytes of the lines that it sends out of turn, or that are longer than a move; the record has all of
    them."""
    end_grace_s: float = END_GRACE_S
    """Seconds between END and the end of its processes."""
    directory_mb: int = DEFAULT_DIRECTORY_MB
    """Space for files in its working directory beside the copies of its own files, in MiB; 0 for a directory
    that is read-only (confined bots only)."""
    directory_files: int = DEFAULT_DIRECTORY_FILES
    """Files and folders that it makes in its working directory (confined bots only)."""

    def __post_init__(self) -> None:
        for name, least in LEAST.items():
            value = getattr(self, name)
            if value < least:
                raise ValueError(f"{name} must be at least {least}, not {value}")


def default_memory_mb(host_bytes: int, games: int) -> int:
    """Return the default memory limit of a bot, in MiB.

    Args:
        host_bytes: The memory that the host's processes may use; 0 if it is not known.
        games: The number of games at a time.
    """
    share = host_bytes // MIB // MEMORY_PART // max(1, games)
    return min(MOST_DEFAULT_MEMORY_MB, max(DEFAULT_MEMORY_MB, share - share % MEMORY_STEP_MB))


def memory_shortage(memory_mb: int, host_bytes: int, games: int) -> str:
    """Return a warning if the bots of ``games`` games may use more memory than the host has; otherwise "".

    The arguments are those of ``default_memory_mb``.
    """
    needed, there = 2 * games * memory_mb, host_bytes // MIB
    if not there or needed <= there:
        return ""
    played = "a game" if games == 1 else f"{games} games at a time"
    return (
        f"the bots of {played} may use {needed} MB of memory ({memory_mb} MB each), and this host has "
        f"{there} MB"
    )


LEAST = {
    "memory_mb": 16,
    "processes": 1,
    "file_mb": 1,
    "scratch_mb": 1,
    "stderr_bytes": 1024,
    "line_bytes": 16,
    "wire_bytes": 4096,
    "directory_mb": 0,
    "directory_files": 1,
}
"""Least values of the limits.  Below them no bot could play: an interpreter needs 10 MB, a move 8 bytes."""
