"""Verdicts on a bot's end: it is to be silent, by itself, with status 0.  Pure."""

from referee.judge.crash_hints import explain
from referee.judge.stderr import last_words
from referee.judge.verdict_text import quote
from tournaments.checking.played import Played
from tournaments.checking.verdict import Evidence, Verdict, failed, passed, skipped, warned

LEAVE = (
    "end the program when END is read (or standard input ends): also its threads, its timers and what it "
    "started; a signal handler that ignores SIGTERM does not help"
)


def ends(evidence: Evidence) -> Verdict:
    """After END it is silent, and ends by itself."""
    regular = [each for each in evidence.interviews if each.ended_regularly]
    if not regular:
        return skipped("not tried: no game came to its regular end")
    for each in regular:
        verdict = ending_fault(each, evidence.end_grace_s)
        if verdict is not None:
            return verdict
    times = [each.seen.ended_us or 0 for each in regular if each.seen]
    statuses = [each for each in regular if each.record.exit_status[each.bot]]
    if statuses:
        return _bad_status(statuses[0])
    return passed(f"it ended by itself, {max(times) / 1000:.0f} ms after END at the latest")


def ending_fault(played: Played, grace_s: float) -> Verdict | None:
    """Return the fault after END in one game that the bot did not lose by a fault; None if there is none."""
    seen = played.seen
    if seen is None:
        return None
    where = f"in the game {played.scenario.title}"
    if seen.after_end_bytes and not seen.was_on_turn:
        first = seen.after_end.partition("\n")[0]
        lines = f"{seen.after_end_lines} lines" if seen.after_end_lines != 1 else "a line"
        return failed(
            f"{where}, it sent {lines} after END, beginning with {quote(first)}",
            "say nothing after END: leave the loop that reads lines, and print nothing on the way out",
            cause="talks after END",
            where=where,
        )
    if seen.was_on_turn:
        return None
    if seen.ended_us is not None and seen.ended_us > grace_s * 1e6:
        return failed(
            f"{where}, it took {seen.ended_us / 1e6:.3f} s to end after END; {grace_s:g} s are allowed",
            LEAVE,
            cause="stays after END",
            where=where,
        )
    if seen.ended_us is None:
        doing = {"reading": "waiting for more input", "running": "computing"}.get(
            seen.doing, "waiting, not for input"
        )
        return failed(
            f"{where}, its process lived on after END for more than {grace_s:g} s ({doing}), and had to "
            "be killed",
            LEAVE,
            cause="stays after END",
            where=where,
        )
    return None


def _bad_status(played: Played) -> Verdict:
    status = played.record.exit_status[played.bot]
    words = last_words(played.record.stderr[played.bot])
    meaning = explain(words, status)
    said = f": {quote(words)}" if words else ""
    return warned(
        f"in the game {played.scenario.title}, it ended with exit status {status} after END{said}"
        + (f" ({meaning})" if meaning else ""),
        "the game was over, so that this costs nothing; but leave the loop at END and end with status 0, "
        "as a reader "
        "that goes on after END finds no more input",
    )
