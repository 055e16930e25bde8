"""Advice on each fault, and its likely cause, for the author of a bot that lost a game by it.  Pure.

The verdict's own sentence (referee/judge/verdict_text.py) describes the event; the words here describe the
change that is needed, and the mistake of a beginner that the game shows.
"""

import re
from typing import Any

from referee.games.base import MoveError, Side
from referee.games.catalog import AnyGame, parse_game
from referee.games.opening import parse_opening
from referee.judge.runtime_messages import HINTS
from referee.judge.stderr import last_words
from referee.judge.verdict_text import (
    ACTIVITY_ADVICE,
    ADAPTER_FAILED,
    BEFORE_START,
    EARLY,
    LATE_REPLY,
    quote,
    why_not_started,
)
from referee.judge.verdict_text import last_words as words_of
from tournaments.checking.evidence import PlayedScenario
from tournaments.checking.scenarios import has_swap

FLUSH = (
    "flush standard output after each move: print(..., flush=True) in Python, System.out.flush() in Java, "
    "std::endl or std::flush in C++, fflush(stdout) in C"
)
FORMAT = "write exactly MOVE;3 and a line feed: no spaces, capital letters, nothing else on the line"
STDERR = "print debug text to standard error, never to standard output: it is kept for you there"

MEASURE = "measure the time with a clock within the search, and stop before the limit"
COMPUTES = f"look for a loop that does not end, and for a search that is too deep: {MEASURE}"
"""Advice on a late move of a bot that still computes: it did not forget to flush."""
REPLIED_LATE = f"it replied too late: {MEASURE}"
ERROR_NAMED = ("That is: ", " (at ")
"""Texts of a note that names an error: its explanation, or its location in the program."""
UTF_16 = re.compile(r"(?:ÿþ|þÿ)?\x00?(?:[^\x00]\x00){2,}[^\x00]?")
"""A line whose every second character is a NUL, perhaps after a byte order mark.  The first NUL may belong to
the line feed before it."""

ADVICE = {
    "start-limit": (
        "read standard input in a loop from the very start, before anything that takes long; do not wait for "
        "arguments, files or a network"
    ),
    "not-runnable": "try the command in the bot's own directory, and look at docs/bots.md",
    "late": "answer within the limit, measured with a clock of your own; and " + FLUSH,
    "exited": "a bot runs until it has read END: give it these lines by hand, and see where it ends",
    "killed": "run it in a debugger, or compile it with warnings and sanitizers, and play the same game",
    "closed-output": "keep standard output open until END: do not close it, and do not redirect it",
    "closed-input": "keep standard input open, and read it until END",
    "off-turn-cpu": (
        "stop computing when the move is sent, or ponder with at most one thread for each core that the "
        "bot may use"
    ),
    "memory-limit": "keep less: a smaller table, and no copy of each board that was ever seen",
    "out-of-memory": (
        "keep less: a smaller table, and no copy of each board that was ever seen; for Java give its command "
        "a heap that fits, such as java -Xmx256m"
    ),
    "read-only": HINTS["read-only"].advice,
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
        'send LF alone: look for "\\r\\n" in the bot\'s source, and for a script whose lines end in CR LF; '
        'on Windows, replace println by System.out.print(move + "\\n") in Java, and call '
        'sys.stdout.reconfigure(newline="\\n") in Python, _setmode(_fileno(stdout), _O_BINARY) in C and C++'
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

IN_EVERY_PROTOCOL = {
    "not-runnable",
    "killed",
    "off-turn-cpu",
    "memory-limit",
    "out-of-memory",
    "read-only",
    "disk-full",
    "file-too-large",
    "too-many-files",
    "process-limit",
}
"""Faults on which the advice is the same for bots behind an adapter."""
TURNS_ADVICE = {
    "late": "answer each line of standard input by one line, within the limit; and " + FLUSH,
    "exited": "read standard input in a loop until it ends: each line is one turn",
    "closed-output": "keep standard output open until standard input ends",
    "": (
        "print one of the texts in legal_moves, alone on its line, for each line of standard input; print "
        "debug text to standard error, never to standard output"
    ),
}
KGP_ADVICE = {
    "start-limit": "connect to KGP_HOST and KGP_PORT and send mode freeplay before anything that takes long",
    "late": (
        "answer each state by @ID move PIT, with the id of the state, before it is stopped; send @ID yield "
        "after the last move; errors that were answered are in its standard error"
    ),
    "exited": "stay connected until goodbye, and answer each state",
    "closed-output": "keep the connection open until goodbye",
    "": (
        "send the number of one of its own pits that holds seeds, counted from 1: in the board its own pits "
        "come before those of its opponent, both in their owner's direction of sowing"
    ),
}
ADAPTER_ADVICE = {"turns": TURNS_ADVICE, "kgp": KGP_ADVICE}
"""Protocol -> fault word -> advice in its terms; the empty word is for all other faults."""

NO_SWAP = (
    "send no SWAP in this game: only games of Kalah with the pie rule have it, such as manchester, or those "
    "with +pie in KALARENA_GAME"
)
NO_SWAP_AFTER_POSITION = (
    "send no SWAP in a game that begins with a position (the line CHANGE;OPENING;...): none is offered there"
)
NO_SWAP_AFTER_MOVES = (
    "send no SWAP after an opening in which the second player has moved: the moves of an opening count, and "
    "SWAP is offered only as the second player's very first move"
)

EXCERPT = 4
"""Lines of the conversation that are shown."""
LONGEST_SHOWN = 90


def what_happened(played: PlayedScenario) -> str:
    """Return the verdict on the checked bot without its name: the event, and its cause if that is known."""
    result = played.record.result
    if why := _why_not_started(played):
        if BEFORE_START not in why or ADAPTER_FAILED in why:  # no command that can be run, or our own failure
            return why
        said = words_of(last_words(played.record.stderr[played.bot]), played.record.limits)
        return "; ".join(filter(None, (why, said)))
    text = result.detail.partition(" lost: ")[2] or result.detail
    observed = played.observed
    if result.fault == "long-line" and observed is not None and observed.long_line_bytes:
        ended = "had" if observed.has_long_line_ended else "had not ended after"
        text += f" (the line {ended} {observed.long_line_bytes} bytes)"
    if played.record.note:
        text += f"; {played.record.note}"
    elif played.protocol and (words := last_words(played.record.stderr[played.bot])):
        text += f"; the last words on its standard error: {quote(words)}"
    elif result.fault == "exited":
        text += "; it said nothing on its standard error"
    if observed is not None and observed.left_behind:
        holding = ", and holds its standard output open" if observed.holds_output else ""
        text += f"; a process that it had started ({', '.join(observed.left_behind)}) lived on{holding}"
    return text


def _why_not_started(played: PlayedScenario) -> str:
    """Return why the checked bot did not start where neither bot could be started; else empty."""
    record = played.record
    game = parse_game(record.game)
    names = [player.name for player in record.players]
    return why_not_started(record.result.detail, names, game.seats(game.initial_state()), played.bot)


def own_fault(played: PlayedScenario) -> str:
    """Return the fault of the checked bot, also in a game in which neither bot could be started."""
    if BEFORE_START in (why := _why_not_started(played)):
        return "killed" if "killed by" in why else "exited"
    return played.record.result.fault or ""


def what_to_do(played: PlayedScenario) -> str:
    """Return the advice on the fault of a game, after its likely cause."""
    fault, replies = own_fault(played), played.lines("from")
    translated = ADAPTER_ADVICE.get(played.protocol)
    if translated is not None and fault not in IN_EVERY_PROTOCOL:
        return translated.get(fault, translated[""])
    line = replies[-1] if replies else ""
    advice = ADVICE.get(fault, "")
    if fault == "spaces":
        position = "before" if line[:1].isspace() else "after" if line[-1:].isspace() else "within"
        advice = f"take the space {position} the move away: {FORMAT}"
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
    elif fault == "exited" and any(words in what_happened(played) for words in ERROR_NAMED):
        advice = "correct this error; the end of its standard error, kept with the game, names the place"
    elif fault == "nul-byte" and UTF_16.fullmatch(line):
        advice = (
            "write ASCII or UTF-8 to standard output: these are the bytes of UTF-16, two for each character"
        )
    elif fault == "bad-number" and "SWAP" in line:
        advice = "a swap is the line SWAP, without MOVE;"
    elif fault == "swap-not-offered":
        advice = _on_a_swap(played)
    if fault == "late":
        return _on_a_late_move(played)
    likely = likely_cause(played)
    if not likely:
        return advice
    return _after_its_cause(likely, advice)


def _after_its_cause(likely: str, advice: str) -> str:
    return f"{likely}{'' if likely.endswith('?') else '.'} {advice[:1].upper()}{advice[1:]}"


def _on_a_swap(played: PlayedScenario) -> str:
    """Return the advice on a SWAP that was not offered, by the game's rules and its opening."""
    game = parse_game(played.record.game)
    opening = parse_opening(game, played.record.opening)
    if not has_swap(game):
        return NO_SWAP
    if opening and opening[0].move is None and opening[0].state != game.initial_state():
        return NO_SWAP_AFTER_POSITION
    if any(game.to_move(step.state) is Side.SECOND for step in opening[:-1]):
        return NO_SWAP_AFTER_MOVES
    return ADVICE["swap-not-offered"]


def _on_a_late_move(played: PlayedScenario) -> str:
    """Return the advice on a late move, by the bot's activity at the deadline as far as it is known."""
    detail, replies = played.record.result.detail, len(played.lines("from"))
    if LATE_REPLY in detail:
        return REPLIED_LATE
    if ACTIVITY_ADVICE["running"] in detail:
        return COMPUTES
    likely = likely_cause(played)
    if not replies:
        advice = f"{FLUSH}. Or is it this: {likely}" if likely else FLUSH
    else:
        likely = likely or (
            f"it had sent {replies} repl{'y' if replies == 1 else 'ies'} before: does it pass over this "
            "line? Answer every line that ends in YOU, also one that reports its own move"
        )
        advice = _after_its_cause(likely, ADVICE["late"])
    if ACTIVITY_ADVICE["waiting"] in detail:
        return f"take out sleep(), and waits for threads or locks. If it waits for input: {advice}"
    return advice


def excerpt(played: PlayedScenario) -> tuple[str, ...]:
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


def likely_cause(played: PlayedScenario) -> str:
    """Return a likely cause of the fault by which the checked bot lost; empty if there is no sign of one."""
    fault = played.record.result.fault
    if fault == "late":
        return _cause_of_silence(played)
    if fault in ("empty-pit", "occupied", "no-such-turn"):
        return _cause_of_illegal_move(played)
    sent = [line for line in played.lines("to") if line != "END"]
    ended_before_first_move = (
        fault == "exited" and not played.own_moves and played.record.exit_status[played.bot] == 0
    )
    if ended_before_first_move and sent and (sent[-1].startswith("TIME;") or sent[0].startswith("TIME;")):
        return (
            "TIME lines are sent because its bot.toml declares them: they come before the line that gives "
            "the turn, and are no END"
        )
    return ""


def states_of(played: PlayedScenario) -> list[Any]:
    """Return the positions of a game, from its start (or opening) on: one more than moves."""
    game = parse_game(played.record.game)
    opening = parse_opening(game, played.record.opening)
    states = [opening[-1].state if opening else game.initial_state()]
    for move in played.record.moves:
        states.append(game.apply(states[-1], game.parse_move(states[-1], move.move)))
    return states


def _cause_of_silence(played: PlayedScenario) -> str:
    """Return a likely cause of a missing reply, from the last line that was sent to the bot."""
    sent = [line for line in played.lines("to") if line != "END" and not line.startswith("TIME")]
    last = sent[-1] if sent else ""
    if last.startswith("START;"):
        return f"{last} is the turn itself: who moves first gets no CHANGE line before its first move"
    if last.startswith("CHANGE;SWAP;"):
        return (
            "its opponent has just swapped: the bot has the other seat now (North), and it is its turn, on "
            "the same board"
        )
    moves = played.record.moves
    if moves and moves[-1].player == played.bot and last.endswith(";YOU"):
        return (
            "that was an extra turn: the line reported the bot's own move and ends in YOU; after any move, "
            "YOU means that a move is awaited"
        )
    if moves and moves[-1].move == "SWAP":
        return (
            "it had swapped: after SWAP it receives nothing until the next move, and then plays on as South"
        )
    return ""


def _cause_of_illegal_move(played: PlayedScenario) -> str:
    """Return a likely cause of an illegal move that would have been legal in another position."""
    if played.record.result.detail.endswith(EARLY):
        return ""  # the verdict names the cause
    game = parse_game(played.record.game)
    text = (played.lines("from") or [""])[-1].partition(";")[2]
    state = states_of(played)[-1]
    if played.swaps and _is_legal_for_other_seat(game, state, text):
        now = game.seats(state)[Side(played.bot)]
        return (
            f"the seats were swapped in this game: the bot is {now} now, and that move would have been one "
            "of its old seat"
        )
    own = played.own_moves
    if own and own[-1].move == text:
        return (
            "that was its own last move, too: does the bot take over the board of every CHANGE line, also of "
            "those that end in OPP?"
        )
    return ""


def _is_legal_for_other_seat(game: AnyGame, state: Any, text: str) -> bool:
    """Return whether a move would be legal if the other seat were to move (Kalah)."""
    seat = getattr(state, "seat", None)
    if seat is None:
        return False
    other = state._replace(seat=1 - seat)
    try:
        return game.parse_move(other, text) in game.legal_moves(other)
    except MoveError:
        return False
