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
        """What it ends with, for a verdict: the line that tells what went wrong, and where."""
        return last_words(self.text())


_PLACE = re.compile(r'^ *File "(?P<file>[^"]+)", line (?P<line>\d+)(?:, in (?P<function>.+))?$')
_PYTHON_OWN = re.compile(r"/lib/python3[.0-9]*/(?!.*(site|dist)-packages/)|^<frozen ")
_SYNTAX = re.compile(r"^(SyntaxError|IndentationError|TabError): ")
MAX_MESSAGE_LINES = 4
"""What follows a Python traceback is the rest of its message if it is no longer, else other text."""

_JAVA_FRAME = re.compile(
    r"^\s+at (?P<function>\S+?)\((?P<file>[^():]+)(?::(?P<line>\d+))?\)$|^\s+at |^\s+\.\.\. \d+ (more|common)"
)
_JAVA_HEAD = re.compile(r"^(Exception in thread |Caused by: |[\w.$]+(Exception|Error)\b)")
_JAVA_PREFIX = re.compile(r'^(Exception in thread "main" |Caused by: )')
_JAVA_OWN = re.compile(r"^(java|javax|jdk|sun)\b")

_NODE_ERROR = re.compile(r"^(\w*Error)\b(?: \[\w+\])?(: .*)?$")
_NODE_FRAME = re.compile(
    r"^ +at (?:(?P<function>.+?) \()?(?P<file>/[^()]+|[^():]+\.m?js):(?P<line>\d+):\d+\)?"
)
_NODE_NATIVE = re.compile(r"^ *\d+: 0x[0-9a-f]+ ")

_GO_HEAD = re.compile(r"^(panic: |fatal error: |runtime: goroutine stack exceeds )")
_GO_FRAME = re.compile(r"^\t(?P<file>\S+\.go):(?P<line>\d+)(?: \+0x[0-9a-f]+)?$")

_RUST_PANIC = re.compile(r"^thread '[^']*'(?: \(\d+\))? panicked at (?P<file>[^:']+):(?P<line>\d+):\d+:$")
_TERMINATE = re.compile(r"^terminate called after throwing an instance of '(?P<type>.+)'$")
_NOT_TELLING = re.compile(
    r"^(note: |/\S*env: use -\[v\]S|Error: Could not create the Java Virtual Machine|"
    r"Error: A fatal exception has occurred|exit status \d+$)"
)
"""Lines that come after the one that tells."""
_GAP = re.compile(r"^\[\.\.\. \d+ bytes not kept \.\.\.\]$")


def last_words(text: str) -> str:
    """The line that tells most, with the place in the bot's own program if the text names one.

    That is the error of a Python traceback, the last exception of a Java one, the error of Node, the panic of
    Go or Rust, what C++ says of an exception; else the last line that is not blank.
    """
    lines = [line.rstrip() for line in text.split("\n") if line.strip()]
    while len(lines) > 1 and _NOT_TELLING.match(lines[-1]):
        lines.pop()
    if not lines:
        return ""
    for find in (_java, _node, _go, _rust, _cplusplus, _python):
        found = find(lines)
        if found:
            return found
    return lines[-1].strip()


def _at(words: str, place: re.Match[str] | None, function: str = "") -> str:
    if place is None:
        return words
    file = place["file"].rpartition("/")[2]
    return f"{words} (at {file}, line {place['line']}{f', in {function}' if function else ''})"


def _python(lines: list[str]) -> str:
    starts = [
        number for number, line in enumerate(lines) if line.startswith("Traceback (most recent call last)")
    ]
    if _SYNTAX.match(lines[-1]):  # has no such line if the program could not even begin
        starts += [number for number, line in enumerate(lines) if _PLACE.match(line)][-1:]
    if not starts:
        return ""
    place, error = None, None
    for number in range(starts[-1], len(lines)):
        found = _PLACE.match(lines[number])
        if found is not None:
            if place is None or not _PYTHON_OWN.search(found["file"]):
                place = found  # where the bot's own program was, not the library that it called
        elif place is not None and not lines[number].startswith(" "):
            error = number
            break
    if place is None or error is None or len(lines) - error > MAX_MESSAGE_LINES:
        return ""
    return _at(lines[error], place, place["function"] or "")


def _java(lines: list[str]) -> str:
    if len(lines) > 1 and lines[-2].startswith("Error: Could not find or load main class"):
        return lines[-2]
    if not _JAVA_FRAME.match(lines[-1]) or _NODE_FRAME.match(lines[-1]):
        return ""
    head = None
    frames: list[re.Match[str]] = []
    for number in range(len(lines) - 1, -1, -1):
        found = _JAVA_FRAME.match(lines[number])
        if found is not None:
            if found["line"] and not _JAVA_OWN.match(found["function"]):
                frames.append(found)
        elif _JAVA_HEAD.match(lines[number]):
            head = number if head is None else head
            if frames or not lines[number].startswith("Caused by: "):
                break  # else the place is further up, where this exception was passed on
        elif not _GAP.match(lines[number]) and not (number and _GAP.match(lines[number - 1])):
            break
    if head is None:
        return ""
    place = frames[-1] if frames else None
    return _at(_JAVA_PREFIX.sub("", lines[head]), place, place["function"] if place else "")


def _node(lines: list[str]) -> str:
    if _NODE_NATIVE.match(lines[-1]):
        return next((line for line in reversed(lines) if line.startswith("FATAL ERROR: ")), "")
    if not lines[-1].startswith("Node.js v"):
        return ""
    for number in range(len(lines) - 1, -1, -1):
        if _NODE_ERROR.match(lines[number]):
            frames = map(_NODE_FRAME.match, lines[number:])
            place = next((frame for frame in frames if frame and not frame["file"].startswith("node:")), None)
            function = (place["function"] or "") if place else ""
            return _at(lines[number], place, "" if "<anonymous>" in function else function)
    return ""


def _go(lines: list[str]) -> str:
    stacks = [number for number, line in enumerate(lines) if line.startswith("goroutine ")]
    if not stacks:
        return ""
    for number in range(stacks[0] - 1, -1, -1):
        if _GO_HEAD.match(lines[number]):
            frames = map(_GO_FRAME.match, lines[stacks[0] :])
            own = (frame for frame in frames if frame and "/src/runtime/" not in frame["file"])
            return _at(lines[number], next(own, None))
    return ""


def _rust(lines: list[str]) -> str:
    for number in range(max(0, len(lines) - MAX_MESSAGE_LINES), len(lines) - 1):
        place = _RUST_PANIC.match(lines[number])
        if place is not None:
            return _at(f"panicked: {lines[number + 1]}", None if "/library/" in place["file"] else place)
    return ""


def _cplusplus(lines: list[str]) -> str:
    found = _TERMINATE.match(lines[-2]) if len(lines) > 1 else None
    if found is None or not lines[-1].startswith("  what():  "):
        return ""
    what = lines[-1].removeprefix("  what():  ")
    return what if what == found["type"] else f"{found['type']}: {what}"
