"""Explanations of a bot's end, from its last words on standard error and from its exit status.

The module is pure, so that a game judged again from its record gets the same sentences.  The last words, and
explanations derived from them, are private to the bot's author; the meaning of an exit status is public.
"""

import re
import signal
from functools import lru_cache

from referee.judge.runtime_messages import HINTS, advise, searchable

PROCESSES = (
    "it started more processes or threads than a bot may have at the same time: use fewer, and wait for them"
)
NETWORK = "a bot in the sandbox has no network: put all that it needs into its own directory"
READ_ONLY = advise(HINTS["read-only"])
DEEP = "a recursion went too deep: does it always come to an end? If so, use a loop, or a smaller depth"
END_OF_INPUT = (
    "its standard input has ended: the game was over, or the bot had closed it; stop reading after END"
)
NOT_A_NUMBER = "it took a text for a number: look at the line that it was reading, and at how it is split"
NEWER_JAVA = (
    "its classes were compiled by a newer Java than the one here: compile with javac --release set to what "
    "`java -version` says here"
)
LIBRARY = (
    "a shared library of it is not here (in the sandbox: /usr and its own directory): link it with -static"
)

EXPLANATIONS = {
    **{word: (hint.pattern, advise(hint)) for word, hint in HINTS.items()},
    # Processes and threads
    "python-would-block": (
        r"BlockingIOError: ",
        "the system refused a further process or thread (use fewer, and wait for them), or a non-blocking "
        "descriptor was not ready to be read or written (wait until it is)",
    ),
    "processes": (
        r"can't start new thread|[Rr]esource temporarily unavailable|fork: retry|Cannot fork\b"
        r"|spawn \S+ EAGAIN",
        PROCESSES,
    ),
    # Network
    "network": (
        r"[Nn]etwork is unreachable|\bENETUNREACH\b|[Aa]ddress family not supported|\bEAFNOSUPPORT\b"
        r"|[Nn]ame resolution|Name or service not known|\bEAI_AGAIN\b|UnknownHostException|no such host",
        NETWORK,
    ),
    # Something is missing, or is made for another system or version
    "python-module": (
        r"ModuleNotFoundError: No module named '(?P<what>[^']+)'",
        "the module {what} is not there: if it is your own, it must lie in the bot's directory (a bot that "
        "is a single file brings that file only); if it is a package, the Python that ran the bot does not "
        "have it",
    ),
    "python-circular": (
        r"ImportError: cannot import name '.{1,200}' from partially initialized module '(?P<what>[^']+)'",
        "the module {what} is imported again by a module that it imports: move the code that both need into "
        "a third module, or put the import into the function that uses it",
    ),
    "python-import": (
        r"ImportError: cannot import name '(?P<what>[^']+)'",
        "its Python has no {what} in that module: is it another version than yours, or has a file of yours "
        "the name of a standard module?",
    ),
    "node-module": (
        r"Cannot find module '(?P<what>[^']+)'",
        "the module {what} is not there: it must lie in the bot's directory, with node_modules",
    ),
    "lua-module": (
        r"\bmodule '(?P<what>[^']+)' not found:",
        "the module {what} is not there: it must lie in the bot's directory (a bot that is a single file "
        "brings that file only)",
    ),
    "python2": (
        r"Missing parentheses in call to 'print'|NameError: name '(raw_input|xrange|unicode)' is not defined",
        "it is written for Python 2, and was run by Python 3",
    ),
    "python-tabs": (
        r"\bTabError: |IndentationError: (unindent does not match|unexpected indent)",
        "its lines are not indented alike: indent all lines of a block by the same number of spaces, "
        "without tabs",
    ),
    "python-not-source": (
        r"SyntaxError: (source code|invalid non-printable character|\(unicode error\))",
        "Python cannot read this file: is it a program text in UTF-8?",
    ),
    "node-json": (
        r"\bSyntaxError: .{0,200}\bJSON\b",
        "JSON.parse was given a text that is not complete JSON: is it the text that the bot was meant to "
        "read?",
    ),
    "lua-syntax": (
        r"\blua[\w.-]{0,20}: [^:]{1,200}:\d+: .{1,200} near \S",
        "Lua cannot read this file as a program: try it with the same version of Lua as here",
    ),
    "syntax": (
        r"\bSyntaxError: (?!.*\(at <string>, line )",
        "it cannot be read as a program: try it with the same version of the interpreter as here",
    ),
    "java-main-class": (
        r"Could not find or load main class (?P<what>\S+)",
        "Java finds no class {what}: is it compiled, is the name spelt as in the file, with its package "
        "before it (my.Bot), does -cp name its directory, or the one that holds the package?",
    ),
    "java-jar": (
        r"Unable to access jarfile (?P<what>.+)",
        "there is no {what} where the bot is started, its own directory: is it built, and a part of the bot?",
    ),
    "java-no-main": (
        r"no main manifest attribute, in .|or a JavaFX application class must extend ",
        "Java does not know with which class the bot begins: name the class that has public static void "
        "main(String[] args), as in java -cp bot.jar Main",
    ),
    "java-version": (r"UnsupportedClassVersionError|class file version \d+", NEWER_JAVA),
    "java-class": (
        r"(NoClassDefFoundError|ClassNotFoundException): (?!Could not initialize )(?P<what>[\w.$/]+)",
        "the class {what} is not there: copy all of the .class files, or the library and name it in -cp",
    ),
    "glibc": (
        r"version `(?P<what>GLIBC(XX)?_[\d.]+)' not found",
        "it was compiled on a newer system, whose {what} is not here: compile it here, or link it with "
        "-static",
    ),
    "library": (r"error while loading shared libraries", LIBRARY),
    "sanitizer": (
        r"AddressSanitizer failed to allocate|ReserveShadowMemoryRange failed",
        "an address sanitizer reserves more memory than a bot may: build the bot without -fsanitize=address, "
        "or play it with --sandbox off",
    ),
    "format": (
        r"[Ee]xec format error|cannot execute binary file",
        "it was compiled for another system or processor: compile it here",
    ),
    "interpreter-crlf": (
        r"env: .{0,200}\\r.{0,20}: No such file",
        "its first line ends in CR LF, so that no interpreter of that name exists: save the file with LF",
    ),
    "crlf": (
        r"\\r'",
        "a script has lines that end in CR LF: save it with LF",
    ),
    "shell-syntax": (
        r": Syntax error: |: syntax error near|: unexpected (end of file|EOF)",
        "a shell cannot read this file: is it for another interpreter (its first line must say which, as in "
        "#!/usr/bin/env python3), or has it lines that end in CR LF?",
    ),
    "env": (
        r"(^|/)env: .(?P<what>[^\s\u2019']+). ?: No such file",
        "there is no program {what} on PATH (in the sandbox that is /usr/bin and /bin)",
    ),
    "can't-open": (
        r"can't open file '(?P<what>[^']+)'",
        "the interpreter found no such program text: is its path relative to the bot's directory?",
    ),
    "no-command": (
        r"cannot execute: required file not found|: command not found\b|: (line )?\d+: .{1,200}: not found$",
        "a command in its script is not there: name what is in the bot's directory as ./name, with a first "
        "line whose interpreter exists",
    ),
    "no-file": (
        r"\[Errno 2\] No such file or directory: '(?P<what>[^']+)'",
        "there is no {what} for it: a bot is started in its own directory, and in the sandbox sees nothing "
        "else of your files",
    ),
    "enoent": (
        r"[Nn]o such file or directory|\bENOENT\b",
        "a file is not there: a bot is started in its own directory, and in the sandbox sees nothing else "
        "of your files",
    ),
    "permission": (
        r"[Pp]ermission denied|\bEACCES\b",
        "a file or program may not be used so: is it marked as executable (chmod +x), may all users read it?",
    ),
    "not-permitted": (
        r"[Oo]peration not permitted|\bEPERM\b",
        "it asked the system for something that a bot may not do",
    ),
    # The conversation
    "end-of-input": (
        r"EOFError: EOF when reading a line|NoSuchElementException: No line found",
        END_OF_INPUT,
    ),
    "broken-pipe": (
        r"[Bb]roken ?pipe|\bEPIPE\b",
        "it wrote to a pipe that nobody reads any more: a helper process of its own had ended, or the game "
        "had",
    ),
    "python-number": (
        r"ValueError: (invalid literal for int|could not convert string to float)",
        NOT_A_NUMBER,
    ),
    "other-number": (
        r"NumberFormatException|std::invalid_argument: sto|ParseIntError|strconv\.\w+: parsing",
        NOT_A_NUMBER,
    ),
    # The bot's own mistakes, where the message does not help a beginner
    "recursion": (
        r"RecursionError|StackOverflowError|Maximum call stack size exceeded|[Ss]tack overflow"
        r"|goroutine stack exceeds",
        DEEP,
    ),
    "null": (
        r"NullPointerException",
        "something was null: also the answer of readLine() after the last line of input is",
    ),
    "double-free": (
        r"double free|\b(malloc|malloc_consolidate|munmap_chunk|mremap_chunk)\(\): |\brealloc\(\): invalid"
        r"|\bfree\(\): (invalid|corrupted|too many chunks|unaligned)|corrupted (size vs\.|double-linked list)"
        r"|stack smashing detected",
        "it damaged its own memory (freed twice, or written beyond the end): compile with -fsanitize=address",
    ),
    "thread-left": (
        r"terminate called without an active exception",
        "a std::thread was destroyed before join() or detach()",
    ),
    "assertion": (
        r"Assertion [`'].* failed|AssertionError|assertion failed",
        "an assertion of its own failed",
    ),
    "segfault": (r"Segmentation fault", "a bad pointer, or a recursion too deep for the stack"),
}
"""Name -> (pattern searched for in the last words, explanation).  The first match is taken.  The hints on
memory and files come first; they are in referee/judge/runtime_messages.py."""


@lru_cache(maxsize=1)
def _compiled() -> list[tuple[re.Pattern[str], str, str]]:
    """Return the explanations with compiled patterns and their names.

    This takes milliseconds, and is done when the first bot has failed.
    """
    return [
        (re.compile(pattern, re.MULTILINE), sentence, name)
        for name, (pattern, sentence) in EXPLANATIONS.items()
    ]


SIGNALS = {
    "SIGSEGV": "a bad pointer, or a recursion too deep for the stack",
    "SIGBUS": (
        "a bad address, or a file mapped into memory that has become shorter or found no space (in the "
        "sandbox, /dev/shm has 1 MB: map a file below TMPDIR)"
    ),
    "SIGFPE": "an integer divided by zero",
    "SIGILL": (
        "an instruction that this processor does not have, or a function without its return: compile here, "
        "without -march=native, and heed the warnings"
    ),
    "SIGTRAP": "a check inside the program failed",
    "SIGABRT": (
        "it gave up by itself: a failed assertion, an exception that nothing caught, or damaged memory; its "
        "standard error says which"
    ),
    "SIGKILL": (
        "not by the referee: by the system, which does that when it is short of memory, or by a process of "
        "its own"
    ),
    "SIGXCPU": "a limit of CPU time, which it set for itself: the referee sets none",
    "SIGXFSZ": advise(HINTS["file-size"]),
    "SIGSYS": "a system call that is forbidden here",
    "SIGPIPE": "it wrote to a pipe that nobody reads: a helper process of its own had ended",
    "SIGALRM": "an alarm that it set for itself, and does not handle",
    "SIGTERM": "not by the referee, which sends no such signal",
    "SIGINT": "not by the referee, which sends no such signal",
    "SIGHUP": "not by the referee, which sends no such signal",
}
"""Name of a signal that ended a bot -> its likely cause."""

STATUSES = {
    126: "a shell's way to say: found, but not executable",
    127: "a shell's way to say: command not found",
}
"""Exit status -> its meaning (POSIX, Shell Command Language 2.8.2)."""


def explain(stderr_tail: str, status: int | None = None, memory_mb: int | None = None) -> str:
    """Explain a bot's last words, or else its exit status, in one sentence without its full stop.

    Empty if nothing is known.

    Args:
        stderr_tail: The result of ``referee.judge.stderr.last_words``.
        status: The exit status, negative for a signal's number.
        memory_mb: The bot's limit of memory, for advice on a heap.
    """
    words = searchable(stderr_tail)
    for pattern, sentence, name in _compiled():
        found = pattern.search(words)
        if found is not None:
            return advise(HINTS[name], memory_mb) if name in HINTS else sentence.format_map(found.groupdict())
    return "" if status is None else explain_status(status)


def explain_status(status: int) -> str:
    """Explain an exit status, negative for a signal's number; empty if nothing is known."""
    if status < 0:
        return SIGNALS.get(signal_name(-status), "")
    if status > 128 and status - 128 in set(signal.Signals):
        name = signal_name(status - 128)
        meaning = SIGNALS.get(name, "")
        return f"a shell's way to say that {name} killed it{': ' if meaning else ''}{meaning}"
    return STATUSES.get(status, "")


def explain_line(line: str) -> str:
    """Explain a line on standard output that is not a protocol message; empty if nothing is known."""
    if line.startswith("Error occurred during initialization of VM"):
        return "its Java could not start, most often because the heap asked for (-Xmx, -Xms) is too large"
    if line == "#":
        return "so a Java virtual machine begins to tell why it must give up: out of memory, or by a fault"
    return ""


def signal_name(number: int) -> str:
    """Return the name of a signal, such as SIGSEGV for 11; ``signal 99`` for a number without a name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
