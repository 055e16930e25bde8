"""Bounded log of a running check, which any number of readers can follow."""

from collections.abc import AsyncIterator, Iterable

import trio

MAX_LINES = 2000
MAX_BYTES = 128 << 10
"""Bounds of a log: a check writes some 100 lines; a build may print for ever."""
LONGEST_LINE = 1000
"""Characters of a line that are kept."""
CUT = "(the log is full: nothing more is kept of it)"


class CheckLog:
    """Log lines, each delivered once to every reader, until the log is closed.

    For the tasks of one event loop.
    """

    def __init__(self, lines: Iterable[str] = ()) -> None:
        self.lines: list[str] = []
        """The lines so far, which are only ever appended to."""
        self.over = False
        """True if no more lines will follow."""
        self._bytes = 0
        self._is_full = False
        self._changed = trio.Event()
        for line in lines:
            self.add(line)

    @classmethod
    def of(cls, text: str) -> "CheckLog":
        """Create the closed log of a finished check from its text."""
        log = cls(text.split("\n") if text else ())
        log.close()
        return log

    def add(self, text: str) -> None:
        """Add one or more lines; lines beyond the bounds are dropped, with one notice."""
        for line in text.splitlines() or [""]:
            kept = line if len(line) <= LONGEST_LINE else line[:LONGEST_LINE] + "..."
            size = len(kept.encode("utf-8", "surrogatepass")) + 1
            if self._is_full:
                return
            if len(self.lines) >= MAX_LINES or self._bytes + size > MAX_BYTES:
                self._is_full = True
                kept = CUT
            self._bytes += size
            self.lines.append(kept)
        self._wake_readers()

    def close(self) -> None:
        """Close the log: no more lines will follow."""
        self.over = True
        self._wake_readers()

    @property
    def text(self) -> str:
        """All lines, as they are stored with the version."""
        return "\n".join(self.lines)

    async def follow(self, after: int = 0) -> AsyncIterator[str]:
        """Yield the lines after the first ``after`` as they are added, until the log is closed."""
        number = after
        while True:
            await trio.lowlevel.checkpoint()
            changed = self._changed
            for line in self.lines[number:]:
                number += 1
                yield line
            if number >= len(self.lines):
                if self.over:
                    return
                await changed.wait()

    def _wake_readers(self) -> None:
        self._changed.set()
        self._changed = trio.Event()
