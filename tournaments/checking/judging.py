"""Verdicts on games: the bot's start, and its play in all situations that a game may bring.  Pure.

Each function takes the evidence of one game and returns the verdict on one item.  Where a fault shows in
several games, the first one is described and the others are named.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from referee.games.catalog import parse_game
from referee.judge.verdict_text import quote
from tournaments.checking.advice import excerpt, what_happened, what_to_do
from tournaments.checking.ending import ending_fault
from tournaments.checking.played import Played
from tournaments.checking.test_opponents import has_extra_turns, has_swap
from tournaments.checking.verdict import (
    OUT_OF_TIME,
    Evidence,
    Verdict,
    counted,
    failed,
    passed,
    skipped,
    warned,
)

OFF_TURN = "while it was not its turn"
"""Words of referee/judge/verdict_text.py for a process that ended while its opponent was to move."""


def by_fault(played: Played) -> Verdict:
    """Return the verdict on a game that the checked bot lost by a fault."""
    where = f"in the game {played.scenario.title}"
    result, replies = played.record.result, len(played.own_moves)
    off_turn = result.fault == "closed-input" or OFF_TURN in result.detail
    when = f"after its reply {replies}" if off_turn else f"at its reply {replies + 1}"
    happened = what_happened(played)
    return failed(
        f"{where}, {when}: {happened}",
        what_to_do(played),
        excerpt(played),
        cause=result.fault or "",
        where=where,
    )


def plain_or_fault(evidence: Evidence, item: str, done: Callable[[list[Played]], Verdict]) -> Verdict:
    """Return the verdict on the first fault in an item's games; that of ``done`` if there is no fault."""
    games = evidence.of(item)
    lost = [each for each in games if each.lost_by_fault]
    if lost:
        verdict = by_fault(lost[0])
        others = [each.scenario.title for each in lost[1:]]
        also = (f"it lost by a fault, too: {', '.join(others)}",) if others else ()
        return replace(verdict, details=(*verdict.details, *also))
    if item in evidence.cut and not any(each.was_ended_early for each in games):
        return _cut(evidence.cut[item], games, must_play=item.startswith("plays-"))
    if not games:
        return skipped("nothing of this was tried")
    return done(games)


def _cut(why: str, games: Sequence[Played], *, must_play: bool) -> Verdict:
    """Return the verdict where games were left out: a failure only if not one was played, but no pass."""
    if games:
        return warned(f"{len(games)} played without a fault, the others not: {why}", "")
    if must_play and why.startswith(OUT_OF_TIME):
        return failed(f"not one game was played to its end: {why}", "let it think for less time a move")
    if why.startswith(OUT_OF_TIME):
        return warned(f"not tried: {why}", "")
    return skipped(f"not tried: {why}")


def starts(evidence: Evidence) -> Verdict:
    """It takes its START line."""
    for each in evidence.played:
        if each.never_started:
            verdict = by_fault(each)
            return failed(what_happened(each), verdict.advice, cause=verdict.cause)
    times = sorted(each.seen.start_us for each in evidence.interviews if each.seen and each.seen.start_us)
    if not times:
        return skipped(f"not tried: {next(iter(evidence.cut.values()), 'nothing was played')}")
    limit_s = evidence.played[0].record.control.start_s
    median, worst = times[len(times) // 2] / 1000, times[-1] / 1000
    return passed(
        f"it took START after {median:.0f} ms (median of {counted(len(times), 'start')}; worst "
        f"{worst:.0f} ms, limit {limit_s:g} s)"
    )


def plays_first(evidence: Evidence) -> Verdict:
    """Full games from the first seat."""
    return plain_or_fault(evidence, "plays-first", lambda games: _games_won(evidence, games))


def plays_second(evidence: Evidence) -> Verdict:
    """Full games from the second seat."""
    return plain_or_fault(evidence, "plays-second", lambda games: _games_won(evidence, games))


def _games_won(evidence: Evidence, games: list[Played]) -> Verdict:
    results = tuple(f"{each.scenario.title}: {_result(each)}" for each in games)
    full = sum(each.ended_regularly for each in games)
    if full < len(games):
        moves = sum(len(each.own_moves) for each in games)
        why = next(iter(evidence.cut.values()), "an examiner had waited for long enough")
        return warned(f"{moves} moves without a fault, but {counted(full, 'full game')}: {why}", "", results)
    return passed(f"{counted(full, 'full game')} without a fault", results)


def _result(played: Played) -> str:
    """Return the outcome of the checked bot's game in words."""
    if played.was_ended_early:
        return "ended by the examiner, after it had taken long enough"
    result = played.record.result
    word = {played.bot: "won", None: "draw"}.get(result.winner, "lost")
    if result.score is None:
        return word
    return f"{word} {result.score[played.bot]} to {result.score[1 - played.bot]}"


def swap(evidence: Evidence) -> Verdict:
    """Being swapped, and swapping."""
    if not has_swap(parse_game(evidence.game)):
        return skipped(f"{evidence.game} has no swap")
    return plain_or_fault(evidence, "swap", lambda _: _swaps(evidence))


def _swaps(evidence: Evidence) -> Verdict:
    was = sum(any(player != each.bot for player in each.swaps) for each in evidence.played)
    own = [each for each in evidence.played if each.bot in each.swaps]
    asked = [each for each in evidence.played if each.bot == 1 and each.own_moves]
    said = f"its opponent took its seat in {counted(was, 'game')}, and it played on from the other one"
    if own:
        first_moves = sorted({each.record.moves[0].move for each in own})
        return passed(
            f"{said}; it swapped itself in {len(own)} of {counted(len(asked), 'game')} (after "
            f"{', '.join(first_moves)}), and played on"
        )
    return passed(f"{said}; it never swapped itself, in {counted(len(asked), 'game')} in which it could have")


def extra_turns(evidence: Evidence) -> Verdict:
    """Several moves of one side in a row."""
    if not has_extra_turns(parse_game(evidence.game)):
        return skipped(f"{evidence.game} has no extra turns")
    return plain_or_fault(evidence, "extra-turns", lambda _: _chains(evidence))


def _chains(evidence: Evidence) -> Verdict:
    own = max((each.longest_chain(each.bot) for each in evidence.played), default=0)
    theirs = max((each.longest_chain(1 - each.bot) for each in evidence.played), default=0)
    said = f"its opponent made up to {theirs} moves in a row"
    if own < 2:
        return passed(f"{said}; it never had an extra turn itself in these games")
    return passed(f"{said}, it made up to {own} itself")


def end_mid_game(evidence: Evidence) -> Verdict:
    """END at any moment."""
    return plain_or_fault(evidence, "end-mid-game", lambda games: _ends(evidence, games))


def _ends(evidence: Evidence, games: list[Played]) -> Verdict:
    for each in games:
        verdict = ending_fault(each, evidence.end_grace_s)
        if verdict is not None:
            return verdict
    return passed(f"it ended by itself in {counted(len(games), 'game')} that were over too soon")


def openings(evidence: Evidence) -> Verdict:
    """Openings, if the bot declares that it takes them."""
    if "openings" not in evidence.capabilities:
        return skipped(
            'not declared: capabilities = ["openings"] in its bot.toml would allow games from openings'
        )
    for each in evidence.of("openings"):
        if each.seen is not None and each.seen.unasked and each.seen.unasked[0].after.startswith("START;"):
            first = each.seen.unasked[0]
            return failed(
                f"in the game {each.scenario.title}, it sent {quote(first.line)} right after "
                f"{first.after!r}, before it was told of the opening",
                "with an opening START gives no turn: when the environment variable KALARENA_OPENING is "
                "set, "
                'wait for the first line that ends in YOU; or take "openings" out of its bot.toml',
                where=f"in the game {each.scenario.title}",
            )
    return plain_or_fault(
        evidence,
        "openings",
        lambda games: passed(f"{counted(len(games), 'game')} from openings without a fault"),
    )


def time_lines(evidence: Evidence) -> Verdict:
    """TIME lines, if the bot declares that it takes them."""
    if "time" not in evidence.capabilities:
        return skipped(
            'not declared: with capabilities = ["time"] in its bot.toml it is told what time is left'
        )
    told = [each for each in evidence.played if any(line.startswith("TIME;") for line in each.lines("to"))]
    lost = [each for each in told if each.lost_by_fault]
    if not told:
        return skipped("not tried: no game was played")
    if lost:
        return failed(
            f"{len(lost)} of {len(told)} games with TIME lines were lost by a fault, first "
            f"{lost[0].scenario.title}",
            "look whether it takes a TIME line for a CHANGE line: TIME comes right before the line that "
            "gives the turn",
            excerpt(lost[0]),
        )
    return passed(f"{counted(len(told), 'game')} with TIME lines without a fault")
