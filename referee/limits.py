"""What a bot may use up besides its time.  Pure: numbers and where they come from."""

from dataclasses import dataclass

from protocol.lines import MAX_LINE_BYTES
from referee.stderr import DEFAULT_KEPT_BYTES

MIB = 1 << 20

DEFAULT_MEMORY_MB = 512
"""Of all of a bot's processes together.  A Java bot of the course uses 60 to 150 MB, a transposition table of
ten million entries 240 MB; with two games at a time four bots then fit into 2 GB."""
DEFAULT_PROCESSES = 64
"""Processes and threads together: a Java virtual machine on a large host starts 30 to 40 threads
of its own."""
DEFAULT_FILE_MB = 64
DEFAULT_SCRATCH_MB = 64
"""Of a bot's own directory for files, which is in memory and gone with the game."""
DEFAULT_WIRE_BYTES = 1 << 20
"""Of one bot's lines in one game.  The longest games of real bots have 10 KB."""
END_GRACE_S = 0.5
"""Time for a bot to end by itself after END, as the course's engine gave it; then it is killed."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one bot may use in one game.  Raises ValueError for a limit below its least sensible value."""

    memory_mb: int = DEFAULT_MEMORY_MB
    """Memory of all its processes together, in MiB; also what each process may reserve for its data."""
    processes: int = DEFAULT_PROCESSES
    """Processes and threads that live at the same time."""
    file_mb: int = DEFAULT_FILE_MB
    """Size of a single file, in MiB."""
    scratch_mb: int = DEFAULT_SCRATCH_MB
    """All files in its directory for scratch files together, in MiB (confined bots only)."""
    stderr_bytes: int = DEFAULT_KEPT_BYTES
    """Kept of its standard error."""
    line_bytes: int = MAX_LINE_BYTES
    """Length of a line that it sends."""
    wire_bytes: int = DEFAULT_WIRE_BYTES
    """Lines that it sends in a game unasked, or that are longer than a move is; all are kept whole."""
    end_grace_s: float = END_GRACE_S
    """Seconds between END and the end of its processes."""

    def __post_init__(self) -> None:
        for name, least in LEAST.items():
            value = getattr(self, name)
            if value < least:
                raise ValueError(f"{name} must be at least {least}, not {value}")


LEAST = {
    "memory_mb": 16,
    "processes": 1,
    "file_mb": 1,
    "scratch_mb": 1,
    "stderr_bytes": 1024,
    "line_bytes": 16,
    "wire_bytes": 4096,
}
"""Below these no bot could play: an interpreter needs 10 MB, a move 8 bytes."""
