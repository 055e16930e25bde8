"""Replay of a game from its record, to verify that the record follows from the events (pure).

Theory of operation.  The judge depends only on the events it received, and all of them are in the record:
lines in the wire log, other events as facts, each with its position among the lines.  A new judge receives
the same events, in the same order and at the same microseconds, and each line that it sends must be the next
one in the wire log.  Afterwards the verdict, the moves, their times, the facts and the last position must be
those of the record.

Only lines after the verdict may be missing: the record has no trace of a line that could not be written then.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from referee.judge.clock import CLOCKS, FAIR, WALL
from referee.judge.events import (
    BotExited,
    Event,
    InputClosed,
    LimitPassed,
    LineReceived,
    LineTooLong,
    NotStarted,
    OutputBlocked,
    Send,
    Sent,
    TimePassed,
)
from referee.judge.facts import event_of, usage_of
from referee.judge.match import Match, carry_out, new_match
from referee.judge.record_rows import Fact, WireLine
from referee.judge.results import JUDGE, GameRecord, MatchResult
from referee.judge.verdict_text import quote, visible

SEND_OUTCOMES = InputClosed | OutputBlocked | BotExited | LimitPassed | NotStarted
"""Facts that can be the outcome of sending a line."""
COUNTER_STEP_US = 20_000
"""CPU time that may be counted too early or too late for each process: a clock tick of 10 ms of user time,
and one of system time."""
LIMIT_FIELDS = {"memory": "memory_mb", "process": "processes", "files": "directory_files"}
"""Name of a limit in LimitPassed -> its field in Limits, if this version has it."""
WORDING = ("detail", "note")
"""Fields of a verdict that are texts for people, whose words may differ between versions."""


@dataclass(frozen=True, slots=True)
class Complaint:
    """A value in a record that does not follow from the rest of it."""

    what: str
    """Name of the field, for example ``winner`` or ``wall_us``."""
    where: str
    """Name of the row, for example ``move 12``; empty if there is only one."""
    recorded: str
    follows: str
    remark: bool = False
    """True if the record is right, and only its words are those of another version."""

    def __str__(self) -> str:
        prefix = f"{self.where}: " if self.where else ""
        return visible(f"{prefix}{self.what}: recorded {self.recorded}, but {self.follows} follows")


class _ReplayStopped(Exception):  # noqa: N818 - not an error: record and judge differ
    """The arguments are those of a Complaint."""


def check_replay(record: GameRecord, version: str | None = None) -> list[Complaint]:
    """Return the values of the record that do not follow from the others.  Never raises an Exception.

    ``version`` is that of this program: in a record of another version, of the program or of the judge,
    differences of wording are only remarks.
    """
    if not record.sandbox:
        what = "facts as text alone, as records of schema 1 have them"
        return [Complaint("schema", "", what, "nothing: such a record cannot be judged again, and nothing")]
    replay = None
    try:
        replay = _Replay(record)
        replay.run()
        complaints = list(_differences(record, replay.match))
    except _ReplayStopped as stopped:
        complaints = [Complaint(*stopped.args)]
    except Exception as error:
        # An altered record can make the judge fail in any way; then it cannot be judged.
        where = "" if replay is None else replay.where
        why = f"the judge's {type(error).__name__} ({error})"
        complaints = [Complaint("game", where, "as one that was judged", why)]
    try:
        complaints += _beside_the_verdict(record)
    except Exception as error:
        why = f"{type(error).__name__} ({error})"
        complaints = complaints or [Complaint("record", "", "as a whole one", why)]
    if version is not None and (record.versions.get("kalarena") != version or record.judge != JUDGE):
        complaints = [replace(one, remark=one.what in WORDING) for one in complaints]
    return complaints


class _Replay:
    """Replays the events of a record with a new judge; raises _ReplayStopped if record and judge differ.

    The wire log of the new judge shows how many lines were replayed.
    """

    def __init__(self, record: GameRecord) -> None:
        self.record = record
        self._facts = deque(record.facts)
        """Facts that are not replayed yet."""
        self._corrections = {correction.line: correction for correction in record.corrections}
        self.match = new_match(
            record.game,
            record.control,
            record.players,
            record.opening,
            record.limits,
            record.sandbox,
            record.judge,
            record.own_controls,
        )

    @property
    def where(self) -> str:
        """The name of the next wire line."""
        return f"wire line {len(self.match.wire) + 1}"

    def run(self) -> None:
        """Replay the game from the start to the verdict."""
        match = self.match
        carry_out(match, match.start(0.0), self._answer)
        while match.result is None:
            carry_out(match, match.handle(self._next_event()), self._answer)

    def _due(self) -> Fact | WireLine | None:
        """Return the next fact or wire line of the record; None at its end."""
        number, wire = len(self.match.wire), self.record.wire
        if self._facts and self._facts[0].after == number:
            return self._facts[0]
        return wire[number] if number < len(wire) else None

    def _answer(self, send: Send) -> Event | None:
        """Return the recorded event for a line that is sent; None if it was not written after the verdict."""
        row = self._due()
        if isinstance(row, Fact):
            event = event_of(row)
            # A command that cannot be run is reported before any line is sent to the other bot.
            if isinstance(event, SEND_OUTCOMES) and (
                event.player == send.player or isinstance(event, NotStarted)
            ):
                self._facts.popleft()
                return event
        elif row and row.line == send.line and row.direction == "to" and row.player == send.player:
            return Sent(send.player, row.at_us / 1e6, send.line)
        if self.match.result is not None:
            return None
        raise _ReplayStopped("line", self.where, _row_text(row), _line_text(send.line, "to", send.player))

    def _next_event(self) -> Event:
        """Return the next recorded event that is not the outcome of sending a line."""
        row, match, moves = self._due(), self.match, self.record.moves
        if row is None:
            raise _ReplayStopped("game", "", "as over", "no verdict at its end: more must have happened")
        if isinstance(row, Fact):
            event = event_of(self._facts.popleft())
        elif row.direction == "from" and row.player in (0, 1):
            is_reply = row.player == match.on_turn and len(match.moves) < len(moves)
            counters = moves[len(match.moves)][4:] if is_reply else (None,)
            usage = None if None in counters else usage_of(counters)  # type: ignore[arg-type]
            event = LineReceived(row.player, row.at_us / 1e6, row.line, usage)
        else:
            raise _ReplayStopped("line", self.where, _row_text(row), "no such line")
        correction = self._corrections.get(len(match.wire))
        if correction is not None and isinstance(event, LineReceived) and event.usage is not None:
            usage = event.usage._replace(cpu_us=correction.cpu_us)
            event = event._replace(usage=usage, cores=correction.cores)
        return event


def _differences(record: GameRecord, match: Match[Any, Any]) -> Iterator[Complaint]:
    """Yield the differences between the record and the replayed match."""
    result = match.result
    assert result is not None
    for name in MatchResult.__slots__:
        yield from _unequal(name, "", getattr(record.result, name), getattr(result, name))
    yield from _row_differences("move", record.moves, match.moves)
    yield from _row_differences("fact", record.facts, match.facts)
    yield from _row_differences("wire line", record.wire, match.wire)
    yield from _row_differences("correction", record.corrections, match.corrections)
    yield from _unequal("game", "", record.game, match.game.name)
    yield from _unequal("final_state", "", record.final_state, match.game.board_text(match.state))


def _row_differences(kind: str, recorded: Sequence[Any], follows: Sequence[Any]) -> Iterator[Complaint]:
    """Yield the different cells of the first row that differs, or else different numbers of rows."""
    for number, (one, other) in enumerate(zip(recorded, follows, strict=False), 1):
        if one != other:
            for name, old, new in zip(other._fields, one, other, strict=True):
                yield from _unequal(name, f"{kind} {number}", old, new)
            return
    yield from _unequal(f"number of {kind}s", "", len(recorded), len(follows))


def _unequal(what: str, where: str, recorded: Any, follows: Any) -> Iterator[Complaint]:
    """Yield a complaint if the two values differ."""
    if recorded != follows:
        yield Complaint(what, where, _value_text(recorded), _value_text(follows))


def _beside_the_verdict(record: GameRecord) -> Iterator[Complaint]:
    """Yield the errors in values that the judge does not use, and that must fit the events."""
    times = [line.at_us for line in record.wire] + [fact.at_us for fact in record.facts]
    if record.duration_us < max(times, default=0):
        yield Complaint("duration_us", "", str(record.duration_us), f"at least {max(times)}")
    events = [event_of(fact) for fact in record.facts]
    counters: list[Any] = [one.usage for one in events if isinstance(one, TimePassed | LineReceived)]
    counters += [move.cpu_us for move in record.moves]
    clock = _value_text(record.clock)
    if record.clock not in CLOCKS:
        yield Complaint("clock", "", clock, f"one of {', '.join(CLOCKS)}")
    elif record.clock == FAIR and record.control.clock == WALL:
        yield Complaint("clock", "", clock, f"{WALL!r}, which was asked for,")
    elif record.clock == WALL and record.control.clock == FAIR and any(one is not None for one in counters):
        yield Complaint("clock", "", clock, f"{FAIR!r}, whose counters were read,")
    for number, event in enumerate(events, 1):
        yield from _wrong_fact(record, f"fact {number}", event)
    longest = record.limits.line_bytes
    for number, line in enumerate(record.wire, 1):
        if line.direction == "from" and len(line.line) > longest:
            length = f"{len(line.line)} characters"
            yield Complaint("line", f"wire line {number}", length, f"at most {longest}")


def _wrong_fact(record: GameRecord, where: str, event: Event) -> Iterator[Complaint]:
    """Yield the differences between a fact and the record's other values."""
    limits = record.limits
    if isinstance(event, BotExited):
        yield from _unequal("exit_status", where, record.exit_status[event.player], event.status)
    elif isinstance(event, LimitPassed):
        allowed = getattr(limits, LIMIT_FIELDS.get(event.limit, ""), event.allowed)
        yield from _unequal("allowed", where, event.allowed, allowed)
        if event.used < event.allowed:
            yield Complaint("used", where, _value_text(event.used), f"at least {event.allowed}")
    elif isinstance(event, TimePassed | LineReceived) and event.off_turn is not None and record.cores:
        cpu_us, span_us, cores = event.off_turn
        if cores > len(record.cores):
            yield Complaint("cores", where, str(cores), f"at most {len(record.cores)}")
        most_us = len(record.cores) * span_us + COUNTER_STEP_US * limits.processes
        if cpu_us > most_us:
            yield Complaint("off_turn", where, str(cpu_us), f"at most {most_us}")
    elif isinstance(event, LineTooLong) and len(event.head) > limits.line_bytes:
        yield Complaint("head", where, f"{len(event.head)} characters", f"at most {limits.line_bytes}")


def _value_text(value: Any) -> str:
    return value if isinstance(value, str) and value.isdigit() else repr(getattr(value, "value", value))


def _row_text(row: Fact | WireLine | None) -> str:
    if isinstance(row, Fact):
        return row.name if row.player is None else f"{row.name} of player {row.player + 1}"
    return "no line" if row is None else _line_text(row.line, row.direction, row.player)


def _line_text(line: str, direction: str, player: int) -> str:
    return f"{quote(line)} {direction} player {player + 1}"
