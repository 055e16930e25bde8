"""Runtimes that give up: error messages on standard output, ends of processes, and their verdicts."""

from typing import Any

import pytest

from referee.judge.events import BotExited, Event, LimitPassed, LineTooLong, OutputClosed
from referee.judge.faults import CAUSE_WAIT_US, MAX_MESSAGE_LINES
from referee.judge.limits import DEFAULT_WIRE_BYTES, Limits
from referee.judge.match import MAX_QUEUED_LINES
from referee.judge.results import Reason
from referee.judge.runtime_messages import HINTS, MEMORY, begins_error_message, classify_exit
from tests.support.judging import Judged

MESSAGES = {
    # Output of the programs of tests/process/test_real_programs.py, on standard output or as if there.
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


def with_message(line: str = "#", **options: Any) -> Judged:
    """A game in which the first line of the player on turn begins an error message."""
    judged = Judged(**options)
    judged.line(0, line, 0.25)
    return judged


@pytest.mark.parametrize("name", MESSAGES)
def test_an_error_message_on_standard_output_is_a_lack_of_memory(name: str) -> None:
    judged = Judged()
    for line in MESSAGES[name]:
        if judged.match.result is None:
            judged.line(0, line, 0.25)
    assert (judged.result.reason, judged.result.fault) == (Reason.MEMORY, "out-of-memory")
    assert "it ran out of memory on its turn" in judged.result.detail
    assert "complained on standard output" in judged.result.note
    assert not judged.match.moves


NO_MESSAGES = ["MOVE;1", "SWAP", "# depth 4", "thinking", "", "END", "memory", "evaluation: 12", "runtime: 5"]


@pytest.mark.parametrize("line", NO_MESSAGES)
def test_other_lines_begin_no_error_message(line: str) -> None:
    assert not begins_error_message(line)


def test_an_error_message_without_a_cause_breaks_the_protocol() -> None:
    judged = with_message()
    judged.line(0, "MOVE;1", 0.25)
    assert judged.match.result is None
    assert not judged.match.moves
    judged.tell(BotExited(0, 0.5, 134, "", "secret"))
    assert judged.result.reason is Reason.PROTOCOL
    assert "it sent '#'" in judged.result.detail
    assert "secret" not in judged.result.detail


def test_the_wait_for_a_cause_ends_with_the_turn() -> None:
    judged = with_message()
    assert judged.match.deadline is not None
    assert judged.match.deadline <= min(0.5 + 1.0 + 0.25, 0.25 + CAUSE_WAIT_US / 1e6)
    judged.wait_until(judged.match.deadline + 0.125)
    assert judged.result.reason is Reason.PROTOCOL


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (OutputClosed(0, 0.5, "Terminating due to OutOfMemoryError"), Reason.MEMORY),
        (OutputClosed(0, 0.5, ""), Reason.PROTOCOL),
        (LineTooLong(0, 0.5, "x"), Reason.PROTOCOL),
        (LimitPassed(0, 0.5, "memory", 600, 512), Reason.MEMORY),
        (BotExited(0, 0.5, 1, "", "java.lang.OutOfMemoryError: Java heap space"), Reason.MEMORY),
    ],
)
def test_an_error_message_ends_with_the_output_a_long_line_or_a_limit(event: Event, reason: Reason) -> None:
    judged = with_message()
    judged.tell(event)
    assert judged.verdict == (1, reason)


def test_an_error_message_is_bounded_in_lines_and_bytes() -> None:
    judged = with_message()
    for _ in range(MAX_MESSAGE_LINES - 1):
        judged.line(0, "#")
    assert judged.result.reason is Reason.PROTOCOL
    judged = with_message(wire_bytes=4096)
    judged.line(0, "x" * 4096)
    assert judged.result.reason is Reason.PROTOCOL


def test_a_fault_of_the_other_bot_comes_after_the_error_message() -> None:
    judged = with_message()
    judged.tell(BotExited(1, 0.3, 1, "", "MemoryError"))
    assert judged.match.result is None
    judged.tell(BotExited(0, 0.5, 1, "", ""))
    assert judged.result.winner == 1


@pytest.mark.parametrize(
    ("length", "most"), [(6, MAX_QUEUED_LINES), (4000, DEFAULT_WIRE_BYTES // 4001)], ids=["lines", "bytes"]
)
def test_a_flood_of_the_other_bot_ends_the_wait(length: int, most: int) -> None:
    judged = with_message()
    for _ in range(most):
        judged.line(1, "x" * length)
    assert judged.match.result is None
    judged.line(1, "x" * length)
    assert judged.verdict == (1, Reason.PROTOCOL)
    judged.line(1, "x" * length)
    assert sum(line.direction == "from" for line in judged.match.wire) == most + 2


def test_the_note_on_an_error_message_names_full_directories() -> None:
    judged = with_message()
    judged.tell(BotExited(0, 0.5, 1, "", "IndexError: list index out of range", 0, "/scratch"))
    assert "no space was left in /scratch" in judged.result.note


@pytest.mark.parametrize("exits", [True, False])
def test_an_error_message_before_the_turn_of_its_bot(exits: bool) -> None:
    judged = Judged()
    for line in MESSAGES["java commit"]:
        judged.line(1, line, 0.25)
    if exits:
        judged.tell(BotExited(1, 0.5, 1, "", ""))
        assert "while it was not its turn" in judged.result.detail
    else:
        judged.line(0, "MOVE;2", 0.5)
    assert judged.verdict == (0, Reason.MEMORY)


def fault_of(*exit_: Any, **options: Any) -> str | None:
    """The fault of a process that ended like this; None for a plain exit."""
    hint = classify_exit(*exit_, **options)
    return hint.fault if hint else None


@pytest.mark.parametrize(
    ("status", "words", "share", "fault"),
    [
        (1, "MemoryError", 0.0, "out-of-memory"),
        (134, "memory allocation of 9 bytes failed", 0.0, "out-of-memory"),
        (1, "MemoryError: 9 bytes (at bot.py, line 3, in grow)", 0.0, "out-of-memory"),
        (1, "java.lang.OutOfMemoryError: Java heap space", 0.0, "out-of-memory"),
        (1, 'Exception in thread "worker" java.lang.OutOfMemoryError: Java heap space', 0.0, "out-of-memory"),
        (3, "Terminating due to java.lang.OutOfMemoryError: Java heap space", 0.0, "out-of-memory"),
        (1, "Exception: java.lang.OutOfMemoryError thrown from the UncaughtException", 0.0, "out-of-memory"),
        (1, "Could not reserve enough space for 2969600KB object heap", 0.0, "out-of-memory"),
        (-5, "# Fatal process out of memory: Zone", 0.0, "out-of-memory"),
        (-6, "terminate called after throwing an instance of 'std::bad_alloc'", 0.0, "out-of-memory"),
        (134, "std::system_error: Cannot allocate memory", 0.0, "out-of-memory"),
        (1, "lua5.4: bot.lua:3: not enough memory", 0.0, "out-of-memory"),
        (-6, "Out of memory.", 0.0, "out-of-memory"),
        (1, "* Error: Garbage collector could not allocate 16 bytes of memory", 0.0, "out-of-memory"),
        (1, "malloc: Cannot allocate memory", 0.0, "out-of-memory"),
        (200, "sh: 1: Cannot allocate memory", 0.0, "out-of-memory"),
        (0, "MemoryError", 0.0, None),  # it went on, and ended by itself
        (-9, "", 0.95, "out-of-memory"),
        (137, "", 0.95, "out-of-memory"),
        (-11, "", 0.95, "out-of-memory"),
        (-9, "", 0.5, None),
        (137, "", 0.0, None),
        (1, "", 0.95, None),
        (-25, "", 0.0, "file-too-large"),
        (153, "", 0.0, "file-too-large"),
        (-11, "Read-only file system", 0.0, None),  # a warning, perhaps an old one
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
def test_ends_of_processes(status: int, words: str, share: float, fault: str | None) -> None:
    assert fault_of(status, words, share) == fault


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
    assert fault_of(status, words, 0.0, full=True) == fault


@pytest.mark.parametrize(
    ("limit", "reason", "fault"),
    [
        ("memory", Reason.MEMORY, "memory-limit"),
        ("files", Reason.FILES, "too-many-files"),
        ("process", Reason.EXIT, "process-limit"),
    ],
)
def test_limits_that_are_passed(limit: str, reason: Reason, fault: str) -> None:
    judged = Judged()
    judged.tell(LimitPassed(0, 0.25, limit, 600, 512))
    assert (judged.result.reason, judged.result.fault) == (reason, fault)


def test_the_sentence_names_the_limit_and_a_heap_that_fits() -> None:
    judged = with_message("Error occurred during initialization of VM", limits=Limits(memory_mb=300))
    judged.line(0, "Could not reserve enough space for 8388608KB object heap")
    assert "(300 MB are allowed)" in judged.result.detail
    assert "-Xmx150m" in judged.result.detail


def test_a_full_directory_has_no_limit_of_another_one() -> None:
    judged = Judged(limits=Limits(scratch_mb=64, directory_mb=2))
    judged.tell(BotExited(0, 0.1, 1, "", "OSError: No space left on device", 0, "its working directory"))
    assert judged.result.fault == "disk-full"
    assert "are allowed" not in judged.result.detail
    assert judged.result.note.endswith("no space was left in its working directory")
    earlier = Judged(limits=Limits(scratch_mb=64, directory_mb=2), judge=3)
    earlier.tell(BotExited(0, 0.1, 1, "", "OSError: No space left on device", 0, "its working directory"))
    assert "(64 MB are allowed)" in earlier.result.detail  # records of earlier judges follow


def test_the_note_names_the_same_heap_as_the_sentence() -> None:
    words = "FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory"
    judged = Judged(limits=Limits(memory_mb=2048))
    judged.tell(BotExited(0, 0.1, 1, "", words))
    assert "--max-old-space-size=1024" in judged.result.detail
    assert "--max-old-space-size=1024" in judged.result.note


def test_every_runtime_has_advice() -> None:
    runtimes = {name.partition("-")[0] for name, hint in HINTS.items() if hint.fault == MEMORY}
    assert runtimes == {"java", "node", "go", "rust", "cplusplus", "python", "lua", "dotnet", "memory"}
    assert all(hint.advice and hint.cause for hint in HINTS.values())


@pytest.mark.parametrize("full", ["", "/scratch"])
def test_earlier_judges_do_not_know_the_file_errors_of_go(full: str) -> None:
    end = BotExited(0, 0.25, 2, "", "panic: open log.txt: read-only file system", 0, full)
    judged, earlier = Judged(), Judged(judge=4)
    judged.tell(end)
    earlier.tell(end)
    assert (judged.result.reason, judged.result.fault) == (Reason.FILES, "read-only")
    assert (earlier.result.reason, earlier.result.fault) == (Reason.EXIT, "exited")


@pytest.mark.parametrize("judge", [4, 5])
def test_all_judges_know_the_file_errors_of_node(judge: int) -> None:
    judged = Judged(judge=judge)
    words = "Error: EROFS: read-only file system, open 'log.txt' (at bot.js, line 3, in main)"
    judged.tell(BotExited(0, 0.25, 1, "", words))
    assert (judged.result.reason, judged.result.fault) == (Reason.FILES, "read-only")
