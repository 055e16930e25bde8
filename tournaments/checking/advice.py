"""Advice on each fault, for the author of a checked bot that lost a game by it.  Pure.

The verdict's own sentence (referee/judge/verdict_text.py) describes the event; the words here describe the
change that is needed, and the likely cause as far as the game shows it.
"""

from tournaments.checking.hints import hint
from tournaments.checking.played import Played

FLUSH = (
    "flush standard output after each move: print(..., flush=True) in Python, System.out.flush() in Java, "
    "std::endl or std::flush in C++, fflush(stdout) in C"
)
FORMAT = "write exactly MOVE;3 and a line feed: no spaces, capital letters, nothing else on the line"
STDERR = "print debug text to standard error, never to standard output: it is kept for you there"

ADVICE = {
    "start-limit": (
        "read standard input in a loop from the very start, before anything that takes long; do not wait for "
        "arguments, files or a network"
    ),
    "not-runnable": "try the command in the bot's own directory, and look at docs/bots.md",
    "late": "answer within the limit, measured with a clock of your own; and " + FLUSH,
    "exited": ("a bot runs until it has read END: give it these lines by hand, and see where it ends"),
    "killed": "run it in a debugger, or compile it with warnings and sanitizers, and play the same game",
    "closed-output": "keep standard output open until END: do not close it, and do not redirect it",
    "closed-input": "keep standard input open, and read it until END",
    "memory-limit": "keep less: a smaller table, and no copy of each board that was ever seen",
    "out-of-memory": (
        "keep less: a smaller table, and no copy of each board that was ever seen; for Java give its command "
        "a heap that fits, such as java -Xmx256m"
    ),
    "read-only": (
        "write below the directory that the environment variable TMPDIR names, or print to standard error: "
        "the bot's own directory cannot be written to"
    ),
    "disk-full": "write less, and remove what is no longer needed; all its files are gone after the game",
    "file-too-large": "write less into one file, and begin a new one before it is too large",
    "too-many-files": "close each file when it has been read, and write to one file instead of making many",
    "process-limit": "start fewer threads and processes, and wait for those that have ended",
    "long-line": STDERR + "; and end each move with a line feed",
    "wire-limit": STDERR,
    "unasked-output": "send one line for each line that ends in YOU, and wait for the next one",
    "not-reading": "read one line of standard input for each line that is sent; do not sleep between them",
    "blank-line": "send one line feed after a move, not two; println of a text that ends in one sends two",
    "crlf": (
        'send LF alone: print "MOVE;3\\n", in Java System.out.print(move + "\\n") instead of println on '
        'Windows, in Python open standard output with newline="\\n"'
    ),
    "nul-byte": "do not send the zero that ends a text in C: its length is strlen(text), not sizeof(text)",
    "not-ascii": FORMAT + ", in ASCII: no accents, no other digits than 0 to 9, no byte order mark",
    "spaces": FORMAT,
    "lower-case": FORMAT,
    "no-move": "write the pit behind MOVE; and look why there was none: was nothing chosen in some case?",
    "extra-field": FORMAT,
    "unknown-message": STDERR,
    "bad-number": "write the pit as a plain number, and a swap as SWAP without MOVE;",
    "not-positive": "number pits from 1: if they are an array's elements, add 1",
    "number-too-large": "look where the number comes from: an overflow, or a variable that was never set?",
    "swap-not-offered": (
        "send SWAP only as the second player's very first reply, that is as North, after the first line "
        "that ends in YOU; never as South, never later"
    ),
    "out-of-turn": "answer only lines that end in YOU (and START;South)",
    "bad-turn": "write the turn as docs/protocol.md says for Kalamala",
    "empty-pit": (
        "take the board of the latest CHANGE line: North's pits come first, then North's store, then South's "
        "pits and store; pit 1 is the furthest from its owner's store"
    ),
    "no-such-pit": "number pits from 1; there are as many as half of the board's numbers, less the store",
    "game-over": "stop at a CHANGE line that ends in END",
    "occupied": "place only on empty squares of the latest CHANGE line's position",
    "no-stones": "count the unplaced stones: the two numbers of the position",
    "no-such-turn": "name a turn by its effect: the squares that become empty, then those that are filled",
    "repetition": "remember the boards since the last placement or removal: none of them may come again",
}
"""Fault word (docs/protocol.md) -> advice on it."""

EXCERPT = 4
"""Lines of the conversation that are shown."""
LONGEST_SHOWN = 90


def what_happened(played: Played) -> str:
    """Return the verdict on the checked bot without its name: the event, and its cause if that is known."""
    result = played.record.result
    text = result.detail.partition(" lost: ")[2]
    seen = played.seen
    if result.fault == "long-line" and seen is not None:
        ends = "\n" in seen.after_end
        text += (
            f" (a line feed came after {seen.after_end.index(chr(10))} characters more)"
            if ends
            else f" (and {seen.after_end_bytes} bytes later it had not ended)"
        )
    if result.fault == "exited":
        text += f"; {result.note}" if result.note else "; it said nothing on its standard error"
    elif result.note:
        text += f"; {result.note}"
    if seen is not None and seen.left:
        holding = ", and holds its standard output open" if seen.holds_output else ""
        text += f"; a process that it had started ({', '.join(seen.left)}) lived on{holding}"
    return text


def what_to_do(played: Played) -> str:
    """Return the advice on the fault of a game, after its likely cause."""
    fault = played.record.result.fault or ""
    line = (played.lines("from") or [""])[-1]
    advice = ADVICE.get(fault, "")
    if fault == "spaces":
        place = "before" if line[:1].isspace() else "after" if line[-1:].isspace() else "within"
        advice = f"take the space {place} the move away: {FORMAT}"
    elif fault == "no-move" and ";" not in line:
        advice = "write MOVE;3, the word, a semicolon and the pit, on one line"
    elif fault == "not-positive" and "-" in line:
        advice = 'a negative number is a sign for "nothing found": check it before it is sent'
    elif fault == "crlf" and line.startswith("SWAP"):
        advice = "the same holds for SWAP: " + advice
    elif fault == "not-ascii" and any(char.isdigit() and not char.isascii() for char in line):
        advice = "its digit is none of ASCII's: format numbers without the language of the system (locale)"
    elif fault == "unknown-message" and "did you mean" in played.record.result.detail:
        advice = FORMAT
    elif fault == "exited" and "That is" in played.record.result.note:
        advice = "mend that; the end of its standard error is kept with the game, and says where it is"
    elif fault == "bad-number" and "SWAP" in line:
        advice = "a swap is the line SWAP, without MOVE;"
    likely = hint(played)
    if fault == "late" and not played.lines("from"):
        return f"{FLUSH}. Or is it this: {likely}" if likely else FLUSH
    if fault == "late" and not likely:
        likely = (
            f"it had sent {len(played.lines('from'))} replies before: does it pass over this line? Answer "
            "every line that ends in YOU, also one that tells of its own move"
        )
    if not likely:
        return advice
    return f"{likely}{'' if likely.endswith('?') else '.'} {advice[:1].upper()}{advice[1:]}"


def excerpt(played: Played) -> tuple[str, ...]:
    """Return the end of the conversation with the checked bot."""
    lines = [line for line in played.record.wire if line.player == played.bot]
    while lines and lines[-1].line == "END" and lines[-1].direction == "to":
        lines.pop()
    return tuple(
        f"{'<-' if line.direction == 'to' else '->'} {_shown(line.line)}" for line in lines[-EXCERPT:]
    )


def _shown(line: str) -> str:
    text = line if line.isprintable() else repr(line)[1:-1]
    return text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "..."
