"""What is kept of a bot's standard error: its beginning and its end."""

import re

DEFAULT_KEPT_BYTES = 64 * 1024
"""Kept of each bot's standard error per game: a long traceback is about 10 KiB."""


class StderrKeeper:
    """Takes any amount of bytes and keeps at most ``limit``: the first quarter and the latest rest.

    The end matters more, since a crash is told there; the beginning tells how the bot was set up.
    """

    def __init__(self, limit: int = DEFAULT_KEPT_BYTES) -> None:
        self._head_limit = limit // 4
        self._tail_limit = limit - self._head_limit
        self._head = b""
        self._tail = b""
        self.total = 0
        """Bytes that came, kept or not."""

    def feed(self, data: bytes) -> None:
        """Take some bytes."""
        self.total += len(data)
        room = self._head_limit - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail = (self._tail + data)[-self._tail_limit :]

    def text(self) -> str:
        """What is kept, with a line that says how much is missing, if any is."""
        missing = self.total - len(self._head) - len(self._tail)
        if missing <= 0:
            return (self._head + self._tail).decode("utf-8", "backslashreplace")
        return (
            self._head.decode("utf-8", "backslashreplace")
            + f"\n[... {missing} bytes not kept ...]\n"
            + self._tail.decode("utf-8", "backslashreplace")
        )

    def last_line(self) -> str:
        """The last line that is not blank; empty if there is none."""
        lines = (self._head[-1024:] + self._tail[-1024:]).decode("utf-8", "backslashreplace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")

    def last_words(self) -> str:
        """What it ends with, for a verdict: of a traceback the error and where it was, else the last line."""
        return last_words((self._head + self._tail)[-LOOKED_AT_BYTES:].decode("utf-8", "backslashreplace"))


LOOKED_AT_BYTES = 8192
"""The end of a traceback is in this much: each of its lines is short."""
_PLACE = re.compile(r'^ *File "(?P<file>[^"]+)", line (?P<line>\d+)(?:, in (?P<function>.+))?$')


def last_words(text: str) -> str:
    """The last line that is not blank, and if it ends a Python traceback, the place that this names last."""
    lines = [line.rstrip() for line in text.split("\n") if line.strip()]
    if not lines:
        return ""
    begins = [
        number for number, line in enumerate(lines) if line.startswith("Traceback (most recent call last)")
    ]
    places = [_PLACE.match(line) for line in lines[begins[-1] :]] if begins else []
    last = [place for place in places if place is not None]
    words = lines[-1].strip()
    if not last:
        return words
    file = last[-1]["file"].rpartition("/")[2]
    where = f"{file}, line {last[-1]['line']}"
    return (
        f"{words} (at {where}, in {last[-1]['function']})"
        if last[-1]["function"]
        else f"{words} (at {where})"
    )
