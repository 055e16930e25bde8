"""Sentences of verdicts, for people.

Each sentence completes ``NAME (SEAT) lost: ...``, for the student whose bot lost: the event, with the
offending text, and a hint.
"""

from collections.abc import Sequence

from referee.judge import crash_hints, runtime_messages
from referee.judge.events import OffTurnUsage, Usage
from referee.judge.limits import Limits
from referee.judge.runtime_messages import Hint
from referee.judge.stderr import last_words as stderr_words

LONGEST_QUOTE = 80
"""Characters after which a quoted line is cut; the whole line is in the wire log."""
LONGEST_WORDS = 160
"""Characters after which last words are cut: a whole error message is more useful than a short note."""

NOT_READING = (
    "it does not read its standard input, so that the pipe to it is full; read one line for each line sent"
)
NOTHING_CAME = (
    ". Nothing came in this turn: if the bot did print its move, it did not flush standard output (Python: "
    "print(..., flush=True)); else it was still thinking, or waiting for a line that does not come"
)
ACTIVITY_ADVICE = {
    "reading": (
        ". It is waiting for input while the referee waits for its move: did you flush stdout? "
        "(Python: print(..., flush=True)); or does it wait for a line that does not come?"
    ),
    "running": ". Nothing came in this turn, and it is still computing",
    "queued": ". Nothing came in this turn, and it is still computing",
    "waiting": (
        ". Nothing came in this turn, and it is neither computing nor in a read of its standard input: "
        "it sleeps, or waits for something else (a lock, a thread, a file; "
        "or for input through select or a poll)"
    ),
    "stopped": (
        ". Nothing came in this turn, and its process is stopped by a signal, which it must have sent itself"
    ),
    "ended": ". Nothing came in this turn, and its process is ending",
}
"""Activity of a late bot (events.ACTIVITIES) -> advice for its author."""
ADAPTER_FAILED = "adapter of Kalarena failed, by no fault of the bot"
"""Part of the last words of an adapter that failed itself; referee/adapters/launch.py writes it."""
LATE_REPLY = " before its reply "
NEITHER_STARTED = "neither bot could be started: "
EARLY = (
    ". The line came before this turn began, so it counts as the reply of this turn: "
    "send one line a turn, after the line that gives the turn"
)
"""Addition to the sentence for an illegal move that was waiting when the turn began."""
CLOSED_INPUT = (
    "it closed its standard input, or its process ended, so that a line could not be sent to it; "
    "a bot must read until it gets END"
)


def quote(text: str, longest: int = LONGEST_QUOTE) -> str:
    """Return a text in quotes with control characters made visible, cut if it is long."""
    return repr(text if len(text) <= longest else text[:longest] + "...")


def visible(text: str) -> str:
    """Return a text on one line, with characters that do not print (such as line ends) as escapes."""
    if text.isprintable():  # nearly always; a report calls this function a million times
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def counted(number: int, one: str, several: str = "") -> str:
    """Return a number and its noun: ``1 game``, ``3 games``; ``several`` is an irregular plural."""
    return f"{number} {one if number == 1 else several or one + 's'}"


def _unfinished(text: str) -> str:
    return (
        f". It had written {quote(text)} without a line feed, and a reply counts only with its line feed"
        if text
        else ""
    )


def refused(line: str, why: str) -> str:
    """Return the sentence for a line that was no legal move."""
    meaning = crash_hints.explain_line(line)
    return f"it sent {quote(line)}: {why}{f'; {meaning}' if meaning else ''}"


def late(why: str, unfinished: str, activity: str = "") -> str:
    """Return the sentence for a bot without a complete reply in time."""
    return f"out of time: {why}{_unfinished(unfinished) or ACTIVITY_ADVICE.get(activity, NOTHING_CAME)}"


def late_reply(why: str, line: str) -> str:
    """Return the sentence for a complete reply after the deadline."""
    return f"out of time: {why}{LATE_REPLY}{quote(line)} was complete"


def start_limit(limit_s: float, activity: str = "") -> str:
    """Return the sentence for a bot that did not take START."""
    state = {"running": "; it is still computing", "stopped": "; it is stopped by a signal"}.get(activity, "")
    return (
        f"it did not start: its process ran, but in {limit_s:g} s it neither read its START line from "
        f"standard input nor sent anything{state}"
    )


def limit_passed(limit: str, used: int, allowed: int) -> str:
    """Return the sentence for a bot that exceeded a limit and was killed."""
    if limit == "memory":
        return (
            f"it was killed by the memory limit: its processes held {used} MB together, "
            f"{allowed} MB are allowed"
        )
    if limit == "files":
        return (
            f"it made more than {allowed} files in its working directory: it had {used} new files and folders"
        )
    return (
        f"it was killed by the limit of processes: it had {used} processes and threads at the same time, "
        f"{allowed} are allowed"
    )


def starved(
    opponent: str, wall_us: int, usage: Usage, off_turn: OffTurnUsage, share: float, *, is_starting: bool
) -> str:
    """Return the sentence for a bot whose processes kept its opponent from computing."""
    cores = "1 core" if off_turn.cores == 1 else f"{off_turn.cores} cores"
    awaited = "to start" if is_starting else "to move"
    waited_us = min(wall_us, usage.wait_us + usage.referee_wait_us)
    return (
        f"its processes used {off_turn.cpu_us / 1e6:.3f} s of CPU time on {cores} while it was not on turn, "
        f"{min(1.0, share):.0%} of all that its opponent left: in {wall_us / 1e6:.3f} s {opponent}, which "
        f"was {awaited}, used {usage.cpu_us / 1e6:.3f} s and waited {waited_us / 1e6:.3f} s for a CPU"
    )


def wire_limit(allowed: int) -> str:
    """Return the sentence for a bot that sent more bytes than are kept."""
    return f"it sent more than {allowed} bytes in this game; print debug text to standard error"


def not_started(why: str) -> str:
    """Return the sentence for a command that could not be run."""
    return f"it could not be started: {why}"


def neither_started(names: Sequence[str], seats: Sequence[object], whys: Sequence[str]) -> str:
    """Return the verdict on a game in which neither bot could be started; the first player's texts first."""
    each = [f"{name} ({seat}): {why}" for name, seat, why in zip(names, seats, whys, strict=True)]
    return f"{NEITHER_STARTED}{'; '.join(each)}"


def why_not_started(verdict: str, names: Sequence[str], seats: Sequence[object], player: int) -> str:
    """Return a player's own part of a verdict that ``neither_started`` made; empty for another verdict."""
    first, second = (f"{name} ({seat}): " for name, seat in zip(names, seats, strict=True))
    if not verdict.startswith(NEITHER_STARTED + first):
        return ""
    whys = verdict[len(NEITHER_STARTED + first) :].rpartition(f"; {second}")
    return whys[0] if player == 0 else whys[2]


def long_line(head: str) -> str:
    """Return the sentence for a line that is too long."""
    return (
        f"it sent a line of more than {len(head)} characters, beginning {quote(head)}; "
        "print debug text to standard error"
    )


def unasked(count: int, line: str) -> str:
    """Return the sentence for far too many lines in advance."""
    return (
        f"it sent {count} lines that nobody had asked for, the last one {quote(line)}; "
        "send one move for each line that ends in YOU"
    )


def closed_output(unfinished: str) -> str:
    """Return the sentence for a bot that closed its output, on its turn or before it took START."""
    return f"it closed its standard output, which must stay open until END{_unfinished(unfinished)}"


BEFORE_START = "before it had taken its START line"


def exited(status: int, when: str, unfinished: str) -> str:
    """Return the sentence for a process that ended."""
    if status < 0:
        text = f"its process was killed by {crash_hints.signal_name(-status)} {when}"
    else:
        text = f"its process ended with exit status {status} {when}"
        if status == 0:
            text += ", by itself: a bot must go on reading until it gets END"
    meaning = crash_hints.explain_status(status)
    text += f" ({meaning})" if meaning else ""
    return text + _unfinished(unfinished)


def gave_up(hint: Hint, when: str, limits: Limits | None, judge: int) -> str:
    """Return the sentence for a process that ended by itself, for lack of memory or because of a file.

    Each directory that a bot can write has a space of its own, so no limit is named for a full one.  Up to
    version 3 the judge names the limit of $HOME.
    """
    memory_mb = None if limits is None else limits.memory_mb
    allowed = ""
    if limits is not None:
        allowed = {
            runtime_messages.MEMORY: f" ({limits.memory_mb} MB are allowed)",
            runtime_messages.TOO_LARGE: f" ({limits.file_mb} MB are allowed)",
            runtime_messages.DISK_FULL: f" ({limits.scratch_mb} MB are allowed)" if judge < 4 else "",
        }.get(hint.fault, "")
    what = "ran out of memory" if hint.fault == runtime_messages.MEMORY else "ended because of a file"
    return f"it {what} {when}{allowed}: {runtime_messages.advise(hint, memory_mb)}"


def error_on_stdout(lines: Sequence[str]) -> str:
    """Return the note on an error message on standard output."""
    line = next((one for one in lines if runtime_messages.find_fault([one])), lines[0])
    return f"it complained on standard output: {quote(line, LONGEST_WORDS)}"


def last_words(text: str, limits: Limits | None = None) -> str:
    """Return the note on the end of standard error, with an explanation where one is known.

    ``limits`` are those of the bot; advice on a heap depends on them.
    """
    if not text:
        return ""
    meaning = crash_hints.explain(text, memory_mb=None if limits is None else limits.memory_mb)
    return f"its last words on standard error: {_quote_end(text)}{f'. That is: {meaning}' if meaning else ''}"


def known_last_words(stderr: str, limits: Limits) -> str:
    """Return the note on the end of standard error of a running process; empty without an explanation.

    Its output need not explain the delay, so unexplained words are left out.
    """
    words = stderr_words(stderr)
    return last_words(words, limits) if crash_hints.explain(words) else ""


def full_directories(names: str) -> str:
    """Return the note on directories that had no space left when the bot ended."""
    return f"no space was left in {names}" if names else ""


def _quote_end(text: str) -> str:
    """Quote a text as ``quote`` does, without cutting the location in the program at its end."""
    words, begins, location = text.rpartition(" (at ")
    if not begins or not location.endswith(")") or not location.isprintable():
        return quote(text, LONGEST_WORDS)
    return quote(words, LONGEST_WORDS) + begins + location


def score(
    names: tuple[str, str], seats: tuple[str, str], winner: int | None, points: tuple[int, int], how: str
) -> str:
    """Return the sentence for a finished game; ``how`` is the cause of the end beside the points, if any."""
    end = f"{how}; " if how else ""
    if winner is None:
        return f"draw: {end}{points[0]} to {points[1]}"
    return f"{names[winner]} ({seats[winner]}) won: {end}{points[winner]} to {points[1 - winner]}"
