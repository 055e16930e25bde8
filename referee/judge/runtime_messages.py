"""Error messages of runtimes that ran out of memory or could not write a file, with cause and advice (pure).

Sources of the texts: the output of real programs in tests/process and in tests/data/stderr.toml (OpenJDK 17,
Node 20, Go 1.19, Rust 1.95, g++ 12, Lua 5.4, CPython 3.11, Mono 6.8); those of .NET are in src/coreclr/vm and
src/coreclr/gc of dotnet/runtime.
"""

import re
import signal
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

MEMORY = "out-of-memory"
"""Fault of a bot that gave up by itself for lack of memory."""
READ_ONLY, DISK_FULL, TOO_LARGE, TOO_MANY = "read-only", "disk-full", "file-too-large", "too-many-files"
FILE_FAULTS = (READ_ONLY, DISK_FULL, TOO_LARGE, TOO_MANY)
"""Faults of a bot that ended because of a file."""

HEAP_MB = 256
"""The size of a heap in an example, where the memory of a bot is not limited."""
NEARLY_ALL = 0.9
"""Share of the memory limit above which a bot counts as near the limit."""
LONGEST_SEARCHED = 1000
"""Characters of a line in which patterns are searched for."""
SEARCHED_END = 400
"""Characters of these that are taken from the end of the line.  It has the location in the program."""


class Hint(NamedTuple):
    """One kind of error message."""

    pattern: str
    """A regular expression that is searched for in the last words."""
    fault: str
    """The fault of a bot that ends with this message; empty if the reason stays ``exit``."""
    cause: str
    advice: str
    """Instructions for the author; ``{heap}`` is a heap size in MiB that fits the limit."""


FEWER = "keep less: fewer entries in its tables, and no copy of each board that was ever seen"
FEWER_PROCESSES = "use fewer, and wait for them"
JAVA_HEAP = "give its command a heap that fits, for example java -Xmx{heap}m"

HINTS = {
    "java-heap": Hint(
        r"OutOfMemoryError: (Java heap space|GC overhead)|OutOfMemory encountered: Java heap",
        MEMORY,
        "its Java heap is full",
        "keep less, or if a bot may hold more, give its command a larger heap, for example java -Xmx{heap}m",
    ),
    "threads-java": Hint(
        r"unable to create (new )?native thread",
        "",
        "it started more processes or threads than a bot may have at the same time",
        FEWER_PROCESSES,
    ),
    "java-memory": Hint(
        r"OutOfMemoryError|os::commit_memory\(.{0,200}errno=12"
        r"|Could not (reserve|allocate).{0,200}(heap|space|memory|card)"
        r"|insufficient memory for the Java Runtime|Native memory allocation .{0,200}failed",
        MEMORY,
        "Java asked for more memory than a bot may hold",
        JAVA_HEAP,
    ),
    "node-memory": Hint(
        r"heap out of memory|Array buffer allocation failed|Fatal process out of memory",
        MEMORY,
        "Node found no memory for its heap, or for a buffer",
        "keep less, and bound its heap with node --max-old-space-size={heap}",
    ),
    "go-memory": Hint(
        r"runtime: (cannot allocate memory|out of memory)|fatal error: (out of memory|cannot allocate memory"
        r"|failed to reserve page summary)",
        MEMORY,
        "Go found no memory for its heap",
        "keep less, for example in smaller maps and slices, and set GOMEMLIMIT={heap}MiB (Go 1.19 or newer)",
    ),
    "rust-memory": Hint(
        r"memory allocation of \d+ bytes failed",
        MEMORY,
        "an allocation in Rust failed",
        "keep less: fewer entries in its table, and Vec::with_capacity instead of a Vec that doubles",
    ),
    "cplusplus-memory": Hint(
        r"\bbad_alloc\b|\bbad_array_new_length\b",
        MEMORY,
        "an allocation in C++ failed",
        "keep less: fewer entries in its table, and reserve() instead of a vector that doubles",
    ),
    "python-memory": Hint(
        r"\bMemoryError\b",
        MEMORY,
        "Python found no more memory",
        "keep less: fewer entries in its dictionaries, boards as bytes or one int, lru_cache with a maxsize",
    ),
    "lua-memory": Hint(
        r"\bnot enough memory\b", MEMORY, "Lua found no more memory", "keep less in its tables"
    ),
    "dotnet-memory": Hint(
        r"OutOfMemoryException|Garbage collector could not allocate|GC heap initialization failed"
        r"|0x8007000E|^Out of memory\.|[Mm]ono.{0,200}out of memory",
        MEMORY,
        "C# found no more memory",
        "keep less: fewer entries in its dictionaries, and arrays of structs instead of objects (Mono: "
        "MONO_GC_PARAMS=max-heap-size={heap}m)",
    ),
    "memory": Hint(r"[Cc]annot allocate memory|\bENOMEM\b", MEMORY, "the system refused memory", FEWER),
    "read-only": Hint(
        r"[Rr]ead-only file system|\bEROFS\b",
        READ_ONLY,
        "the file or folder is read-only in the sandbox",
        "write a new file in the bot's own directory, or below the directory that the environment variable "
        "TMPDIR names (both are gone after the game), or print to standard error",
    ),
    "file-size": Hint(
        r"[Ff]ile too large|\bEFBIG\b|File size limit exceeded",
        TOO_LARGE,
        "it wrote a file larger than a bot's files may be",
        "write less",
    ),
    "no-space": Hint(
        r"[Nn]o space left on device|\bENOSPC\b|Disk full\. Path",
        DISK_FULL,
        "the space for a bot's files in the sandbox is limited, and full",
        "write less",
    ),
    "open-files": Hint(
        r"[Tt]oo many open files|\bEMFILE\b",
        TOO_MANY,
        "it has too many files open at the same time",
        "close each when it has been read",
    ),
}
"""Name -> hint.  The first one that fits is taken."""

NEAR_THE_LIMIT = Hint("", MEMORY, "it was near the limit when it was killed by {signal}", FEWER)
"""Hint for a bot that left no error message."""
SIGXFSZ = HINTS["file-size"]


def searchable(text: str) -> str:
    """Return a text without the middle of its long lines, for the patterns of this module and of crash_hints.

    A bot chooses its lines, and some patterns need a time that grows with the square of a line's length.
    """
    if len(text) <= LONGEST_SEARCHED:
        return text
    return "\n".join(
        line
        if len(line) <= LONGEST_SEARCHED
        else f"{line[: LONGEST_SEARCHED - SEARCHED_END]} ... {line[-SEARCHED_END:]}"
        for line in text.split("\n")
    )


@lru_cache(maxsize=1)
def _compiled() -> list[tuple[re.Pattern[str], Hint]]:
    """Return the hints with compiled patterns.

    This takes milliseconds, and is done when the first bot has failed.
    """
    return [(re.compile(hint.pattern, re.MULTILINE), hint) for hint in HINTS.values()]


BEGINNING = re.compile(
    r"#$|Error occurred during initialization of VM|.{1,40} VM warning: |Exception in thread "
    r"|java\.lang\.OutOfMemoryError|(Terminating|Aborting) due to java\.|Error: Could not |FATAL ERROR: "
    r"|<--- Last few GCs|fatal error: |runtime: [a-z]|terminate called |Traceback \(most recent call last\)"
    r"|MemoryError|memory allocation of \d|(\S{0,200}/)?lua[\w.-]{0,20}: |not enough memory"
    r"|Unhandled [Ee]xception"
    r"|\[ERROR\] FATAL|Error: Garbage collector|Out of memory|GC heap init|Failed to create CoreCLR"
    r"|[Mm]ono.{0,40}out of memory"
)
"""Pattern of the first line of a runtime's error message, where it is printed on standard output."""
BEGINNING_OR_DEBUG_TEXT = re.compile(r"runtime: |\S{0,200}lua\S{0,200}: ")
"""Further lines that count as such for versions 2 to 5 of the judge, such as ``evaluation: 12``."""

DYING = re.compile(
    r"(?>\S.* \(at )\S.*, line \d+(, in .+)?\)$"  # ends as ``last_words`` ends a traceback
    r"|MemoryError$|Fatal Python error: "
    r"|(Exception in thread \"[^\"]*\" |Caused by: |(Terminating|Aborting) due to )?"
    r"java\.lang\.OutOfMemoryError(: [^,;]*)?$|Exception: java\.lang\.OutOfMemoryError thrown from "
    r"|.{1,40} VM warning: INFO: os::commit_memory|(#\s*)?(There is insufficient memory for the Java Runtime"
    r"|Native memory allocation |Could not (reserve|allocate) |(fatal error: )?OutOfMemory encountered: )"
    r"|FATAL ERROR: |(#\s*)?Fatal (process|JavaScript) out of memory"
    r"|fatal error: |panic: |runtime: (out of memory|cannot allocate memory)"
    r"|memory allocation of \d+ bytes failed|panicked: "
    r"|terminate called |libc\+\+abi: terminating |std::\w+(: .*)?$"
    r"|(\S{0,200}lua\S{0,200}: )?(\S+: )?not enough memory$"
    r"|([Uu]nhandled [Ee]xception[:.] )?System\.OutOfMemoryException\b|Out of memory\.$"
    r"|GC heap initialization failed|(\S+ )?(Error: )?Garbage collector could not allocate "
    r"|Failed to create CoreCLR"
    r"|\S{0,200}[Mm]ono.{0,200}out of memory"
    r"|(?![Ww]arning\b)(\S+: ){1,2}[Cc]annot allocate memory$"
    r"|\S+: error while loading shared libraries: "
)
"""Pattern of the beginning of last words after which a program ends: of a runtime that gives up, or of an
error that nothing caught.  A program may print the name of an error that it caught, and go on."""

_KNOWN_FILE_ERROR = re.compile(
    r"Read-only file system|File too large|No space left on device|Too many open files"
    r"|File size limit exceeded|Disk full\. Path|\bE(ROFS|FBIG|NOSPC|MFILE)\b"
)
"""Pattern of the errors of files that judges before version 5 know; Go's texts begin with a small letter."""
_OTHER_ERROR = re.compile(r"error|exception|panic|assert|fatal|terminate|fault|^std::", re.IGNORECASE)
_OF_WRITING = re.compile(
    r"\b(OSError|IOError|IOException|OperationalError|ios_base|filesystem_error)\b|\b(disk|space|quota|writ\w*)\b",
    re.IGNORECASE,
)

_KILLED = ("SIGKILL", "SIGABRT", "SIGSEGV", "SIGBUS", "SIGTRAP", "SIGILL")
_GAVE_UP = (signal.SIGABRT, signal.SIGKILL, signal.SIGTRAP)
"""Signals by which a runtime ends itself, or is ended, when it finds no memory."""
_BY_CHOICE = (signal.SIGABRT, signal.SIGXFSZ)
"""Signals that end a program which could not write a file: an uncaught exception, or the file's size."""


def begins_error_message(line: str, *, or_debug_text: bool = False) -> bool:
    """Return True if a line on standard output is the first one of a runtime's error message.

    ``or_debug_text`` is true for versions of the judge up to 5.
    """
    earlier = or_debug_text and BEGINNING_OR_DEBUG_TEXT.match(line)
    return bool(earlier or BEGINNING.match(line))


def find_hint(text: str) -> Hint | None:
    """Return the first hint whose pattern is in the text; None if there is none."""
    text = searchable(text)
    return next((hint for pattern, hint in _compiled() if pattern.search(text)), None)


def find_fault(lines: Sequence[str]) -> Hint | None:
    """Return the hint with a fault for an error message on standard output; None if there is none (yet)."""
    hint = find_hint("\n".join(lines))
    return hint if hint is not None and hint.fault else None


def classify_exit(
    status: int, words: str, share_held: float, *, full: bool = False, knows_go: bool = True
) -> Hint | None:
    """Return the cause of a process's end if that is a lack of memory, or a file.

    Args:
        status: Its exit status; negative for a signal's number.
        words: Its last words on standard error, as ``referee.judge.stderr.last_words`` returns them.
        share_held: The share of its memory limit that it held at the last check.
        full: Whether a directory that it could write had no space left.
        knows_go: Whether Go's errors of files are known; earlier versions of the judge do not know them.

    Returns:
        A hint with a fault, or None: the end has another cause, or an unknown one.
    """
    words = searchable(words)
    number = -status if status < 0 else status - 128 if status > 128 else 0
    hint = find_hint(words)
    if hint is not None and hint.fault in FILE_FAULTS:
        hint = hint if knows_go or _KNOWN_FILE_ERROR.search(words) else None
    if number == signal.SIGXFSZ:
        return SIGXFSZ
    by_itself = number == 0 or number not in set(signal.Signals)
    if full and hint is None and status and (number == 0 or number in _BY_CHOICE):
        return None if _name_another_error(words) else HINTS["no-space"]
    if hint is not None and hint.fault == MEMORY and status:
        is_dying = (by_itself or number in _GAVE_UP) and DYING.match(words) is not None
        return hint if is_dying or share_held >= NEARLY_ALL else None
    if hint is not None and status:
        return hint if hint.fault and (by_itself or number in _BY_CHOICE) else None
    if share_held >= NEARLY_ALL and number in {signal.Signals[name].value for name in _KILLED}:
        name = signal.Signals(number).name
        return NEAR_THE_LIMIT._replace(cause=NEAR_THE_LIMIT.cause.format(signal=name))
    return None


def _name_another_error(words: str) -> bool:
    """Return True if last words name an error that has nothing to do with a full disk."""
    return _OTHER_ERROR.search(words) is not None and _OF_WRITING.search(words) is None


def advise(hint: Hint, memory_mb: int | None = None) -> str:
    """Return a hint's cause and advice as one sentence without its full stop."""
    heap = HEAP_MB if memory_mb is None else max(8, memory_mb // 2)
    return f"{hint.cause}: {hint.advice.replace('{heap}', str(heap))}"
