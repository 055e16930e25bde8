"""Verdicts on the resources that a bot uses: time, idle time, memory.  Pure."""

from collections.abc import Sequence

from referee.judge.results import MoveRecord
from tournaments.checking.judging import by_fault
from tournaments.checking.played import Played
from tournaments.checking.verdict import Evidence, Verdict, failed, passed, skipped, warned

NEAR = 0.8
"""A share of the memory that is worth a warning: a longer game may need a quarter more."""
NEAR_IN_TIME = 0.95
"""The same share of a time limit.  Bots with a clock use most of the limit, and the margin forgives some."""
IDLE_US = 50_000
"""A move that waits for at least so long without computing sleeps on purpose: a page of a file takes less."""
IDLE_SHARE = 0.2
"""A bot that computes for less than this share of such a move is idle in it."""
IDLE_MOVES = 3
"""Number of idle moves that are no accident, if they are IDLE_PART of all."""
IDLE_PART = 0.1
"""On a busy virtual machine 3 of 200 moves of a bot that answers at once took 120 ms that no counter records:
hiccups of the machine itself."""
NO_SLEEP = (
    "take out sleep(), and wait for input with a blocking read, not by asking again and again with pauses"
)


def percentile(values: Sequence[float], share: float) -> float:
    """Return the nearest-rank percentile of one value or more; ``share`` is between 0 and 1."""
    ordered = sorted(values)
    rank = max(1, -(-len(ordered) * round(share * 1000) // 1000))
    return ordered[rank - 1]


def times(evidence: Evidence) -> Verdict:
    """Time per move, against the limit."""
    late = [each for each in evidence.played if each.record.result.fault == "late" and each.lost_by_fault]
    if late:
        return failed(
            f"{len(late)} of {len(evidence.played)} games were lost on time, first {late[0].scenario.title}",
            by_fault(late[0]).advice,
            cause="late",
            where=f"{len(late)} of {len(evidence.played)} games",
        )
    numbers = move_numbers(evidence)
    if not numbers:
        return skipped("it made no move")
    control = evidence.played[0].record.control
    text = (
        f"median {numbers['move_median_ms']:.3g} ms, 95% below {numbers['move_p95_ms']:.3g} ms, "
        f"worst {numbers['move_worst_ms']:.3g} ms of {int(numbers['moves'])} moves"
    )
    if control.move_s is not None:
        share = numbers["move_worst_ms"] / control.move_s / 1000
        text += f"; at most {share:.1%} of the limit of {control.move_s:g} s a move"
    else:
        assert control.game_s is not None
        share = numbers["game_worst_ms"] / control.game_s / 1000
        text += f"; at most {share:.1%} of the limit of {control.game_s:g} s a game"
    if share > NEAR_IN_TIME:
        return warned(text, "leave more of it: the tournament's host may be slower, and busier")
    return passed(text)


def move_numbers(evidence: Evidence) -> dict[str, float]:
    """Times of moves in ms, of the games between processes (of interviews only if there are none)."""
    games = [each for each in evidence.played if each.seen is None] or evidence.interviews
    charged = [move.charged_us / 1000 for each in games for move in each.own_moves]
    if not charged:
        return {}
    return {
        "moves": len(charged),
        "move_median_ms": percentile(charged, 0.5),
        "move_p95_ms": percentile(charged, 0.95),
        "move_worst_ms": max(charged),
        "game_worst_ms": max(sum(move.charged_us for move in each.own_moves) / 1000 for each in games),
    }


def idle(evidence: Evidence) -> Verdict:
    """No time of its turns is slept away."""
    # A bot that sleeps does so in all of them.  In a single one our own process may have waited for a CPU,
    # which the sums include.
    whole = [each for each in evidence.interviews if _is_long_enough(each)]
    slept_through = [verdict for each in whole if (verdict := _slept_through(each)) is not None]
    if slept_through and len(slept_through) == len(whole):
        return slept_through[0]
    moves: list[tuple[Played, MoveRecord]] = []
    for each in evidence.played:
        # The first turn includes setting up: files may be read then.
        moves += [(each, move) for move in each.own_moves[1:] if move.cpu_us is not None]
    slept = [(each, move) for each, move in moves if _is_idle(move)]
    if len(slept) >= max(IDLE_MOVES, IDLE_PART * len(moves)):
        each, _ = slept[0]
        wall = percentile([move.wall_us / 1000 for _, move in slept], 0.5)
        cpu = percentile([(move.cpu_us or 0) / 1000 for _, move in slept], 0.5)
        return failed(
            f"{len(slept)} of its moves, first in the game {each.scenario.title}, took {wall:.0f} ms "
            "(median), in which "
            f"it computed for {cpu:.1f} ms: it sleeps, or waits for something",
            NO_SLEEP,
        )
    if not any(each.own_moves for each in evidence.played):
        return skipped("it made no move")
    return passed("it does not sleep in its turns")


def _is_long_enough(interview: Played) -> bool:
    """Return whether an interview has counters of the bot's use, and turns enough for a verdict."""
    seen = interview.seen
    counted = seen is not None and seen.cpu_us is not None and seen.wait_us is not None
    return counted and len(interview.own_moves) > IDLE_MOVES


def _slept_through(played: Played) -> Verdict | None:
    """Return the failure of a bot that slept through a long enough interview, by its sums; else None."""
    seen, moves = played.seen, played.own_moves[1:]
    assert seen is not None
    assert seen.cpu_us is not None
    assert seen.wait_us is not None
    median_us = percentile([move.wall_us for move in moves], 0.5)
    total_us = sum(move.wall_us for move in moves) - seen.wait_us
    if median_us < IDLE_US or seen.cpu_us >= IDLE_SHARE * total_us:
        return None
    return failed(
        f"in the game {played.scenario.title}, its moves took {median_us / 1000:.0f} ms (median), "
        f"but in all of these {total_us / 1000:.0f} ms it computed for {seen.cpu_us / 1000:.0f} ms: "
        "it sleeps, or waits for something",
        NO_SLEEP,
    )


def _is_idle(move: MoveRecord) -> bool:
    wall = move.wall_us - (move.wait_us or 0) - (move.referee_wait_us or 0)
    return wall >= IDLE_US and (move.cpu_us or 0) < IDLE_SHARE * wall


def memory(evidence: Evidence) -> Verdict:
    """Memory, against the limit."""
    over = [
        each
        for each in evidence.played
        if each.lost_by_fault and each.record.result.fault in ("memory-limit", "out-of-memory")
    ]
    if over:
        verdict = by_fault(over[0])
        return failed(verdict.sentence, verdict.advice)
    most = max((each.seen.memory_bytes for each in evidence.interviews if each.seen), default=0) >> 20
    if not most:
        return skipped("it was not seen for long enough")
    text = f"at most {most} MB were seen, {evidence.memory_mb} MB are allowed"
    if most > NEAR * evidence.memory_mb:
        return warned(text, "keep less, or bound its tables: what passes the limit is killed")
    return passed(text)


def repeats(evidence: Evidence) -> Verdict:
    """Report whether the bot plays the same game again: information only."""
    same: dict[tuple[str, int], set[tuple[str, ...]]] = {}
    count: dict[tuple[str, int], int] = {}
    for each in evidence.played:
        if each.seen is None and each.scenario.opponent and each.ended_regularly:
            key = (each.scenario.opponent, each.bot)
            same.setdefault(key, set()).add(tuple(move.move for move in each.record.moves))
            count[key] = count.get(key, 0) + 1
    repeated = {key: games for key, games in same.items() if count[key] > 1}
    if not repeated:
        return skipped("needs several games against the same opponent, and one of each was played")
    if all(len(games) == 1 for games in repeated.values()):
        return passed("it plays the same game again against the same opponent")
    return passed("it plays different games against the same opponent")
