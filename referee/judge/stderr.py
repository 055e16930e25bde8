"""The kept part of a bot's standard error (its beginning and its end), and the extraction of last words."""

import re

DEFAULT_KEPT_BYTES = 64 * 1024
"""Bytes kept of each bot's standard error per game: a long traceback is about 10 KiB."""


class StderrBuffer:
    """A buffer that keeps at most ``limit`` of the bytes it receives: the first quarter and the latest rest.

    The end matters more, since it describes a crash; the beginning describes how the bot was set up.
    """

    def __init__(self, limit: int = DEFAULT_KEPT_BYTES) -> None:
        self._head_limit = limit // 4
        self._tail_limit = limit - self._head_limit
        self._head = b""
        self._tail = b""
        self.total = 0
        """Number of bytes received, kept or not."""

    def feed(self, data: bytes) -> None:
        """Add received bytes."""
        self.total += len(data)
        room = self._head_limit - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail = (self._tail + data)[-self._tail_limit :]

    def text(self) -> str:
        """Return the kept text; a line in it gives the number of missing bytes, if there are any."""
        missing = self.total - len(self._head) - len(self._tail)
        if missing <= 0:
            return _with_notices_marked((self._head + self._tail).decode("utf-8", "backslashreplace"))
        return _with_notices_marked(
            self._head.decode("utf-8", "backslashreplace")
            + f"\n[... {missing} bytes not kept ...]\n"
            + self._tail.decode("utf-8", "backslashreplace")
        )

    def last_words(self) -> str:
        """Return the last words, for a verdict: the line that describes the error, and its location."""
        return last_words(self.text())


# Patterns are texts, which `re` compiles when they are first used: few games end with an error message.
_NOTICE = (
    r"^(NOTE: Picked up JDK_JAVA_OPTIONS: -Xlog:disable |Picked up JAVA_TOOL_OPTIONS: "
    r"-XX:\+IgnoreUnrecognizedVMOptions -XX:\+DisplayVMOutputToStderr )"
)
"""Java's notice about the variables that Kalarena sets (referee/sandbox/runtime_settings.py)."""
NOTICE_MARK = "  [set by Kalarena: the limits of the bot]"
"""Remark added to such a line in the kept text."""


def is_notice(line: str) -> bool:
    """Return True if a line is Java's notice of Kalarena's settings, which are no fault of the bot's."""
    return re.match(_NOTICE, line) is not None


def _with_notices_marked(text: str) -> str:
    if "Picked up J" not in text:
        return text
    return "\n".join(
        line + NOTICE_MARK if is_notice(line) and not line.endswith(NOTICE_MARK) else line
        for line in text.split("\n")
    )


_LOCATION = r'^ *File "(?P<file>[^"]{1,4096})", line (?P<line>\d+)(?:, in (?P<function>.+))?$'
_PYTHON_OWN = r"/lib/python3[.0-9]*/(?!.*(site|dist)-packages/)|^<frozen "
_SYNTAX = r"^(SyntaxError|IndentationError|TabError): "
MAX_MESSAGE_LINES = 4
"""Most lines of a Python error message; more lines after a traceback are other text."""

_JAVA_FRAME = (
    r"^\s+at (?P<function>\S+?)\((?P<file>[^():]+)(?::(?P<line>\d+))?\)$|^\s+at |^\s+\.\.\. \d+ (more|common)"
)
_JAVA_HEAD = r"^(Exception in thread |Caused by: |[\w.$]+(Exception|Error)\b)"
_JAVA_PREFIX = r'^(Exception in thread "main" |Caused by: )'
_JAVA_OWN = r"^(java|javax|jdk|sun)\b"

_NODE_ERROR = r"^(\w*Error)\b(?: \[\w+\])?(: .*)?$"
_NODE_FRAME = (
    r"^ +at (?:(?P<function>.+?) \()?(?P<file>/[^()]+|[^():]+\.m?js|node:internal/[^():]+)"
    r":(?P<line>\d+):\d+\)?"
)
_NODE_PROPERTY = r"^(  \w+: .*|\})$"
_NODE_NATIVE = r"^ *\d+: 0x[0-9a-f]+ "

_DOTNET_HEAD = r"^Unhandled exception\. (?P<words>[\w.]+: .*|[\w.]+)$"
_DOTNET_FRAME = r"^   at (?P<function>[^()]+)\([^()]*\)(?: in (?P<file>.+):line (?P<line>\d+))?$"

_GO_HEAD = r"^(panic: |fatal error: |runtime: goroutine stack exceeds )"
_GO_FRAME = r"^\t(?P<file>.+\.go):(?P<line>\d+)(?: \+0x[0-9a-f]+)?$"

_RUST_PANIC = r"^thread '[^']*'(?: \(\d+\))? panicked at (?P<file>[^:']+):(?P<line>\d+):\d+:$"
_LUA_STACK = "stack traceback:"
# The repetitions are bounded, since a bot chooses its lines: without bounds a long one takes seconds.
_LUA_HEAD = r"^(?:\S{0,200}/)?lua[\w.-]{0,20}: (?:(?P<file>[^:]+):(?P<line>\d+): )?(?P<words>.+)$"
MAX_LUA_LINES = 40
"""Most lines of a Lua error message: a missing module is followed by all places where it was sought."""
_TERMINATE = r"^terminate called after throwing an instance of '(?P<type>.+)'$"
_UNINFORMATIVE = (
    r"^(note: |(/\S*/)?env: use -\[v\]S|Error: Could not create the Java Virtual Machine|"
    r"Error: A fatal exception has occurred|exit status \d+$|Aborted( \(core dumped\))?$)"
)
"""Pattern of lines that come after the informative one."""
_GAP = r"^\[\.\.\. \d+ bytes not kept \.\.\.\]$"


def last_words(text: str) -> str:
    """Return the most informative line, with the location in the bot's own program if the text has one.

    That is the error of a Python traceback, the last exception of a Java one, the exception of .NET, the
    error of Node or Lua, the panic of Go or Rust, the message of a C++ exception; else the last line that is
    not blank.
    """
    lines = [line.rstrip() for line in text.split("\n") if line.strip() and not is_notice(line)]
    while len(lines) > 1 and re.match(_UNINFORMATIVE, lines[-1]):
        lines.pop()
    if not lines:
        return ""
    for find in (_giving_up, _node, _java, _dotnet, _go, _rust, _lua, _cplusplus, _python):
        found = find(lines)
        if found:
            return found
    return lines[-1].strip()


_GIVING_UP = (
    r"^(?:\[ERROR\] FATAL UNHANDLED EXCEPTION: )?(?P<words>memory allocation of \d+ bytes failed$"
    r"|# There is insufficient memory for the Java|(?<=EXCEPTION: )\S.*)"
)
"""Pattern of lines after which a runtime always ends, though it may print more: Rust, Java, Mono."""


def _giving_up(lines: list[str]) -> str:
    for line in lines:
        found = re.match(_GIVING_UP, line)
        if found is not None:
            return line[found.start("words") :].removeprefix("# ")
    return ""


def _at(words: str, location: re.Match[str] | None, function: str = "") -> str:
    if location is None:
        return words
    file = re.split(r"[/\\]", location["file"])[-1]
    return f"{words} (at {file}, line {location['line']}{f', in {function}' if function else ''})"


def _python(lines: list[str]) -> str:
    starts = [
        number for number, line in enumerate(lines) if line.startswith("Traceback (most recent call last)")
    ]
    if re.match(_SYNTAX, lines[-1]):  # a program that could not even begin has no traceback line
        starts += [number for number, line in enumerate(lines) if re.match(_LOCATION, line)][-1:]
    if not starts:
        return ""
    location, error = None, None
    for number in range(starts[-1], len(lines)):
        found = re.match(_LOCATION, lines[number])
        if found is not None:
            if location is None or not re.search(_PYTHON_OWN, found["file"]):
                location = found  # the location in the bot's own program, not in the library that it called
        elif location is not None and not lines[number].startswith(" "):
            error = number
            break
    if location is None or error is None or len(lines) - error > MAX_MESSAGE_LINES:
        return ""
    return _at(lines[error], location, location["function"] or "")


def _java(lines: list[str]) -> str:
    if len(lines) > 1 and lines[-2].startswith("Error: Could not find or load main class"):
        return lines[-2]
    if not re.match(_JAVA_FRAME, lines[-1]) or re.match(_NODE_FRAME, lines[-1]):
        return ""
    head = None
    frames: list[re.Match[str]] = []
    for number in range(len(lines) - 1, -1, -1):
        found = re.match(_JAVA_FRAME, lines[number])
        if found is not None:
            if found["line"] and not re.match(_JAVA_OWN, found["function"]):
                frames.append(found)
        elif re.match(_JAVA_HEAD, lines[number]):
            head = number if head is None else head
            if frames or not lines[number].startswith("Caused by: "):
                break  # else the location is further up, in the exception that this one has caused
        elif not re.match(_GAP, lines[number]) and not (number and re.match(_GAP, lines[number - 1])):
            break
    if head is None:
        return ""
    location = frames[-1] if frames else None
    return _at(re.sub(_JAVA_PREFIX, "", lines[head]), location, location["function"] if location else "")


def _node(lines: list[str]) -> str:
    if re.match(_NODE_NATIVE, lines[-1]):
        return next((line for line in reversed(lines) if line.startswith("FATAL ERROR: ")), "")
    if not lines[-1].startswith("Node.js v"):  # as Node 16 and older end
        last = len(lines) - 1
        while last and re.match(_NODE_PROPERTY, lines[last]):
            last -= 1
        if not re.match(_NODE_FRAME, lines[last].removesuffix(" {")):
            return ""
    for number in range(len(lines) - 1, -1, -1):
        if re.match(_NODE_ERROR, lines[number]):
            frames = (re.match(_NODE_FRAME, line) for line in lines[number:])
            location = next((frame for frame in frames if frame and frame["file"].startswith("/")), None)
            function = (location["function"] or "") if location else ""
            return _at(lines[number], location, "" if "<anonymous>" in function else function)
    return ""


def _dotnet(lines: list[str]) -> str:
    if not re.match(_DOTNET_FRAME, lines[-1]):
        return ""
    heads = [
        (number, head)
        for number, line in enumerate(lines)
        if (head := re.match(_DOTNET_HEAD, line)) is not None
    ]
    if not heads:
        return "Stack overflow." if "Stack overflow." in lines else ""
    number, head = heads[-1]
    frames = (re.match(_DOTNET_FRAME, line) for line in lines[number:])
    own = next((frame for frame in frames if frame and frame["file"]), None)
    return _at(head["words"], own, own["function"] if own else "")


def _go(lines: list[str]) -> str:
    stacks = [
        number
        for number, line in enumerate(lines)
        if line.startswith("goroutine ") or line == "runtime stack:"
    ]
    if not stacks:
        return ""
    for number in range(stacks[0] - 1, -1, -1):
        if re.match(_GO_HEAD, lines[number]):
            frames = (re.match(_GO_FRAME, line) for line in lines[stacks[0] :])
            own = (frame for frame in frames if frame and "/src/runtime/" not in frame["file"])
            return _at(lines[number], next(own, None))
    return ""


def _rust(lines: list[str]) -> str:
    for number in range(max(0, len(lines) - MAX_MESSAGE_LINES), len(lines) - 1):
        location = re.match(_RUST_PANIC, lines[number])
        if location is not None:
            return _at(
                f"panicked: {lines[number + 1]}", None if "/library/" in location["file"] else location
            )
    return ""


def _lua(lines: list[str]) -> str:
    if _LUA_STACK not in lines:
        return ""
    stack = len(lines) - 1 - lines[::-1].index(_LUA_STACK)
    if not all(line.startswith("\t") for line in lines[stack + 1 :]):
        return ""  # the bot survived it, and printed more afterwards
    for number in range(stack - 1, max(-1, stack - 1 - MAX_LUA_LINES), -1):
        head = re.match(_LUA_HEAD, lines[number])
        if head is not None:
            return _at(head["words"], head if head["file"] else None)
    return ""


def _cplusplus(lines: list[str]) -> str:
    found = re.match(_TERMINATE, lines[-2]) if len(lines) > 1 else None
    if found is None or not lines[-1].startswith("  what():  "):
        return ""
    what = lines[-1].removeprefix("  what():  ")
    return what if what == found["type"] else f"{found['type']}: {what}"
