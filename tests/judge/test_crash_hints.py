"""Explanations of crashes: the end of a standard error, its quoted line, and the meaning of that line."""

import re
import signal
import time
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest

from referee.judge.crash_hints import (
    EXPLANATIONS,
    SIGNALS,
    explain,
    explain_line,
    explain_status,
    signal_name,
)
from referee.judge.events import BotExited
from referee.judge.limits import Limits
from referee.judge.results import Reason
from referee.judge.runtime_messages import BEGINNING, DYING, HINTS, begins_error_message, classify_exit
from referee.judge.stderr import DEFAULT_KEPT_BYTES, StderrBuffer, last_words
from referee.judge.verdict_text import known_last_words
from tests.support.judging import Judged
from tests.support.paths import TEST_DATA

ENDS: list[dict[str, Any]] = tomllib.loads((TEST_DATA / "stderr.toml").read_text(encoding="utf-8"))["end"]

MISSING_FILE = "Caused by: java.io.IOException: error=2, No such file or directory"
"""The end of a program whose message does not name the file."""

NOTICES = (
    "NOTE: Picked up JDK_JAVA_OPTIONS: -Xlog:disable -Xlog:all=warning:stderr\n"
    "Picked up JAVA_TOOL_OPTIONS: -XX:+IgnoreUnrecognizedVMOptions -XX:+DisplayVMOutputToStderr -Xmx352m\n"
)
"""Lines that Java prints because of Kalarena's own settings."""


@pytest.mark.parametrize("end", ENDS, ids=lambda end: end["name"])
def test_end_of_a_real_program_is_quoted_and_explained(end: dict[str, Any]) -> None:
    assert last_words(end["text"]) == end["words"]
    sentence = explain(end["words"])
    if "explanation" not in end:
        assert sentence == ""
        return
    template = EXPLANATIONS[end["explanation"]][1]
    assert sentence.startswith(template.partition("{")[0])
    assert "{" not in sentence
    assert not sentence.endswith(".")
    assert len(sentence) <= 260


@pytest.mark.parametrize("status", [1, -signal.SIGABRT])
def test_a_program_that_dies_of_memory_or_a_file_has_that_fault(status: int) -> None:
    for end in ENDS:
        hint = HINTS.get(end.get("explanation", ""))
        if hint is not None and end["name"] != "system memory":  # a message of a program that may go on
            found = classify_exit(status, end["words"], share_held=0.0)
            assert (found.fault if found else "") == hint.fault, end["name"]


def test_every_explanation_has_a_real_text() -> None:
    assert {end["explanation"] for end in ENDS if "explanation" in end} | {"enoent"} == set(EXPLANATIONS)
    assert explain(MISSING_FILE) == EXPLANATIONS["enoent"][1]


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("EOFError: Ran out of input (at bot.py, line 4, in <module>)", ""),  # of pickle
        (
            "EOFError: Compressed file ended before the end-of-stream marker was reached (at bot.py, line 4)",
            "",
        ),
        ("EOFError (at bot.py, line 4, in <module>)", ""),  # of a pipe to a process of its own
        ("EOFError: EOF when reading a line (at bot.py, line 1)", "end-of-input"),
        (
            "IndentationError: expected an indented block after 'if' statement on line 1 (at bot.py, line 2)",
            "",
        ),
        ("IndentationError: unexpected indent (at bot.py, line 2)", "python-tabs"),
        ("IndentationError: unindent does not match any outer indentation level", "python-tabs"),
        ("java.lang.NoClassDefFoundError: Could not initialize class Board (at Bot.java, line 2)", ""),
        ("zipfile.BadZipFile: File is corrupted (at bot.py, line 3)", ""),
        ("corrupted size vs. prev_size while consolidating", "double-free"),
        ("corrupted double-linked list (not small)", "double-free"),
        ("double free or corruption (!prev)", "double-free"),
        ("free(): corrupted unsorted chunks", "double-free"),
        ("free(): invalid next size (fast)", "double-free"),
        ("malloc(): corrupted top size", "double-free"),
        ("malloc_consolidate(): unaligned fastbin chunk detected", "double-free"),
        ("realloc(): invalid old size", "double-free"),
        ("munmap_chunk(): invalid pointer", "double-free"),
        ("*** stack smashing detected ***: terminated", "double-free"),
    ],
)
def test_words_that_several_programs_use_are_explained_only_where_the_explanation_is_true(
    words: str, name: str
) -> None:
    assert explain(words) == (EXPLANATIONS[name][1] if name else "")


def test_a_blocking_io_error_has_both_of_its_causes() -> None:
    sentence = explain("BlockingIOError: [Errno 11] Resource temporarily unavailable (at bot.py, line 3)")
    assert "process or thread" in sentence
    assert "non-blocking descriptor" in sentence


def test_explanation_names_what_the_message_names() -> None:
    assert "numpy" in explain("ModuleNotFoundError: No module named 'numpy'")
    assert "GLIBC_2.99" in explain("x: version `GLIBC_2.99' not found (required by x)")
    assert "{0}" in explain("ModuleNotFoundError: No module named '{0}'")  # a text of the bot is no template


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ""),
        ("\n \n", ""),
        ("depth 3\ndepth 4\n\n", "depth 4"),
        ("KeyError: 'a'\n", "KeyError: 'a'"),
        ("note: this is all\n", "note: this is all"),
        ("Node.js v20.20.2\n", "Node.js v20.20.2"),
        ("    at home (x.js:1:2)\n", "at home (x.js:1:2)"),
        ("goroutine \n", "goroutine"),
        ("  what():  nothing\n", "what():  nothing"),
        ("Traceback (most recent call last):\n", "Traceback (most recent call last):"),
        # A traceback that the bot survived: it printed more afterwards.
        ('Traceback (most recent call last):\n  File "b.py", line 1\nKeyError: 1\na\nb\nc\nd\ne\n', "e"),
        # One of Lua, and frames of Java without the exception that they belong to.
        ("lua: b.lua:1: bad\nstack traceback:\n\t[C]: in ?\nplaying on\n", "playing on"),
        ("my own words\n\tat J.f(J.java:4)\n", "at J.f(J.java:4)"),
        ("no book\n" + NOTICES, "no book"),
        ("Picked up JAVA_TOOL_OPTIONS: -Dx=y", "Picked up JAVA_TOOL_OPTIONS: -Dx=y"),
    ],
)
def test_last_words_of_other_texts_are_their_last_line(text: str, words: str) -> None:
    assert last_words(text) == words


def test_a_deep_java_stack_keeps_its_first_line() -> None:
    frames = 'Exception in thread "main" java.lang.StackOverflowError\n' + 1024 * "\tat J.f(J.java:4)\n"
    assert last_words(frames) == "java.lang.StackOverflowError (at J.java, line 4, in J.f)"
    buffer = StderrBuffer(16 * 1024)
    buffer.feed(frames.encode())
    assert "bytes not kept" in buffer.text()
    assert buffer.last_words() == last_words(frames)


def test_notices_of_kalarenas_own_settings_are_marked_and_never_quoted() -> None:
    buffer = StderrBuffer()
    buffer.feed(NOTICES.encode())
    assert buffer.last_words() == ""
    assert buffer.text().count("[set by Kalarena: the limits of the bot]\n") == 2


@pytest.mark.parametrize("name", SIGNALS)
def test_signals_are_explained_with_and_without_a_shell(name: str) -> None:
    number = signal.Signals[name].value
    assert signal_name(number) == name
    assert explain_status(-number) == explain("", -number) == SIGNALS[name]
    assert explain_status(128 + number) == f"a shell's way to say that {name} killed it: {SIGNALS[name]}"


def test_other_statuses() -> None:
    assert explain_status(127) == "a shell's way to say: command not found"
    assert explain_status(126) == "a shell's way to say: found, but not executable"
    assert [explain_status(status) for status in (0, 1, 3, 128, 255, -99)] == [""] * 6
    assert signal_name(99) == "signal 99"
    assert explain("std::bad_alloc", -6) == EXPLANATIONS["cplusplus-memory"][1]  # the words come first


def test_output_of_a_java_that_could_not_start_is_explained() -> None:
    assert "heap" in explain_line("Error occurred during initialization of VM")
    assert "give up" in explain_line("#")
    assert explain_line("# comment") == explain_line("") == ""
    judged = Judged()
    judged.line(0, "Error occurred during initialization of VM")
    assert judged.match.result is None  # the cause may follow
    judged.line(0, "Initial heap size set to a larger value than the maximum heap size")
    judged.tell(BotExited(0, judged.at, 1, "", ""))
    assert judged.result.reason is Reason.PROTOCOL
    assert "too large" in judged.result.detail


def test_last_words_are_quoted_in_the_private_note_alone() -> None:
    judged = Judged()
    words = "ModuleNotFoundError: No module named 'secret' (at bot.py, line 3, in <module>)"
    judged.tell(BotExited(0, 0.1, 1, "", words))
    assert "secret" not in judged.result.detail
    assert judged.result.note.startswith('its last words on standard error: "ModuleNotFoundError')
    assert "(at bot.py, line 3, in <module>). That is: the module secret is not there" in judged.result.note


def test_a_quoted_line_is_shortened_before_its_location_and_has_no_control_characters() -> None:
    judged = Judged()
    judged.tell(BotExited(0, 0.1, 1, "", f"ValueError: {'x' * 200} (at bot.py, line 3)"))
    assert judged.result.note.endswith("xxx...' (at bot.py, line 3)")
    judged = Judged()
    judged.tell(BotExited(0, 0.1, 1, "", "ValueError: \x1b[2J (at \x1b)"))
    assert "\x1b" not in judged.result.note


def test_a_signal_is_explained_in_the_public_sentence() -> None:
    judged = Judged()
    judged.tell(BotExited(0, 0.1, -11, "", ""))
    assert "killed by SIGSEGV on its turn (a bad pointer, or a recursion too deep" in judged.result.detail
    assert judged.result.note == ""


PATTERNS = {name: pattern for name, (pattern, _) in EXPLANATIONS.items()}
PATTERNS |= {"beginning": BEGINNING.pattern, "dying": DYING.pattern}
ANYTHING = re.compile(
    r"\(\?(?:P<\w+>|[:!>])|\\[Sw][*+]?|\\b|\[[^]]*\][*+]?|\.[*+]|[.()$^][*+?]*|\?|\{[\d,]*\}"
)
"""Parts of a pattern that match any characters, or none."""


def repeated_parts(pattern: str) -> Iterator[str]:
    """Yield texts of 64 KB that repeat the beginning of an alternative of a pattern, up to each gap in it."""
    for alternative in pattern.split("|"):
        literal = re.sub(r"\\d[*+]?", "1", alternative)
        parts = [re.sub(r"\\(.)", r"\1", part) for part in ANYTHING.split(literal) if part]
        for count in range(1, len(parts) + 1):
            for part in ("".join(parts[:count]), "x".join(parts[:count])):
                yield (part * DEFAULT_KEPT_BYTES)[:DEFAULT_KEPT_BYTES]


@pytest.mark.slow
@pytest.mark.parametrize("name", PATTERNS)
def test_a_long_line_that_a_bot_chose_is_searched_in_the_time_of_a_game(name: str) -> None:
    """Some patterns took minutes for a line of 64 KB: in the game, and for each view of its page."""
    began = time.process_time()
    for text in repeated_parts(PATTERNS[name]):
        for words in (text, f"MemoryError{text}", f"MemoryError {text}"):
            explain(words)
            classify_exit(1, words, share_held=0.0)
            begins_error_message(words)
            known_last_words(words, Limits())
            assert time.process_time() - began < 60, words[:80]  # a second or two, whatever else runs


ENDS_OF_LINES = {
    "dotnet": ("Unhandled exception. E\n   at f(", ") in :x", ""),
    "dotnet file": ("Unhandled exception. E\n   at f() in ", "x:line ", ""),
    "node": ("Error: x\n    at f (/", " (/a", ":1:1"),
    "node line": ("Error: x\n    at f (/a.js", ":1", ":1)"),
    "java": ("Exception in thread x\n\tat ", "f(", "f:1)"),
}
"""Beginning, repeated part and end of texts that match the patterns of a runtime's frames nearly."""


@pytest.mark.parametrize("name", ENDS_OF_LINES)
def test_last_words_of_a_long_line_are_found_in_the_time_of_a_game(name: str) -> None:
    head, part, tail = ENDS_OF_LINES[name]
    began = time.process_time()
    last_words(head + part * (DEFAULT_KEPT_BYTES // len(part)) + tail)
    assert time.process_time() - began < 1  # a few milliseconds


def test_long_lines_of_real_programs_are_explained_as_short_ones() -> None:
    path = "/".join(["a-folder-with-a-long-name"] * 9)
    assert f"there is no {path} for it" in explain(f"[Errno 2] No such file or directory: '{path}'")
    values = ", ".join(map(str, range(2000)))
    words = f"MemoryError: {values} (at bot.py, line 3, in <module>)"
    assert explain(words) == EXPLANATIONS["python-memory"][1]
    assert classify_exit(1, words, share_held=0.0) == HINTS["python-memory"]
    assert "a recursion" in explain(f"java.lang.StackOverflowError: {values} (at Bot.java, line 3, in Bot.f)")
