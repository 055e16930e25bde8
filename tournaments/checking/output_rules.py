"""Verdicts on the form and the time of a bot's output, and on the processes that it leaves.  Pure.

Some of these faults fail a check though this referee plays on: another referee may not, and each is the sign
of a mistake.
"""

import re

from referee.games.catalog import parse_game
from referee.judge.crash_hints import READ_ONLY, explain
from referee.judge.verdict_text import quote
from tournaments.checking.hints import states_of
from tournaments.checking.played import Played
from tournaments.checking.verdict import Evidence, Verdict, failed, passed, skipped, warned

SLOW_PIECES_US = 5000
"""A line whose pieces are this far apart was flushed in pieces; those of one write are read within 1 ms."""
MANY_PIECES = 3
"""Number of lines in pieces that are no accident: once, the system may stop a bot between two writes that
follow each other."""
FLOOD_LINES = 20
"""Number of unasked lines beyond any misunderstanding of turns."""


def spelling(evidence: Evidence) -> Verdict:
    """Moves are written as the protocol has them, and come in one piece."""
    replies = 0
    for each in evidence.played:
        for line in each.lines("from"):
            replies += 1
            verdict = _odd_number(line, each)
            if verdict is not None:
                return verdict
    slow = [
        (each.scenario.title, pieces)
        for each in evidence.interviews
        for pieces in (each.seen.pieces if each.seen else ())
        if pieces.span_us >= SLOW_PIECES_US
    ]
    if slow:
        title, pieces = max(slow, key=lambda found: found[1].span_us)
        judge = failed if len(slow) >= MANY_PIECES or pieces.count > 2 else warned
        return judge(
            f"in the game {title}, its line {quote(pieces.line)} came in {pieces.count} pieces over "
            f"{pieces.span_us / 1000:.0f} ms",
            "put the whole line together, with its line feed, and write and flush it once: a turn "
            "ends with its line feed",
        )
    if not replies:
        return skipped("it sent no line")
    return passed(f"all {replies} lines are written as the protocol has them")


def _odd_number(line: str, played: Played) -> Verdict | None:
    where = f"in the game {played.scenario.title}, it sent {quote(line)}"
    if re.fullmatch(r"MOVE;\+[0-9]+", line):
        plain = line.replace("+", "")
        return failed(
            f"{where}: a plus sign, which this referee accepts and another one may not",
            f"write {plain}; in C a format of %d, not %+d",
        )
    if re.fullmatch(r"MOVE;0[0-9]*[1-9][0-9]*", line):
        plain = f"MOVE;{int(line[5:])}"
        return failed(
            f"{where}: a zero before the number, which this referee accepts and another one may not",
            f"write {plain}, without padding: in C a format of %d, not %02d",
        )
    return None


def one_reply(evidence: Evidence) -> Verdict:
    """One line for each line that gives the turn, and none before it."""
    watched = [each for each in evidence.interviews if each.scenario.item != "openings"]
    if not watched:
        return skipped("not tried: no conversation was watched")
    found = [(each, line) for each in watched if each.seen for line in each.seen.unasked]
    if not found:
        return passed("it sent nothing before it was asked, and no line too many")
    for each in watched:
        count = len(each.seen.unasked) if each.seen else 0
        if each.seen and count > FLOOD_LINES:
            return failed(
                f"in the game {each.scenario.title}, it sent at least {count} lines in a row, such as "
                f"{quote(each.seen.unasked[0].line)}, where one was asked for",
                "look for a loop that prints: send one line, then read until the next line that ends in YOU",
            )
    # A line that came too early by a whole turn explains all later ones.
    each, first = min(found, key=lambda pair: not pair[1].after.startswith("START;"))
    sent = f"in the game {each.scenario.title}, it sent {quote(first.line)} right after {quote(first.after)}"
    if first.after.startswith("START;"):
        return failed(
            f"{sent}, when the other player was to move",
            f"after {first.after} wait for a line that ends in YOU: the other player's START is a turn, "
            "this one none",
        )
    advice = "answer only lines that end in YOU; after a move of its own, wait for the next line"
    if _expected_first_extra_turn(each):
        advice = (
            "the very first move of the game gives no extra turn, even if its last seed falls into the "
            "store: go "
            "by YOU and OPP, not by rules of your own"
        )
    return failed(f"{sent}, when it was not its turn; such a line is taken as its next move", advice)


def _expected_first_extra_turn(played: Played) -> bool:
    """Return whether the first unasked line followed the bot's first move, which ended in its store (K9)."""
    moves = played.record.moves
    seen = played.seen
    if not moves or seen is None or moves[0].player != played.bot or played.record.opening:
        return False
    told = [line for line in played.lines("to") if line.startswith("CHANGE;")]
    if not told or seen.unasked[0].after != told[0]:
        return False
    game = parse_game(played.record.game)
    state = states_of(played)[0]
    board = getattr(state, "board", None)
    if board is None:
        return False
    pits = len(board) // 2 - 1
    return int(moves[0].move) + board[pits + int(moves[0].move)] == pits + 1 and game.swap is not None


def stderr(evidence: Evidence) -> Verdict:
    """Standard error: a little is good, much is lost."""
    kept = evidence.stderr_bytes
    most = 0
    for each in evidence.interviews:
        seen = each.seen
        if seen is None:
            continue
        where = f"in the game {each.scenario.title}"
        if seen.stderr_before_start > kept:
            return failed(
                f"{where}, it wrote {seen.stderr_before_start} bytes to standard error before it read "
                f"START; {kept} are "
                "kept",
                "print less at the start: an engine that does not read standard error would never get to "
                "START",
            )
        if seen.stderr_bytes > kept:
            return failed(
                f"{where}, it wrote {seen.stderr_bytes} bytes to standard error while it played; {kept} "
                "are kept, and "
                "writing takes time from its moves",
                "print a line a move, not one for each position that it looks at",
            )
        most = max(most, seen.stderr_bytes)
    read_only = [each for each in evidence.played if READ_ONLY in explain(each.record.stderr[each.bot])]
    if read_only:
        return warned(
            f"in the game {read_only[0].scenario.title}, it wanted to write a file where it may not",
            READ_ONLY,
        )
    if not evidence.interviews:
        return skipped("not tried: no conversation was watched")
    return passed(
        f"at most {most} bytes in a game; {kept} are kept for you" if most else "it wrote nothing to it"
    )


def processes(evidence: Evidence) -> Verdict:
    """Nothing lives on when its own process has ended."""
    for each in evidence.interviews:
        if each.seen is not None and each.seen.left and not each.lost_by_fault:
            return failed(
                f"in the game {each.scenario.title}, it ended and left processes behind: "
                f"{', '.join(each.seen.left)}",
                "end what it starts, and wait for it, before it ends itself",
            )
    if not evidence.interviews:
        return skipped("not tried: no conversation was watched")
    return passed("none was left behind")
