"""Verdicts on games: the bot's start, and its play in all situations that a game may bring.  Pure.

Each function takes the evidence of one game and returns the verdict on one item.  Where a fault shows in
several games, the first one is described and the others are named.
"""

from collections.abc import Sequence
from dataclasses import replace

from referee.games.catalog import parse_game
from referee.judge.verdict_text import counted, quote
from tournaments.checking.advice import excerpt, what_happened, what_to_do
from tournaments.checking.evidence import (
    OUT_OF_TIME,
    Evidence,
    PlayedScenario,
    Verdict,
    failed,
    passed,
    skipped,
    warned,
)
from tournaments.checking.scenarios import PLAYS, has_extra_turns, has_swap

OFF_TURN = "while it was not its turn"
"""Words of referee/judge/verdict_text.py for a process that ended while its opponent was to move."""


def starts(evidence: Evidence) -> Verdict:
    """Judge whether the bot takes its START line."""
    for each in evidence.played:
        if each.never_started:
            verdict = fault_verdict(each)
            return failed(what_happened(each), verdict.advice, games=(each,), cause=verdict.cause)
    times = sorted(observed.start_us for _, observed in evidence.observed if observed.start_us)
    if not times:
        return skipped(f"not tried: {next(iter(evidence.left_out.values()), 'nothing was played')}")
    limit_s = evidence.played[0].record.control.start_s
    median, worst = times[len(times) // 2] / 1000, times[-1] / 1000
    return passed(
        f"it took START after {median:.0f} ms (median of {counted(len(times), 'start')}; worst "
        f"{worst:.0f} ms, limit {limit_s:g} s)"
    )


def plays_first(evidence: Evidence) -> Verdict:
    """Judge full games from the first seat."""
    return _full_games(evidence, "plays-first")


def plays_second(evidence: Evidence) -> Verdict:
    """Judge full games from the second seat."""
    return _full_games(evidence, "plays-second")


def _full_games(evidence: Evidence, item: str) -> Verdict:
    if fault := fault_or_gap(evidence, item):
        return fault
    games = evidence.played_for(item)
    results = tuple(f"{each.scenario.title}: {_result(each)}" for each in games)
    full = sum(each.ended_regularly for each in games)
    if full == len(games):
        return passed(f"{counted(full, 'full game')} without a fault", results)
    moves = sum(len(each.own_moves) for each in games)
    why = next(iter(evidence.left_out.values()), "the test opponent ended games that took too long")
    return warned(f"{moves} moves without a fault, but {counted(full, 'full game')}: {why}", details=results)


def _result(played: PlayedScenario) -> str:
    """Return the outcome of the checked bot's game in words."""
    if played.was_ended_early:
        return "ended by the test opponent, because it took too long"
    result = played.record.result
    word = {played.bot: "won", None: "draw"}.get(result.winner, "lost")
    if result.score is None:
        return word
    return f"{word} {result.score[played.bot]} to {result.score[1 - played.bot]}"


def swap(evidence: Evidence) -> Verdict:
    """Judge the play after swaps of the opponent and of the bot."""
    if not has_swap(parse_game(evidence.game)):
        return skipped(f"{evidence.game} has no swap")
    if fault := fault_or_gap(evidence, "swap"):
        return fault
    was = sum(any(player != each.bot for player in each.swaps) for each in evidence.played)
    own = [each for each in evidence.played if each.bot in each.swaps]
    offered = sum(each.bot == 1 and bool(each.own_moves) for each in evidence.played)
    if not was and not offered:
        return skipped("not tried: no game came to a swap")
    offers, results = counted(offered, "game"), []
    if was:
        results.append(f"continued correctly after the opponent's SWAP in {counted(was, 'game')}")
    if own:
        first_moves = ", ".join(sorted({each.record.moves[0].move for each in own}))
        results.append(f"swapped in {len(own)} of {offers} (after {first_moves}), and continued correctly")
    elif offered:
        results.append(f"did not swap in {offers} in which it could have")
    return passed("; ".join(results))


def extra_turns(evidence: Evidence) -> Verdict:
    """Judge the play where one side makes several moves in a row."""
    if not has_extra_turns(parse_game(evidence.game)):
        return skipped(f"{evidence.game} has no extra turns")
    if fault := fault_or_gap(evidence, "extra-turns"):
        return fault
    own = max((each.longest_chain(each.bot) for each in evidence.played), default=0)
    theirs = max((each.longest_chain(1 - each.bot) for each in evidence.played), default=0)
    if max(own, theirs) < 2:
        return skipped("not tried: nobody had an extra turn")
    text = f"its opponent made up to {theirs} moves in a row"
    if own < 2:
        return passed(f"{text}; it never had an extra turn itself in these games")
    return passed(f"{text}, it made up to {own} itself")


def openings(evidence: Evidence) -> Verdict:
    """Judge games from openings, if the bot declares the capability."""
    if "openings" not in evidence.capabilities:
        return skipped(
            'not declared: capabilities = ["openings"] in its bot.toml would allow games from openings'
        )
    for each, observed in evidence.observed:
        if each.scenario.item != "openings" or not observed.unexpected_lines:
            continue
        first = observed.unexpected_lines[0]
        if first.after.startswith("START;"):
            return failed(
                f"{each.where}, it sent {quote(first.line)} right after {first.after!r}, before it "
                "received the opening",
                "with an opening START gives no turn: when the environment variable KALARENA_OPENING is set, "
                'wait for the first line that ends in YOU; or take "openings" out of its bot.toml',
                games=(each,),
                where=each.where,
            )
    if fault := fault_or_gap(evidence, "openings"):
        return fault
    return passed(f"{counted(len(evidence.played_for('openings')), 'game')} from openings without a fault")


def time_lines(evidence: Evidence) -> Verdict:
    """Judge games with TIME lines, if the bot declares the capability."""
    if "time" not in evidence.capabilities:
        return skipped('not declared: with capabilities = ["time"] in its bot.toml it receives the time left')
    if any(each.protocol for each in evidence.played):
        return skipped("an adapter reads the TIME lines")
    games = [each for each in evidence.played if any(line.startswith("TIME;") for line in each.lines("to"))]
    lost = [each for each in games if each.lost_by_fault]
    if not games:
        return skipped("not tried: no game was played")
    if lost:
        return failed(
            f"{len(lost)} of {len(games)} games with TIME lines were lost by a fault, first "
            f"{lost[0].scenario.title}",
            "look whether it takes a TIME line for a CHANGE line: TIME comes right before the line that "
            "gives the turn",
            excerpt(lost[0]),
            games=tuple(lost),
            cause=lost[0].record.result.fault or "",
            where=lost[0].where,
        )
    return passed(f"{counted(len(games), 'game')} with TIME lines without a fault")


def fault_or_gap(evidence: Evidence, item: str) -> Verdict | None:
    """Return the verdict on an item whose games were lost by a fault, or left out; None for all others."""
    games = evidence.played_for(item)
    lost = [each for each in games if each.lost_by_fault]
    if lost:
        verdict = fault_verdict(lost[0])
        if others := [each.scenario.title for each in lost[1:]]:
            also = f"it lost by a fault, too: {', '.join(others)}"
            verdict = replace(verdict, details=(*verdict.details, also), games=tuple(lost))
        return verdict
    if item in evidence.left_out and not any(each.was_ended_early for each in games):
        return _left_out(evidence.left_out[item], games, must_play=item in PLAYS)
    return None if games else skipped("not tried: no game of the check tests this")


def _left_out(why: str, games: Sequence[PlayedScenario], *, must_play: bool) -> Verdict:
    """Return the verdict where games were left out: a failure only if not one was played, but no pass."""
    if games:
        return warned(f"{len(games)} played without a fault; the others were not played: {why}")
    if not why.startswith(OUT_OF_TIME):
        return skipped(f"not tried: {why}")
    if must_play:
        return failed(f"not one game was played to its end: {why}", "let it think for less time a move")
    return warned(f"not tried: {why}")


def fault_verdict(played: PlayedScenario) -> Verdict:
    """Return the verdict on a game that the checked bot lost by a fault."""
    result, replies = played.record.result, len(played.own_moves)
    off_turn = result.fault == "closed-input" or OFF_TURN in result.detail
    when = f"after its reply {replies}" if off_turn else f"at its reply {replies + 1}"
    return failed(
        f"{played.where}, {when}: {what_happened(played)}",
        what_to_do(played),
        excerpt(played),
        games=(played,),
        cause=result.fault or "",
        where=played.where,
    )
