"""Verdicts on a bot's output, on its end after END, and on the processes that it leaves.  Pure.

Some of these faults fail a check though this referee plays on: another referee may not, and each is the sign
of a mistake.
"""

import re

from protocol.codec import decode_bot_line
from protocol.errors import RemoteProtocolError
from referee.games.catalog import parse_game
from referee.judge.crash_hints import READ_ONLY, explain
from referee.judge.stderr import last_words
from referee.judge.verdict_text import counted, quote
from tournaments.checking.advice import STDERR, states_of
from tournaments.checking.evidence import (
    Evidence,
    PlayedScenario,
    Verdict,
    failed,
    passed,
    skipped,
    warned,
)
from tournaments.checking.gameplay import fault_or_gap

SLOW_PIECES_US = 5000
"""A line whose pieces are this far apart was flushed in pieces; those of one write are read within 1 ms."""
MANY_PIECES = 3
"""Number of lines in pieces that are no accident, if they are PIECES_PART of all: a busy system may stop a
bot between two writes that follow each other, such as those of Python's ``-u``."""
PIECES_PART = 0.1
"""Share of all lines from which lines in pieces are a failure."""
MOST_WRITES = 3
"""Writes of one line by a program without a buffer: such as those of C++ for ``MOVE;``, the pit, and the line
feed.  A line in more pieces is no accident."""
FLOOD_LINES = 20
"""Number of unexpected lines beyond any misunderstanding of turns."""
NOT_WATCHED = "not tried: no conversation was watched"
LEAVE_TURNS = "end the program when standard input ends: also its threads, its timers and what it started"
NOT_STARTED = "not tried: it never took its START line"
LEAVE = (
    "end the program when END is read (or standard input ends): also its threads, its timers and what it "
    "started; a signal handler that ignores SIGTERM does not help"
)


def spelling(evidence: Evidence) -> Verdict:
    """Judge whether moves are written as the protocol has them, and come in one piece."""
    replies = 0
    for each in evidence.played:
        for line in each.lines("from"):
            replies += 1
            if verdict := _unusual_number(line, each) or _unknown_line(line, each):
                return verdict
    line_count = sum(len(each.lines("from")) for each, _ in evidence.observed)
    slow = [
        (each, fragmented)
        for each, observed in evidence.observed
        for fragmented in observed.fragmented_lines
        if fragmented.span_us >= SLOW_PIECES_US
    ]
    if slow:
        # The number of pieces comes first: a referee that waited reads a slow line in fewer pieces.
        each, worst = max(slow, key=lambda found: (found[1].count, found[1].span_us))
        is_habit = worst.count > MOST_WRITES or len(slow) >= max(MANY_PIECES, PIECES_PART * line_count)
        judge = failed if is_habit else warned
        return judge(
            f"{each.where}, its line {quote(worst.line)} came in {worst.count} pieces over "
            f"{worst.span_us / 1000:.0f} ms",
            "put the whole line together, with its line feed, and write and flush it once: a turn ends with "
            "its line feed",
            games=(each,),
        )
    if not replies:
        return skipped("not tried: it sent no line")
    return passed(f"all {replies} lines have the form that the protocol defines")


def _unusual_number(line: str, played: PlayedScenario) -> Verdict | None:
    """Return the failure of a move with a plus sign or with a zero before its number; else None."""
    sent = f"{played.where}, it sent {quote(line)}"
    if re.fullmatch(r"MOVE;\+[0-9]+", line):
        return failed(
            f"{sent}: a plus sign, which this referee accepts and another one may not",
            f"write {line.replace('+', '')}; in C a format of %d, not %+d",
            games=(played,),
        )
    if re.fullmatch(r"MOVE;0[0-9]*[1-9][0-9]*", line):
        return failed(
            f"{sent}: a zero before the number, which this referee accepts and another one may not",
            f"write MOVE;{int(line[5:])}, without padding: in C a format of %d, not %02d",
            games=(played,),
        )
    return None


def _unknown_line(line: str, played: PlayedScenario) -> Verdict | None:
    """Return the failure of a line that the protocol does not have; else None."""
    try:
        decode_bot_line(line)
    except RemoteProtocolError as error:
        fault = played.record.result.fault if played.lost_by_fault else None
        return failed(
            f"{played.where}, it sent {quote(line)}: {error}",
            "print moves alone to standard output, and everything else to standard error",
            games=(played,),
            cause=fault or "unknown line",
            where=played.where,
        )
    return None


def one_reply(evidence: Evidence) -> Verdict:
    """Judge whether the bot sends one line for each line that gives the turn, and none before it."""
    watched = [(each, seen) for each, seen in evidence.observed if each.scenario.item != "openings"]
    if not watched:
        return skipped(NOT_WATCHED)
    found = [(each, line) for each, observed in watched for line in observed.unexpected_lines]
    if not found and not any(each.lines("from") for each, _ in watched):
        return skipped("not tried: it sent no line")
    if not found:
        return passed("it sent nothing before it was asked, and no line too many")
    for each, observed in watched:
        count = len(observed.unexpected_lines)
        if count > FLOOD_LINES:
            return failed(
                f"{each.where}, it sent at least {count} lines in a row, such as "
                f"{quote(observed.unexpected_lines[0].line)}, where one was asked for",
                "look for a loop that prints: send one line, then read until the next line that ends in YOU",
                games=(each,),
            )
    # A line that came too early by a whole turn explains all later ones.
    each, first = min(found, key=lambda pair: not pair[1].after.startswith("START;"))
    sent = f"{each.where}, it sent {quote(first.line)} right after {quote(first.after)}"
    if _is_other_text(first.line):
        return failed(
            f"{sent}, when it was not its turn; this is no message of the protocol", STDERR, games=(each,)
        )
    if first.after.startswith("START;"):
        return failed(
            f"{sent}, when the other player was to move",
            f"after {first.after} wait for a line that ends in YOU: the other player's START is a turn, "
            "this one none",
            games=(each,),
        )
    advice = "answer only lines that end in YOU; after a move of its own, wait for the next line"
    if _expected_first_extra_turn(each):
        advice = (
            "the very first move of the game gives no extra turn, even if its last seed falls into the "
            "store: go by YOU and OPP, not by rules of your own"
        )
    return failed(
        f"{sent}, when it was not its turn; such a line is taken as its next move", advice, games=(each,)
    )


def _is_other_text(line: str) -> bool:
    """Return whether a line is a text for people, and not a reply, not even one in a wrong form."""
    if not line.strip() or line.strip().upper().startswith(("MOVE", "SWAP")):
        return False
    try:
        decode_bot_line(line)
    except RemoteProtocolError as error:
        return "did you mean" not in str(error)
    return False


def _expected_first_extra_turn(played: PlayedScenario) -> bool:
    """Return whether the first unexpected line followed a first move that ended in the bot's store (K9)."""
    moves, observed = played.record.moves, played.observed
    if not moves or observed is None or moves[0].player != played.bot or played.record.opening:
        return False
    changes = [line for line in played.lines("to") if line.startswith("CHANGE;")]
    if not changes or observed.unexpected_lines[0].after != changes[0]:
        return False
    board = getattr(states_of(played)[0], "board", None)
    if board is None:
        return False
    pit, store = int(moves[0].move), len(board) // 2
    return pit + board[store - 1 + pit] == store and parse_game(played.record.game).swap is not None


def ends(evidence: Evidence) -> Verdict:
    """Judge whether the bot is silent after END, and ends by itself with status 0."""
    regular = [each for each, _ in evidence.observed if each.ended_regularly]
    if not regular:
        return skipped("not tried: no game came to its regular end")
    for each in regular:
        if verdict := ending_fault(each, evidence.end_grace_s):
            return verdict
    for each in regular:
        if status := each.record.exit_status[each.bot]:
            return _bad_status(each, status)
    slowest_us = max(each.observed.ended_us or 0 for each in regular if each.observed)
    return passed(f"it ended by itself, {slowest_us / 1000:.0f} ms after END at the latest")


def end_mid_game(evidence: Evidence) -> Verdict:
    """Judge the end of the bot where END comes in the middle of a game."""
    if fault := fault_or_gap(evidence, "end-mid-game"):
        return fault
    games = evidence.played_for("end-mid-game")
    for each in games:
        if verdict := ending_fault(each, evidence.end_grace_s):
            return verdict
    return passed(f"it ended by itself in {counted(len(games), 'game')} that were over too soon")


def ending_fault(played: PlayedScenario, grace_s: float) -> Verdict | None:
    """Return the fault after END in one game that the bot did not lose by a fault; None if there is none."""
    where, observed = played.where, played.observed
    if observed is None or observed.was_on_turn:  # in a turn, output may be a reply that was sent before END
        return None
    if observed.after_end_bytes:
        first = observed.after_end.partition("\n")[0]
        lines = f"{observed.after_end_lines} lines" if observed.after_end_lines != 1 else "a line"
        return failed(
            f"{where}, it sent {lines} after END, beginning with {quote(first)}",
            "say nothing after END: leave the loop that reads lines, and print nothing on the way out",
            games=(played,),
            cause="writes after END",
            where=where,
        )
    if observed.ended_us is None:
        activities = {"reading": "waiting for more input", "running": "computing"}
        activity = activities.get(observed.activity, "waiting, not for input")
        sentence = (
            f"its process lived on after END for more than {grace_s:g} s ({activity}), and had to be killed"
        )
    elif observed.ended_us > grace_s * 1e6:
        sentence = f"it took {observed.ended_us / 1e6:.3f} s to end after END; {grace_s:g} s are allowed"
    else:
        return None
    advice = LEAVE_TURNS if played.protocol == "turns" else LEAVE
    return failed(f"{where}, {sentence}", advice, games=(played,), cause="stays after END", where=where)


def _bad_status(played: PlayedScenario, status: int) -> Verdict:
    words = last_words(played.record.stderr[played.bot])
    meaning = explain(words, status)
    return warned(
        f"{played.where}, it ended with exit status {status} after END"
        + (f": {quote(words)}" if words else "")
        + (f" ({meaning})" if meaning else ""),
        "the game was over, so that this costs nothing; but leave the loop at END and end with status 0, as "
        "a reader that goes on after END finds no more input",
        games=(played,),
    )


def stderr(evidence: Evidence) -> Verdict:
    """Judge the amount of output on standard error: what is not kept is lost."""
    kept = evidence.stderr_bytes
    for each, observed in evidence.observed:
        if observed.stderr_before_start > kept:
            return failed(
                f"{each.where}, it wrote {observed.stderr_before_start} bytes to standard error before it "
                f"read START; {kept} are kept",
                "print less at the start: an engine that does not read standard error would never get to "
                "START",
                games=(each,),
            )
        if observed.stderr_bytes > kept:
            return failed(
                f"{each.where}, it wrote {observed.stderr_bytes} bytes to standard error while it played; "
                f"{kept} are kept, and writing takes time from its moves",
                "print a line a move, not one for each position that it looks at",
                games=(each,),
            )
    for each in evidence.played:
        if READ_ONLY in explain(each.record.stderr[each.bot]):
            return warned(
                f"{each.where}, it tried to write a file where it may not", READ_ONLY, games=(each,)
            )
    if not evidence.observed:
        return skipped(NOT_WATCHED)
    if not evidence.has_started:
        return skipped(NOT_STARTED)
    most = max(observed.stderr_bytes for _, observed in evidence.observed)
    return passed(
        f"at most {most} bytes in a game; {kept} are kept for you" if most else "it wrote nothing to it"
    )


def processes(evidence: Evidence) -> Verdict:
    """Judge whether processes that the bot started live on after its end."""
    for each, observed in evidence.observed:
        if observed.left_behind and not each.lost_by_fault:
            return failed(
                f"{each.where}, it ended and left processes behind: {', '.join(observed.left_behind)}",
                "end what it starts, and wait for it, before it ends itself",
                games=(each,),
            )
    if not evidence.observed:
        return skipped(NOT_WATCHED)
    if all(each.lost_by_fault for each, _ in evidence.observed):
        return skipped("not tried: each watched game was lost by a fault, and its processes were ended then")
    return passed("none was left behind")
