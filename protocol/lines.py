"""Bytes -> lines, with a maximum length."""

MAX_LINE_BYTES = 1024
"""A longer line is a flood.  The longest line that a bot of ours needs is below 20 bytes; the
course's bots were seen to send (as debug text) less than 200."""


class LineBuffer:
    """Collects bytes and gives back complete lines.

    Only a line feed ends a line; a carriage return before it stays in the line, so that the codec
    can tell the student about it.  A line longer than the maximum, complete or not, is an overflow:
    from then on nothing more is given.
    """

    def __init__(self, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self._max = max_line_bytes
        self._rest = b""
        self.overflow: bytes | None = None
        """The first bytes of the line that was too long, as many as were allowed; else None."""

    def feed(self, data: bytes) -> list[bytes]:
        """Add bytes; return the lines that they complete, in order, without their line feeds.

        Lines that came before one that is too long are still returned; ``overflow`` is set then.
        """
        if self.overflow is not None:
            return []
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        if len(data) > self._max or len(self._rest) > self._max:
            for index, line in enumerate([*lines, self._rest]):
                if len(line) > self._max:
                    self.overflow = line[: self._max]
                    self._rest = b""
                    return lines[:index]
        elif lines and len(lines[0]) > self._max:  # a line begun earlier; later ones are below len(data)
            self.overflow = lines[0][: self._max]
            self._rest = b""
            return []
        return lines

    @property
    def unfinished(self) -> bytes:
        """What came after the last line feed: at the end of a game, a reply that was never ended."""
        return self._rest
