"""What is told while a bot is checked: kept in bounds, and followed by any number of readers."""

from collections.abc import AsyncIterator, Iterable

import trio

MAX_LINES = 2000
MAX_BYTES = 128 << 10
"""A check tells some 100 lines; a build that prints for ever is not worth more."""
LONGEST_LINE = 1000
"""Characters of a line that are kept."""
CUT = "(the log is full: nothing more is kept of it)"


class CheckLog:
    """Lines, each of them told once, until it is over.  For the tasks of one event loop."""

    def __init__(self, lines: Iterable[str] = ()) -> None:
        self.lines: list[str] = []
        """Those so far; only ever added to."""
        self.over = False
        """Whether nothing more will come."""
        self._bytes = 0
        self._is_full = False
        self._changed = trio.Event()
        for line in lines:
            self.add(line)

    @classmethod
    def of(cls, text: str) -> "CheckLog":
        """The log of a check that is over."""
        log = cls(text.split("\n") if text else ())
        log.close()
        return log

    def add(self, text: str) -> None:
        """Add a line, or several; what is beyond the bounds is left out, and that is said once."""
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
        self._tell()

    def close(self) -> None:
        """Nothing more will come."""
        self.over = True
        self._tell()

    @property
    def text(self) -> str:
        """All lines as they are kept with the version."""
        return "\n".join(self.lines)

    async def follow(self, after: int = 0) -> AsyncIterator[str]:
        """The lines, without the first ``after``, as they come, until it is over."""
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

    def _tell(self) -> None:
        self._changed.set()
        self._changed = trio.Event()
