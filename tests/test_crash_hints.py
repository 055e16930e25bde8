"""Runtimes that give up: complaints on standard output and at the end of a process, and their reasons."""

import pytest

from referee.judge.events import BotExited, LimitPassed, LineTooLong, OutputClosed
from referee.judge.limits import DEFAULT_WIRE_BYTES, Limits
from referee.judge.match import MAX_QUEUED_LINES, Match
from referee.judge.results import Reason
from referee.judge.runtime_failure import CAUSE_WAIT_US, MAX_MESSAGE_LINES
from referee.judge.runtime_messages import HINTS, begins_error_message, classify_exit
from tests.judging import Judged

COMPLAINTS = {
    # What the programs of tests/test_crash_hints_real.py wrote, on standard output or as if it were there.
    "java commit": ("#", "# There is insufficient memory for the Java Runtime Environment to continue."),
    "java reserve": (
        "Error occurred during initialization of VM",
        "Could not reserve enough space for 2969600KB object heap",
    ),
    "java warning": (
        "OpenJDK 64-Bit Server VM warning: INFO: os::commit_memory(0x1, 6193152, 0) failed; "
        "error='Not enough space' (errno=12)",
    ),
    "java exits": ("Terminating due to java.lang.OutOfMemoryError: Java heap space",),
    "java crashes": ("Aborting due to java.lang.OutOfMemoryError: Java heap space",),
    "java dump": ("java.lang.OutOfMemoryError: Java heap space", "Dumping heap to java_pid1.hprof ..."),
    "java thread": ('Exception in thread "main" java.lang.OutOfMemoryError: Java heap space',),
    "node": ("FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory",),
    "go": ("fatal error: runtime: out of memory",),
    "rust": ("memory allocation of 16777216 bytes failed",),
    "c++": ("terminate called after throwing an instance of 'std::bad_alloc'",),
    "python": ("Traceback (most recent call last):", '  File "bot.py", line 2', "MemoryError"),
    "lua": ("lua5.4: not enough memory",),
    "lua script": ("not enough memory",),
    "mono": ("Unhandled Exception:", "System.OutOfMemoryException: Insufficient memory to continue."),
    "mono collector": ("Error: Garbage collector could not allocate 16384 bytes of memory for major heap.",),
    ".net": ("Out of memory.",),
}


@pytest.mark.parametrize("name", COMPLAINTS)
def test_a_complaint_on_standard_output(name: str) -> None:
    judged = Judged()
    for line in COMPLAINTS[name]:
        if judged.match.result is None:
            judged.line(0, line, 0.25)
    assert (judged.result.reason, judged.result.fault) == (Reason.MEMORY, "out-of-memory")
    assert "it ran out of memory on its turn" in judged.result.detail
    assert "complained on standard output" in judged.result.note
    assert not judged.match.moves


@pytest.mark.parametrize("line", ["MOVE;1", "SWAP", "# depth 4", "thinking", "", "END", "memory"])
def test_other_lines_begin_no_complaint(line: str) -> None:
    assert not begins_error_message(line)


def test_a_complaint_without_a_cause_is_of_the_protocol() -> None:
    judged = Judged()
    judged.line(0, "#", 0.25)
    judged.line(0, "MOVE;1", 0.25)
    assert judged.match.result is None
    assert not judged.match.moves
    judged.tell(BotExited(0, 0.5, 134, "", "secret"))
    assert judged.result.reason is Reason.PROTOCOL
    assert "it sent '#'" in judged.result.detail
    assert "secret" not in judged.result.detail


def test_a_complaint_is_waited_for_until_the_turn_is_over() -> None:
    judged = Judged()
    judged.line(0, "#", 0.25)
    assert judged.match.deadline is not None
    assert judged.match.deadline <= min(0.5 + 1.0 + 0.25, 0.25 + CAUSE_WAIT_US / 1e6)
    judged.wait_until(judged.match.deadline + 0.125)
    assert judged.result.reason is Reason.PROTOCOL


def test_a_complaint_is_bounded_in_lines() -> None:
    judged = Judged()
    for _ in range(MAX_MESSAGE_LINES):
        judged.line(0, "#", 0.25)
    assert judged.result.reason is Reason.PROTOCOL


def test_a_complaint_ends_with_the_output_a_long_line_or_the_limit() -> None:
    for event, reason in (
        (OutputClosed(0, 0.5, "Terminating due to OutOfMemoryError"), Reason.MEMORY),
        (OutputClosed(0, 0.5, ""), Reason.PROTOCOL),
        (LineTooLong(0, 0.5, "x"), Reason.PROTOCOL),
        (LimitPassed(0, 0.5, "memory", 600, 512), Reason.MEMORY),
        (BotExited(0, 0.5, 1, "", "java.lang.OutOfMemoryError: Java heap space"), Reason.MEMORY),
    ):
        judged = Judged()
        judged.line(0, "#", 0.25)
        judged.tell(event)
        assert (judged.result.winner, judged.result.reason) == (1, reason)


def test_a_fault_of_the_other_bot_comes_after_the_complaint() -> None:
    judged = Judged()
    judged.line(0, "#", 0.25)
    judged.tell(BotExited(1, 0.3, 1, "", "MemoryError"))
    assert judged.match.result is None
    judged.tell(BotExited(0, 0.5, 1, "", ""))
    assert judged.result.winner == 1


@pytest.mark.parametrize(
    ("length", "most"), [(6, MAX_QUEUED_LINES), (4000, DEFAULT_WIRE_BYTES // 4001)], ids=["lines", "bytes"]
)
def test_a_flood_of_the_other_bot_ends_the_wait(length: int, most: int) -> None:
    judged = Judged()
    judged.line(0, "#", 0.25)
    for _ in range(most):
        judged.line(1, "x" * length, 0.3)
    assert judged.match.result is None
    judged.line(1, "x" * length, 0.3)
    assert (judged.result.winner, judged.result.reason) == (1, Reason.PROTOCOL)
    judged.line(1, "x" * length, 0.3)
    assert sum(line.direction == "from" for line in judged.match.wire) == most + 2


def test_long_lines_of_a_complaint_are_bounded_in_bytes() -> None:
    judged = Judged()
    match = judged.match
    judged.match = Match(match.game, match.control, match.names, wire_bytes=4096)
    judged._carry_out(judged.match.start(0.0))
    judged.line(0, "#", 0.25)
    judged.line(0, "x" * 4096, 0.25)
    assert judged.result.reason is Reason.PROTOCOL


def test_the_note_of_a_complaint_names_full_directories() -> None:
    judged = Judged()
    judged.line(0, "#", 0.25)
    judged.tell(BotExited(0, 0.5, 1, "", "IndexError: list index out of range", 0, "/scratch"))
    assert "no space was left in /scratch" in judged.result.note


def test_a_complaint_before_its_turn() -> None:
    judged = Judged()
    for line in COMPLAINTS["java commit"]:
        judged.line(1, line, 0.25)
    judged.tell(BotExited(1, 0.5, 1, "", ""))
    assert (judged.result.winner, judged.result.reason) == (0, Reason.MEMORY)
    assert "while it was not its turn" in judged.result.detail
    judged = Judged()
    for line in COMPLAINTS["java commit"]:
        judged.line(1, line, 0.25)
    judged.line(0, "MOVE;2", 0.5)
    assert (judged.result.winner, judged.result.reason) == (0, Reason.MEMORY)


@pytest.mark.parametrize(
    ("status", "words", "share", "fault"),
    [
        (1, "MemoryError", 0.0, "out-of-memory"),
        (-6, "std::bad_alloc", 0.0, "out-of-memory"),
        (134, "memory allocation of 9 bytes failed", 0.0, "out-of-memory"),
        (0, "MemoryError", 0.0, None),  # it went on, and ended by itself
        (-9, "", 0.95, "out-of-memory"),
        (137, "", 0.95, "out-of-memory"),
        (-11, "", 0.95, "out-of-memory"),
        (-9, "", 0.5, None),
        (137, "", 0.0, None),
        (1, "", 0.95, None),
        (1, "OSError: [Errno 30] Read-only file system: 'a'", 0.0, "read-only"),
        (1, "OSError: [Errno 28] No space left on device", 0.0, "disk-full"),
        (1, "OSError: [Errno 27] File too large", 0.0, "file-too-large"),
        (-25, "", 0.0, "file-too-large"),
        (153, "", 0.0, "file-too-large"),
        (1, "OSError: [Errno 24] Too many open files: 'a'", 0.0, "too-many-files"),
        (-11, "Read-only file system", 0.0, None),  # a warning, perhaps an old one
        (1, "RuntimeError: can't start new thread", 0.0, None),
        (1, "OutOfMemoryError: unable to create native thread", 0.0, None),
        (-11, "MemoryError: table cleared, playing on", 0.0, None),
        (-11, "MemoryError: table cleared, playing on", 0.95, "out-of-memory"),
        (-11, "MemoryError (at bot.py, line 3, in grow)", 0.0, None),  # a later bad pointer
        (-15, "std::bad_alloc", 0.0, None),
        (1, "MemoryError: table cleared, playing on", 0.0, None),
        (1, "warning: caught std::bad_alloc, shrinking table", 0.0, None),
        (1, "warning: caught std::bad_alloc, shrinking table", 0.95, "out-of-memory"),
        (1, "std::bad_alloc, shrinking table", 0.0, None),
        (1, "warning: mmap: Cannot allocate memory", 0.0, None),
        (1, "java.lang.OutOfMemoryError: Java heap space, smaller table", 0.0, None),
    ],
)
def test_ends(status: int, words: str, share: float, fault: str | None) -> None:
    hint = classify_exit(status, words, share)
    assert (hint.fault if hint else None) == fault


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (1, "MemoryError: 9 bytes (at bot.py, line 3, in grow)"),
        (1, "OSError: [Errno 12] Cannot allocate memory (at bot.py, line 3)"),
        (1, "java.lang.OutOfMemoryError: Java heap space (at Hog.java, line 3, in Hog.main)"),
        (1, "java.lang.OutOfMemoryError: Java heap space"),
        (1, 'Exception in thread "worker" java.lang.OutOfMemoryError: Java heap space'),
        (3, "Terminating due to java.lang.OutOfMemoryError: Java heap space"),
        (
            1,
            "Exception: java.lang.OutOfMemoryError thrown from the UncaughtExceptionHandler",
        ),
        (1, "Could not reserve enough space for 2969600KB object heap"),
        (
            1,
            "OpenJDK 64-Bit Server VM warning: INFO: os::commit_memory(0x1, 6, 0) failed; "
            "error='x' (errno=12)",
        ),
        (-6, "FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory"),
        (-5, "# Fatal process out of memory: Zone"),
        (1, "RangeError: Array buffer allocation failed (at buffers.js, line 1)"),
        (2, "fatal error: runtime: out of memory (at hog.go, line 4)"),
        (-6, "memory allocation of 16777216 bytes failed"),
        (-6, "terminate called after throwing an instance of 'std::bad_alloc'"),
        (-6, "std::bad_alloc"),
        (134, "std::system_error: Cannot allocate memory"),
        (1, "lua5.4: not enough memory"),
        (1, "lua5.4: bot.lua:3: not enough memory"),
        (1, "System.OutOfMemoryException: Out of memory"),
        (-6, "Out of memory."),
        (1, "* Error: Garbage collector could not allocate 16384 bytes of memory for major heap."),
        (1, "malloc: Cannot allocate memory"),
        (200, "sh: 1: Cannot allocate memory"),
    ],
)
def test_last_words_of_a_runtime_that_gives_up(status: int, words: str) -> None:
    hint = classify_exit(status, words, 0.0)
    assert hint is not None
    assert hint.fault == "out-of-memory"


@pytest.mark.parametrize(
    ("status", "words", "fault"),
    [
        (1, "", "disk-full"),
        (-6, "", "disk-full"),
        (-11, "", None),
        (1, "the log is incomplete", "disk-full"),
        (1, "OSError: [Errno 5] Input/output error (at bot.py, line 3)", "disk-full"),
        (1, "fwrite: short write, error 0", "disk-full"),
        (1, "IndexError: list index out of range (at bot.py, line 3, in think)", None),
        (-6, "Assertion `depth > 0' failed", None),
        (2, "panic: runtime error: index out of range [5]", None),
    ],
)
def test_an_end_with_a_full_directory(status: int, words: str, fault: str | None) -> None:
    hint = classify_exit(status, words, 0.0, full=True)
    assert (hint.fault if hint else None) == fault


@pytest.mark.parametrize(
    ("limit", "reason", "fault"),
    [
        ("memory", Reason.MEMORY, "memory-limit"),
        ("files", Reason.FILES, "too-many-files"),
        ("process", Reason.EXIT, "process-limit"),
    ],
)
def test_limits(limit: str, reason: Reason, fault: str) -> None:
    judged = Judged()
    judged.tell(LimitPassed(0, 0.25, limit, 600, 512))
    assert (judged.result.reason, judged.result.fault) == (reason, fault)


def test_the_sentence_names_the_limit_and_a_heap_that_fits() -> None:
    judged = Judged()
    match = judged.match
    judged.match = Match(match.game, match.control, match.names, limits=Limits(memory_mb=300))
    judged._carry_out(judged.match.start(0.0))
    judged.line(0, "Error occurred during initialization of VM", 0.25)
    judged.line(0, "Could not reserve enough space for 8388608KB object heap", 0.25)
    assert "(300 MB are allowed)" in judged.result.detail
    assert "-Xmx150m" in judged.result.detail


def test_every_runtime_has_advice() -> None:
    runtimes = {hint.runtime for hint in HINTS.values() if hint.fault}
    assert runtimes == {"Java", "Node", "Go", "Rust", "C++", "Python", "Lua", "C#", ""}
    assert all(hint.advice and hint.cause for hint in HINTS.values())
