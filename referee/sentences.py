"""What a verdict says to people.  Each is the end of ``NAME (SEAT) lost: ...``, for the student whose
bot lost: what happened, with the offending text, and what to look for.
"""

from referee import diagnosis

LONGEST_QUOTE = 80
"""A quoted line is cut after this many characters; the whole line is in the wire log."""
LONGEST_WORDS = 160
"""Last words are cut after this many: a whole error message is more use than a short note."""

NOT_READING = (
    "it does not read its standard input, so that the pipe to it is full; read one line for each line sent"
)
NOTHING_CAME = (
    ". Nothing came in this turn: if the bot did print its move, it did not flush standard output (Python: "
    "print(..., flush=True)); else it was still thinking, or waiting for a line that does not come"
)
WAS_DOING = {
    "reading": (
        ". It is waiting to read from us while we wait for its move: did you flush stdout? "
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
"""What a bot that is late was found doing (events.DOING) -> what to tell its author."""
CLOSED_INPUT = (
    "it closed its standard input, or its process ended, so that it could not be told the last move; "
    "a bot must read until it gets END"
)


def quote(text: str, longest: int = LONGEST_QUOTE) -> str:
    """A text in quotes with control characters made visible, cut if it is long."""
    return repr(text if len(text) <= longest else text[:longest] + "...")


def visible(text: str) -> str:
    """A text on one line: what does not print (control characters, line ends) as an escape."""
    if text.isprintable():  # nearly always, and a report asks a million times
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def _unfinished(text: str) -> str:
    return (
        f". It had written {quote(text)} without a line feed, and a reply counts only with its line feed"
        if text
        else ""
    )


def refused(line: str, why: str) -> str:
    """A line that was no legal move."""
    meaning = diagnosis.explain_line(line)
    return f"it sent {quote(line)}: {why}{f'; {meaning}' if meaning else ''}"


def late(why: str, unfinished: str, doing: str = "") -> str:
    """No complete reply in time."""
    return f"out of time: {why}{_unfinished(unfinished) or WAS_DOING.get(doing, NOTHING_CAME)}"


def late_reply(why: str, line: str) -> str:
    """A complete reply, after the time was over."""
    return f"out of time: {why} before its reply {quote(line)} was complete"


def start_limit(limit_s: float, doing: str = "") -> str:
    """START was not taken."""
    state = {"running": "; it is still computing", "stopped": "; it is stopped by a signal"}.get(doing, "")
    return (
        f"it did not start: its process ran, but in {limit_s:g} s it neither read its START line from "
        f"standard input nor sent anything{state}"
    )


def limit_passed(limit: str, used: int, allowed: int) -> str:
    """Killed for what it used."""
    if limit == "memory":
        return (
            f"it was killed by the memory limit: its processes held {used} MB together, "
            f"{allowed} MB are allowed"
        )
    return (
        f"it was killed by the limit of processes: it had {used} processes and threads at the same time, "
        f"{allowed} are allowed"
    )


def wire_limit(allowed: int) -> str:
    """More lines than are kept."""
    return f"it sent more than {allowed} bytes in this game; print debug text to standard error"


def not_started(why: str) -> str:
    """The command could not be run."""
    return f"it could not be started: {why}"


def long_line(head: str) -> str:
    """A line beyond the maximum."""
    return (
        f"it sent a line of more than {len(head)} characters, beginning {quote(head)}; "
        "print debug text to standard error"
    )


def unasked(count: int, line: str) -> str:
    """Far too many lines in advance."""
    return (
        f"it sent {count} lines that nobody had asked for, the last one {quote(line)}; "
        "send one move for each line that ends in YOU"
    )


def closed_output(unfinished: str) -> str:
    """End of output on its turn."""
    return f"it closed its standard output while its move was awaited{_unfinished(unfinished)}"


def exited(status: int, when: str, unfinished: str) -> str:
    """The process ended."""
    if status < 0:
        text = f"its process was killed by {diagnosis.signal_name(-status)} {when}"
    else:
        text = f"its process ended with exit status {status} {when}"
        if status == 0:
            text += ", by itself: a bot must go on reading until it gets END"
    meaning = diagnosis.explain_status(status)
    text += f" ({meaning})" if meaning else ""
    return text + _unfinished(unfinished)


def last_words(text: str) -> str:
    """A note on what the bot said last on standard error, and on what that means where it is known."""
    if not text:
        return ""
    meaning = diagnosis.explain(text)
    return f"its last words on standard error: {_quote_end(text)}{f'. That is: {meaning}' if meaning else ''}"


def _quote_end(text: str) -> str:
    """In quotes as ``quote`` has it, but a place in the program that the text ends with is never cut."""
    words, begins, place = text.rpartition(" (at ")
    if not begins or not place.endswith(")") or not place.isprintable():
        return quote(text, LONGEST_WORDS)
    return quote(words, LONGEST_WORDS) + begins + place


def score(
    names: tuple[str, str], seats: tuple[str, str], winner: int | None, points: tuple[int, int], how: str
) -> str:
    """A game that was played to its end; ``how`` is what ended it, if the points do not say it all."""
    end = f"{how}; " if how else ""
    if winner is None:
        return f"draw: {end}{points[0]} to {points[1]}"
    return f"{names[winner]} ({seats[winner]}) won: {end}{points[winner]} to {points[1 - winner]}"
