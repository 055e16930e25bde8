"""Splitting of received bytes into lines of bounded length."""

MAX_LINE_BYTES = 1024
"""Maximum length of a line; a longer one is a flood.  The longest line that a bot needs is below 20 bytes;
the course's bots were seen to send (as debug text) less than 200."""


class LineBuffer:
    """Collects bytes and returns complete lines.

    Only a line feed ends a line; a carriage return before it stays in the line, so that the codec can report
    it to the student.  A line longer than the maximum, complete or not, is an overflow: no more lines are
    returned after it.
    """

    def __init__(self, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self._max = max_line_bytes
        self._rest = b""
        self.overflow: bytes | None = None
        """The first bytes of a line that was too long, as many as are allowed; None without an overflow."""
        self.overflow_bytes = 0
        """Number of bytes of that line so far, without its line feed; 0 without an overflow."""
        self.has_overflow_ended = False
        """True if the line feed of that line has come."""

    def feed(self, data: bytes) -> list[bytes]:
        """Add bytes; return the lines that they complete, in order, without their line feeds.

        Lines that came before one that is too long are still returned; ``overflow`` is set then.
        """
        if self.overflow is not None:
            if not self.has_overflow_ended:
                more, line_feed, _ = data.partition(b"\n")
                self.overflow_bytes += len(more)
                self.has_overflow_ended = bool(line_feed)
            return []
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        if len(data) > self._max or len(self._rest) > self._max:
            for index, line in enumerate([*lines, self._rest]):
                if len(line) > self._max:
                    self._set_overflow(line, has_ended=index < len(lines))
                    return lines[:index]
        elif lines and len(lines[0]) > self._max:  # a line begun earlier; later ones are below len(data)
            self._set_overflow(lines[0], has_ended=True)
            return []
        return lines

    def _set_overflow(self, line: bytes, *, has_ended: bool) -> None:
        self.overflow = line[: self._max]
        self.overflow_bytes, self.has_overflow_ended = len(line), has_ended
        self._rest = b""

    @property
    def unfinished(self) -> bytes:
        """The bytes after the last line feed: at the end of a game, a reply without its line feed."""
        return self._rest
