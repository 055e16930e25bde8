"""Judging a game again from its record: does all that it says follow from what happened?  Pure.

Theory of operation.  The judge knows nothing but the events it was told, and all of these are in the record:
lines as the wire log, everything else as facts, each with its place among the lines.  A new judge is told the
same, in the same order and at the same microseconds, and what it wants to send must be what the wire log says
was sent next.  Then the verdict, the moves, their times, the facts and the last position must be those of the
record.

Only what was said after the verdict may be missing: a line that could not be written then leaves no trace.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from referee.clock import CLOCKS, FAIR, WALL
from referee.events import (
    BotExited,
    Event,
    InputClosed,
    LimitPassed,
    LineReceived,
    LineTooLong,
    NotStarted,
    OutputBlocked,
    OutputClosed,
    Send,
    Sent,
    Taken,
    TimePassed,
    Usage,
)
from referee.facts import event_of
from referee.games.catalog import parse_game
from referee.games.opening import parse_opening
from referee.match import Match
from referee.results import Fact, GameRecord, MatchResult, MoveRecord, WireLine
from referee.sentences import quote, visible

UNWRITTEN = {kind.__name__ for kind in (InputClosed, OutputBlocked, BotExited, LimitPassed, NotStarted)}
"""Facts that can be the answer to a line that is to be sent."""
BACKDATED = {kind.__name__ for kind in (BotExited, OutputClosed, NotStarted)}
"""Facts that may be told later than they happened: the end of the bot on turn is, on purpose."""
LATE_LINE = LineReceived.__name__
"""The fact that goes with a line that came after the deadline: what the counters said of its turn."""
CARRIED: dict[str, tuple[type, ...]] = {
    LineTooLong.__name__: (str,),
    OutputClosed.__name__: (str,),
    BotExited.__name__: (int, str, str),
    LimitPassed.__name__: (str, int, int),
    NotStarted.__name__: (str,),
}
"""What each fact about a player carries, nothing if it is not here."""
WORDING = ("detail", "note")
"""What of a verdict is for people; another version may put it in other words."""


@dataclass(frozen=True, slots=True)
class Complaint:
    """Something in a record that does not follow from the rest of it."""

    what: str
    """Which field, for example ``winner`` or ``wall_us``."""
    where: str
    """Which row it is in, for example ``move 12``; empty if there is only one of it."""
    recorded: str
    follows: str
    remark: bool = False
    """Whether nothing is wrong with it: another version of this program chose these words."""

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        return visible(f"{place}{self.what}: recorded {self.recorded}, but {self.follows} follows")


class _Halt(Exception):  # noqa: N818 - no error: the record and the judge have parted, there is no going on
    def __init__(self, complaint: Complaint) -> None:
        super().__init__(str(complaint))
        self.complaint = complaint


def rejudge(record: GameRecord, version: str | None = None) -> list[Complaint]:
    """Everything in the record that does not follow; nothing if all is well.  Never raises an Exception.

    ``version`` is that of this program: to a record of another version its wording is only a remark.
    """
    if not record.sandbox:
        what = "facts as text alone, as records of schema 1 have them"
        return [Complaint("schema", "", what, "nothing: such a record cannot be judged again, and nothing")]
    replay = None
    try:
        _check_rows(record)
        replay = _Replay(record)
        replay.run()
        complaints = list(_differences(record, replay.match))
    except _Halt as halt:
        complaints = [halt.complaint]
    except Exception as error:
        # An altered record can ask anything of the judge; that it cannot be judged is the answer.
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


def _check_rows(record: GameRecord) -> None:
    """What the judge takes on trust, since the driver's own code makes it.  Raises _Halt."""
    usages: list[tuple[str, tuple[int | None, ...]]]
    usages = [(f"move {number}", move[4:]) for number, move in enumerate(record.moves, 1)]
    players = [(f"move {number}", move.player) for number, move in enumerate(record.moves, 1)]
    players += [(f"wire line {number}", line.player) for number, line in enumerate(record.wire, 1)]
    for number, fact in enumerate(record.facts, 1):
        where = f"fact {number}"
        if fact.name in (TimePassed.__name__, LATE_LINE):
            usages.append((where, fact.data[1] or ()))
        elif tuple(map(type, fact.data)) != CARRIED.get(fact.name, ()):
            follows = ", ".join(one.__name__ for one in CARRIED.get(fact.name, ())) or "nothing"
            raise _Halt(Complaint("data", where, repr(fact.data), follows))
        if fact.name != TimePassed.__name__:
            players.append((where, fact.player))  # type: ignore[arg-type]
    for where, player in players:
        if player not in (0, 1):
            raise _Halt(Complaint("player", where, repr(player), "0 or 1"))
    for where, usage in usages:
        if any(counter is not None and counter < 0 for counter in usage):
            raise _Halt(Complaint("usage", where, repr(tuple(usage)), "nothing below 0"))


class _Replay:
    """Tells a new judge what a record says happened.  Raises _Halt where the two part."""

    def __init__(self, record: GameRecord) -> None:
        self.record = record
        self.line = 0
        """The wire line that is next."""
        self.fact = 0
        """The fact that is next."""
        self._order = _Order(record)
        game = parse_game(record.game)
        if game.name != record.game:
            raise _Halt(Complaint("game", "", repr(record.game), repr(game.name)))
        first, second = record.players
        self.match: Match[Any, Any] = Match(
            game,
            record.control,
            (first.name, second.name),
            parse_opening(game, record.opening),
            ("time" in first.capabilities, "time" in second.capabilities),
            record.limits.wire_bytes,
        )

    def run(self) -> None:
        """From the start to the verdict."""
        match = self.match
        sends = match.start(0.0)
        fact = self._fact_due()
        if fact is not None and fact.name == NotStarted.__name__:
            sends = match.handle(self._take_fact(fact))  # before anybody could be told anything
        self._carry_out(sends)
        while match.result is None:
            self._carry_out(match.handle(self._next_event()))
        if self.fact < len(self.record.facts):
            fact = self.record.facts[self.fact]
            raise _Halt(Complaint("fact", f"fact {self.fact + 1}", _told(fact), "nothing, at this place,"))
        if self.line < len(self.record.wire):
            line = self.record.wire[self.line]
            raise _Halt(Complaint("line", f"wire line {self.line + 1}", _said(line), "no further line"))

    def _carry_out(self, sends: Sequence[Send]) -> None:
        """As the driver does it (Driver._carry_out); tests/test_rejudge.py holds the two together."""
        match = self.match
        while sends:
            following: Sequence[Send] = ()
            for send in sends:
                event = self._answer(send)
                if event is None:
                    continue
                following = match.handle(event)
                if following and match.result is not None:
                    break  # the game ended on the way: what else was to be said no longer holds
            sends = following

    def _answer(self, send: Send) -> Event | None:
        """What became of a line that is to be sent; None if the verdict had come and it was not written."""
        fact = self._fact_due()
        if fact is not None and fact.player == send.player and fact.name in UNWRITTEN:
            return self._take_fact(fact)
        line = self._line_due() if fact is None else None
        if line is not None and (line.player, line.direction, line.line) == (send.player, "to", send.line):
            self._order.sent(self.line, line)
            self.line += 1
            return Sent(line.player, line.at_us / 1e6, line.line)
        if self.match.result is not None:
            return None
        recorded = _told(fact) if fact is not None else _said(line)
        raise _Halt(Complaint("line", f"wire line {self.line + 1}", recorded, _wanted(send)))

    def _next_event(self) -> Event:
        """What happened while the judge had nothing to say."""
        fact = self._fact_due()
        if fact is not None and fact.name != LATE_LINE:
            return self._take_fact(fact)
        line = self._line_due()
        if line is None:
            raise _Halt(Complaint("game", "", "as over", "no verdict at its end: more must have happened"))
        if line.direction != "from":
            raise _Halt(Complaint("line", f"wire line {self.line + 1}", _said(line), "no such line to a bot"))
        self._order.received(self.line, line)
        usage = self._usage(line.player)
        if fact is not None:
            usage = Usage(*fact.data[1])
            self.fact += 1
        self.line += 1
        return LineReceived(line.player, line.at_us / 1e6, line.line, usage)

    def _usage(self, player: int) -> Usage | None:
        """What the counters said of the turn that a line of this player ends: it is kept with the move."""
        match, moves = self.match, self.record.moves
        if player != match.on_turn or len(match.moves) >= len(moves):
            return None
        move = moves[len(match.moves)]
        if move.cpu_us is None or move.wait_us is None or move.referee_wait_us is None:
            return None
        return Usage(move.cpu_us, move.wait_us, move.referee_wait_us)

    def _fact_due(self) -> Fact | None:
        """The next fact, if it comes before the next wire line."""
        facts = self.record.facts
        if self.fact < len(facts) and facts[self.fact].after == self.line:
            return facts[self.fact]
        return None

    def _line_due(self) -> WireLine | None:
        wire = self.record.wire
        return wire[self.line] if self.line < len(wire) else None

    def _take_fact(self, fact: Fact) -> Event:
        self._order.told(self.fact, fact)
        if fact.name == Taken.__name__ and fact.player != self.match.starting:
            what = "no such fact: nobody waited for it, and nothing"
            raise _Halt(Complaint("fact", f"fact {self.fact + 1}", _told(fact), what))
        self.fact += 1
        return event_of(fact)


class _Order:
    """Holds the times to the order of what happened.

    The referee looks at the clock whenever it has read something and after each line that it has written, so
    that these times never go back.  But all lines that were read at once have one time, and the answers to
    the first of them are written before the next one is taken up.
    """

    def __init__(self, record: GameRecord) -> None:
        self._record = record
        self._now_us = 0
        """The latest time on a clock that never goes back."""
        self._read_us = -1
        """When a bot's output was read last."""
        self._reader: int | None = None
        """Whose it was."""
        self._seen: set[tuple[int | None, str]] = set()

    def sent(self, index: int, line: WireLine) -> None:
        self._go_on(f"wire line {index + 1}", line.at_us)

    def received(self, index: int, line: WireLine) -> None:
        self._read(f"wire line {index + 1}", line.player, line.at_us)

    def told(self, index: int, fact: Fact) -> None:
        where = f"fact {index + 1}"
        once = (fact.player, fact.name)
        if fact.name != TimePassed.__name__:
            if once in self._seen:
                raise _Halt(Complaint("fact", where, f"{_told(fact)} again", "that it happens only once"))
            self._seen.add(once)
        if fact.name == LineTooLong.__name__:
            self._read(where, fact.player, fact.at_us)
        elif fact.name in BACKDATED or (fact.name == TimePassed.__name__ and self._is_of_next(index, fact)):
            self._follow(where, fact.at_us, 0)
        else:
            self._go_on(where, fact.at_us)

    def _is_of_next(self, index: int, fact: Fact) -> bool:
        """Whether a look at the clock is one for what happened next, at that one's time."""
        facts, wire = self._record.facts, self._record.wire
        if index + 1 < len(facts) and facts[index + 1].after == fact.after:
            return facts[index + 1].at_us == fact.at_us
        return fact.after < len(wire) and wire[fact.after].at_us == fact.at_us

    def _read(self, where: str, player: int | None, at_us: int) -> None:
        if at_us != self._read_us or player != self._reader:
            self._go_on(where, at_us)
        self._read_us, self._reader = at_us, player

    def _go_on(self, where: str, at_us: int) -> None:
        self._follow(where, at_us, self._now_us)
        self._now_us = at_us

    def _follow(self, where: str, at_us: int, least_us: int) -> None:
        if at_us < least_us:
            raise _Halt(Complaint("at_us", where, str(at_us), f"a time of at least {least_us}"))


def _differences(record: GameRecord, match: Match[Any, Any]) -> Iterator[Complaint]:
    """What the judge found otherwise."""
    result = match.result
    assert result is not None
    for name in MatchResult.__slots__:
        recorded, follows = getattr(record.result, name), getattr(result, name)
        if recorded != follows:
            yield Complaint(name, "", _shown(recorded), _shown(follows))
    yield from _row_differences("move", MoveRecord._fields, record.moves, match.moves)
    yield from _row_differences("fact", Fact._fields, record.facts, match.facts)
    yield from _row_differences("wire line", WireLine._fields, record.wire, match.wire)
    final_state = match.game.board_text(match.state)
    if record.final_state != final_state:
        yield Complaint("final_state", "", _shown(record.final_state), _shown(final_state))


def _row_differences(
    kind: str, columns: Sequence[str], recorded: Sequence[Any], follows: Sequence[Any]
) -> Iterator[Complaint]:
    """Every cell of the first row that is otherwise, or the rows' number."""
    for number, (one, other) in enumerate(zip(recorded, follows, strict=False), 1):
        if one != other:
            for name, mine, theirs in zip(columns, one, other, strict=True):
                if mine != theirs:
                    yield Complaint(name, f"{kind} {number}", _shown(mine), _shown(theirs))
            return
    if len(recorded) != len(follows):
        yield Complaint(f"number of {kind}s", "", str(len(recorded)), str(len(follows)))


def _beside_the_verdict(record: GameRecord) -> Iterator[Complaint]:
    """What the judge never sees, but what still must fit what happened."""
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
    """The clock that ran must be one that could, and the one whose counters were read."""
    counted = any(move.cpu_us is not None for move in record.moves) or any(
        fact.name in (TimePassed.__name__, LATE_LINE) and fact.data[1] is not None for fact in record.facts
    )
    if record.clock not in CLOCKS:
        yield Complaint("clock", "", _shown(record.clock), f"one of {', '.join(CLOCKS)}")
    elif record.clock == FAIR and record.control.clock == WALL:
        yield Complaint("clock", "", _shown(record.clock), f"{WALL!r}, which was asked for,")
    elif record.clock == WALL and record.control.clock == FAIR and counted:
        yield Complaint("clock", "", _shown(record.clock), f"{FAIR!r}, whose counters were read,")


def _wrong_fact(record: GameRecord, where: str, fact: Fact) -> Iterator[Complaint]:
    """What a fact says of the record beside it."""
    limits = record.limits
    if fact.name == BotExited.__name__ and fact.player is not None:
        status = record.exit_status[fact.player]
        if status != fact.data[0]:
            yield Complaint("exit_status", where, _shown(status), _shown(fact.data[0]))
    elif fact.name == LimitPassed.__name__:
        limit, used, allowed = fact.data
        follows = limits.memory_mb if limit == "memory" else limits.processes
        if allowed != follows:
            yield Complaint("allowed", where, _shown(allowed), _shown(follows))
        if used < allowed:
            yield Complaint("used", where, _shown(used), f"at least {allowed}")
    elif fact.name == LineTooLong.__name__ and len(fact.data[0]) > limits.line_bytes:
        head = f"{len(fact.data[0])} characters"
        yield Complaint("head", where, head, f"at most {limits.line_bytes}")


def _shown(value: Any) -> str:
    return value if isinstance(value, str) and value.isdigit() else repr(getattr(value, "value", value))


def _said(line: WireLine | None) -> str:
    if line is None:
        return "no line"
    return f"{quote(line.line)} {line.direction} player {line.player + 1}"


def _wanted(send: Send) -> str:
    return f"{quote(send.line)} to player {send.player + 1}"


def _told(fact: Fact) -> str:
    who = "" if fact.player is None else f" of player {fact.player + 1}"
    return f"{fact.name}{who}"
