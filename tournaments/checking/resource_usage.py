"""Verdicts on the resources that a bot uses: time, idle time, memory.  Pure."""

from collections.abc import Sequence

from referee.judge.clock import TimeControl
from referee.judge.record_rows import MoveRecord
from tournaments.checking.evidence import (
    Evidence,
    PlayedScenario,
    Verdict,
    failed,
    passed,
    skipped,
    warned,
)
from tournaments.checking.gameplay import fault_verdict

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
NO_YIELD = (
    "send @ID yield after the last move: without it each move takes until the state is stopped, which is "
    "nearly all of the time for it"
)


def percentile(values: Sequence[float], share: float) -> float:
    """Return the nearest-rank percentile of one value or more; ``share`` is between 0 and 1."""
    ordered = sorted(values)
    rank = max(1, -(-len(ordered) * round(share * 1000) // 1000))
    return ordered[rank - 1]


def times(evidence: Evidence) -> Verdict:
    """Judge the time per move, against the limit."""
    late = [each for each in evidence.played if each.lost_on_time]
    if late:
        share_of_games = f"{len(late)} of {len(evidence.played)} games"
        return failed(
            f"{share_of_games} were lost on time, first {late[0].scenario.title}",
            fault_verdict(late[0]).advice,
            games=tuple(late),
            cause="late",
            where=share_of_games,
        )
    numbers = move_numbers(evidence)
    if not numbers:
        return skipped("not tried: it made no move")
    control = evidence.played[0].record.control
    shares = []
    if control.move_s is not None:
        shares.append((numbers["move_worst_ms"] / control.move_s / 1000, f"{control.move_s:g} s a move"))
    if control.game_s is not None:
        increment = f" and {control.increment_s:g} s more a move" if control.increment_s else ""
        share = max(_share_of_game(each, control) for each in _timed(evidence))
        shares.append((share, f"{control.game_s:g} s a game{increment}"))
    share, limit = max(shares)
    text = (
        f"median {numbers['move_median_ms']:.3g} ms, 95% below {numbers['move_p95_ms']:.3g} ms, "
        f"worst {numbers['move_worst_ms']:.3g} ms of {int(numbers['moves'])} moves; "
        f"at most {share:.1%} of the limit of {limit}"
    )
    # The KGP adapter itself ends a turn when this share of the time has passed.
    if share > NEAR_IN_TIME and evidence.played[0].protocol != "kgp":
        return warned(text, "leave more of it: the tournament's host may be slower, and busier")
    return passed(text)


def _timed(evidence: Evidence) -> Sequence[PlayedScenario]:
    """Return the games whose times count: those between processes, else the conformance games."""
    return [each for each in evidence.played if each.observed is None] or evidence.played


def _share_of_game(each: PlayedScenario, control: TimeControl) -> float:
    """Return the share that the bot used of its time for a game; it got an increment after each move."""
    assert control.game_s is not None
    moves = each.own_moves
    return sum(move.charged_us for move in moves) / 1e6 / (control.game_s + control.increment_s * len(moves))


def move_numbers(evidence: Evidence) -> dict[str, float]:
    """Return the times of moves in ms, of the games between processes (else of the conformance games)."""
    games = _timed(evidence)
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
    """Judge whether the bot sleeps in its turns."""
    # A bot that sleeps does so in all conformance games.  In a single one the referee itself may have waited
    # for a CPU, which the sums include.
    verdicts = [
        _slept_through(each, observed.cpu_us, observed.wait_us)
        for each, observed in evidence.observed
        if observed.cpu_us is not None and observed.wait_us is not None and len(each.own_moves) > IDLE_MOVES
    ]
    if verdicts and verdicts[0] and all(verdicts):
        return verdicts[0]
    # Files may be read in the first turn, which is left out.  A move too brief to be measured was not idle.
    moves = [(each, move) for each in evidence.played for move in each.own_moves[1:]]
    slept = [(each, move) for each, move in moves if move.cpu_us is not None and _is_idle(move)]
    if len(slept) >= max(IDLE_MOVES, IDLE_PART * len(moves)):
        wall = percentile([move.wall_us / 1000 for _, move in slept], 0.5)
        cpu = percentile([(move.cpu_us or 0) / 1000 for _, move in slept], 0.5)
        return _idleness(
            slept[0][0],
            f"{len(slept)} of its moves, first {slept[0][0].where}, took {wall:.0f} ms (median), in which it "
            f"computed for {cpu:.1f} ms",
        )
    if not any(each.own_moves for each in evidence.played):
        return skipped("not tried: it made no move")
    return passed("it does not sleep in its turns")


def _slept_through(played: PlayedScenario, cpu_us: int, wait_us: int) -> Verdict | None:
    """Return the failure of a bot that slept through a conformance game, by sums of its times; else None."""
    moves = played.own_moves[1:]
    median_us = percentile([move.wall_us for move in moves], 0.5)
    total_us = sum(move.wall_us for move in moves) - wait_us
    if median_us < IDLE_US or cpu_us >= IDLE_SHARE * total_us:
        return None
    return _idleness(
        played,
        f"{played.where}, its moves took {median_us / 1000:.0f} ms (median), but in all of these "
        f"{total_us / 1000:.0f} ms it computed for {cpu_us / 1000:.0f} ms",
    )


def _idleness(played: PlayedScenario, sentence: str) -> Verdict:
    """Return the verdict on a bot that is idle in its turns: KGP allows to wait for the end of the time."""
    if played.protocol == "kgp":
        return warned(f"{sentence}: it waits until it is stopped", NO_YIELD, games=(played,))
    return failed(f"{sentence}: it sleeps, or waits for something", NO_SLEEP, games=(played,))


def _is_idle(move: MoveRecord) -> bool:
    wall = move.wall_us - (move.wait_us or 0) - (move.referee_wait_us or 0)
    return wall >= IDLE_US and (move.cpu_us or 0) < IDLE_SHARE * wall


def memory(evidence: Evidence) -> Verdict:
    """Judge the memory, against the limit."""
    for each in evidence.played:
        if each.lost_by_fault and each.record.result.fault in ("memory-limit", "out-of-memory"):
            verdict = fault_verdict(each)
            return failed(verdict.sentence, verdict.advice, games=(each,))
    most = max((observed.memory_bytes for _, observed in evidence.observed), default=0) >> 20
    if not evidence.has_started:
        return skipped("not tried: it never took its START line")
    if not most:
        return skipped("not tried: it was not seen for long enough")
    text = f"at most {most} MB were seen, {evidence.memory_mb} MB are allowed"
    if most > NEAR * evidence.memory_mb:
        return warned(text, "keep less, or bound its tables: what passes the limit is killed")
    return passed(text)


def repeats(evidence: Evidence) -> Verdict:
    """Report whether the bot plays the same game again: information only."""
    games: dict[tuple[str, int], list[tuple[str, ...]]] = {}
    for each in evidence.played:
        if each.observed is None and each.scenario.opponent and each.ended_regularly:
            moves = tuple(move.move for move in each.record.moves)
            games.setdefault((each.scenario.opponent, each.bot), []).append(moves)
    repeated = [same for same in games.values() if len(same) > 1]
    if not repeated:
        return skipped("needs several games against the same opponent, and one of each was played")
    if all(len(set(same)) == 1 for same in repeated):
        return passed("it plays the same game again against the same opponent")
    return passed("it plays different games against the same opponent")
