"""Replay of a game from its record, to verify that the record follows from the events (pure).

Theory of operation.  The judge depends only on the events it received, and all of them are in the record:
lines in the wire log, other events as facts, each with its position among the lines.  A new judge receives
the same events, in the same order and at the same microseconds, and each line that it sends must be the next
one in the wire log.  Afterwards the verdict, the moves, their times, the facts and the last position must be
those of the record.

Only lines after the verdict may be missing: the record has no trace of a line that could not be written then.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from referee.errors import RefereeError
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
    StartRead,
    TimePassed,
    Usage,
)
from referee.judge.facts import NAMES, event_of, usage_of
from referee.judge.match import Match, carry_out, new_match
from referee.judge.results import Correction, Fact, GameRecord, MatchResult, MoveRecord, WireLine
from referee.judge.verdict_text import quote, visible

SEND_OUTCOMES = {NAMES[kind] for kind in (InputClosed, OutputBlocked, BotExited, LimitPassed, NotStarted)}
"""Facts that can be the outcome of sending a line."""
LATE_LINE = NAMES[LineReceived]
"""Fact for a line that came after the deadline, with the counters of its turn."""
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
    def __init__(self, what: str, where: str, recorded: str, follows: str) -> None:
        self.complaint = Complaint(what, where, recorded, follows)


def check_replay(record: GameRecord, version: str | None = None) -> list[Complaint]:
    """Return the values of the record that do not follow from the others.  Never raises an Exception.

    ``version`` is that of this program: in a record of another version, differences of wording are only
    remarks.
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
        complaints = [stopped.complaint]
    except Exception as error:
        # An altered record can make the judge fail in any way; then it cannot be judged.
        where = "" if replay is None else f"wire line {replay.line + 1}"
        why = f"the judge's {type(error).__name__} ({error})"
        complaints = [Complaint("game", where, "as one that was judged", why)]
    try:
        complaints += _beside_the_verdict(record)
    except Exception as error:
        complaints.append(Complaint("record", "", "as a whole one", f"{type(error).__name__} ({error})"))
    if version is not None and record.versions.get("kalarena") != version:
        complaints = [replace(one, remark=one.what in WORDING) for one in complaints]
    return complaints


class _Replay:
    """Replays the events of a record with a new judge; raises _ReplayStopped if record and judge differ."""

    def __init__(self, record: GameRecord) -> None:
        self.record = record
        self.line = 0
        """Index of the next wire line."""
        self.fact = 0
        """Index of the next fact."""
        self._seen: set[tuple[int | None, str]] = set()
        """Facts so far that can happen only once."""
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
        if self.match.game.name != record.game:
            raise _ReplayStopped("game", "", repr(record.game), repr(self.match.game.name))

    def run(self) -> None:
        """Replay the game from the start to the verdict."""
        match = self.match
        sends = match.start(0.0)
        fact = self._fact_due()
        if fact is not None and fact.name == NAMES[NotStarted]:
            sends = match.handle(self._next_fact(fact))  # before any line could be sent
        carry_out(match, sends, self._answer)
        while match.result is None:
            carry_out(match, match.handle(self._next_event()), self._answer)

    def _answer(self, send: Send) -> Event | None:
        """Return the recorded event for a line that is sent; None if it was not written after the verdict."""
        fact = self._fact_due()
        if fact is not None and fact.player == send.player and fact.name in SEND_OUTCOMES:
            return self._next_fact(fact)
        line = self._line_due() if fact is None else None
        if line is not None and (line.player, line.direction, line.line) == (send.player, "to", send.line):
            self.line += 1
            return Sent(line.player, line.at_us / 1e6, line.line)
        if self.match.result is not None:
            return None
        recorded = _fact_text(fact) if fact is not None else _line_text(line)
        raise _ReplayStopped("line", f"wire line {self.line + 1}", recorded, _send_text(send))

    def _next_event(self) -> Event:
        """Return the next recorded event that is not the outcome of sending a line."""
        fact = self._fact_due()
        if fact is not None and fact.name != LATE_LINE:
            return self._next_fact(fact)
        line = self._line_due()
        if line is None:
            raise _ReplayStopped("game", "", "as over", "no verdict at its end: more must have happened")
        if line.direction != "from":
            where = f"wire line {self.line + 1}"
            raise _ReplayStopped("line", where, _line_text(line), "no such line to a bot")
        _check_player(line.player)
        usage = self._usage(line.player)
        if fact is not None:
            usage = usage_of(fact.data[1])
            self.fact += 1
        cores = 0
        correction = self._corrections.get(self.line)
        if correction is not None and usage is not None:
            usage, cores = usage._replace(cpu_us=correction.cpu_us), correction.cores
        self.line += 1
        return LineReceived(line.player, line.at_us / 1e6, line.line, usage, cores)

    def _usage(self, player: int) -> Usage | None:
        """Return the counters of the turn that a line of this player ends, which are kept with the move."""
        match, moves = self.match, self.record.moves
        if player != match.on_turn or len(match.moves) >= len(moves):
            return None
        move = moves[len(match.moves)]
        if move.cpu_us is None or move.wait_us is None or move.referee_wait_us is None:
            return None
        return usage_of(move[4:])  # type: ignore[arg-type]

    def _fact_due(self) -> Fact | None:
        """Return the next fact if it comes before the next wire line; otherwise None."""
        facts = self.record.facts
        if self.fact < len(facts) and facts[self.fact].after == self.line:
            return facts[self.fact]
        return None

    def _line_due(self) -> WireLine | None:
        wire = self.record.wire
        return wire[self.line] if self.line < len(wire) else None

    def _next_fact(self, fact: Fact) -> Event:
        once = (fact.player, fact.name)
        is_obsolete = fact.name == NAMES[StartRead] and fact.player != self.match.starting
        if once in self._seen or is_obsolete:
            what = "no such fact: it happens once, where it is awaited. Nothing"
            raise _ReplayStopped("fact", f"fact {self.fact + 1}", _fact_text(fact), what)
        if fact.name != NAMES[TimePassed]:
            self._seen.add(once)
            _check_player(fact.player)
        self.fact += 1
        return event_of(fact)


def _check_player(player: int | None) -> None:
    """Raise RefereeError for a player that is none of the two."""
    if player not in (0, 1):
        raise RefereeError(f"there is no player {player!r}")


def _differences(record: GameRecord, match: Match[Any, Any]) -> Iterator[Complaint]:
    """Yield the differences between the record and the replayed match."""
    result = match.result
    assert result is not None
    for name in MatchResult.__slots__:
        recorded, follows = getattr(record.result, name), getattr(result, name)
        if recorded != follows:
            yield Complaint(name, "", _value_text(recorded), _value_text(follows))
    yield from _row_differences("move", MoveRecord._fields, record.moves, match.moves)
    yield from _row_differences("fact", Fact._fields, record.facts, match.facts)
    yield from _row_differences("wire line", WireLine._fields, record.wire, match.wire)
    yield from _row_differences("correction", Correction._fields, record.corrections, match.corrections)
    final_state = match.game.board_text(match.state)
    if record.final_state != final_state:
        yield Complaint("final_state", "", _value_text(record.final_state), _value_text(final_state))


def _row_differences(
    kind: str, columns: Sequence[str], recorded: Sequence[Any], follows: Sequence[Any]
) -> Iterator[Complaint]:
    """Yield the different cells of the first row that differs, or else different numbers of rows."""
    for number, (one, other) in enumerate(zip(recorded, follows, strict=False), 1):
        if one != other:
            for name, old, new in zip(columns, one, other, strict=True):
                if old != new:
                    yield Complaint(name, f"{kind} {number}", _value_text(old), _value_text(new))
            return
    if len(recorded) != len(follows):
        yield Complaint(f"number of {kind}s", "", str(len(recorded)), str(len(follows)))


def _beside_the_verdict(record: GameRecord) -> Iterator[Complaint]:
    """Yield the errors in values that the judge does not use, and that must fit the events."""
    times = [line.at_us for line in record.wire] + [fact.at_us for fact in record.facts]
    if record.duration_us < max(times, default=0):
        yield Complaint("duration_us", "", str(record.duration_us), f"at least {max(times)}")
    yield from _wrong_clock(record)
    for number, fact in enumerate(record.facts, 1):
        yield from _wrong_fact(record, f"fact {number}", fact)
    longest = record.limits.line_bytes
    for number, line in enumerate(record.wire, 1):
        if line.direction == "from" and len(line.line) > longest:
            yield Complaint(
                "line", f"wire line {number}", f"{len(line.line)} characters", f"at most {longest}"
            )


def _wrong_clock(record: GameRecord) -> Iterator[Complaint]:
    """Yield an error if the recorded clock was not possible, or does not fit the recorded counters."""
    counted = any(move.cpu_us is not None for move in record.moves) or any(
        fact.name in (NAMES[TimePassed], LATE_LINE) and fact.data[1] is not None for fact in record.facts
    )
    if record.clock not in CLOCKS:
        yield Complaint("clock", "", _value_text(record.clock), f"one of {', '.join(CLOCKS)}")
    elif record.clock == FAIR and record.control.clock == WALL:
        yield Complaint("clock", "", _value_text(record.clock), f"{WALL!r}, which was asked for,")
    elif record.clock == WALL and record.control.clock == FAIR and counted:
        yield Complaint("clock", "", _value_text(record.clock), f"{FAIR!r}, whose counters were read,")


def _wrong_fact(record: GameRecord, where: str, fact: Fact) -> Iterator[Complaint]:
    """Yield the differences between a fact and the record's other values."""
    limits = record.limits
    if fact.name == NAMES[BotExited] and fact.player is not None:
        status = record.exit_status[fact.player]
        if status != fact.data[0]:
            yield Complaint("exit_status", where, _value_text(status), _value_text(fact.data[0]))
    elif fact.name == NAMES[LimitPassed]:
        limit, used, allowed = fact.data
        follows = getattr(limits, LIMIT_FIELDS.get(limit, ""), allowed)
        if allowed != follows:
            yield Complaint("allowed", where, _value_text(allowed), _value_text(follows))
        if used < allowed:
            yield Complaint("used", where, _value_text(used), f"at least {allowed}")
    elif fact.name == NAMES[LineTooLong] and len(fact.data[0]) > limits.line_bytes:
        head = f"{len(fact.data[0])} characters"
        yield Complaint("head", where, head, f"at most {limits.line_bytes}")


def _value_text(value: Any) -> str:
    return value if isinstance(value, str) and value.isdigit() else repr(getattr(value, "value", value))


def _line_text(line: WireLine | None) -> str:
    if line is None:
        return "no line"
    return f"{quote(line.line)} {line.direction} player {line.player + 1}"


def _send_text(send: Send) -> str:
    return f"{quote(send.line)} to player {send.player + 1}"


def _fact_text(fact: Fact) -> str:
    player = "" if fact.player is None else f" of player {fact.player + 1}"
    return f"{fact.name}{player}"
