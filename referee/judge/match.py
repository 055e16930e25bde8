"""The judge of one game, without input, output or a clock: events in, effects out.

Theory of operation.  A match has three stages: the second player is sent START and must read it, then the
first player, then they play.  (The course's engine sends START in this order.  Waiting until a bot has read
START keeps a slow interpreter's start out of its playing time, and lets a bot that dies at its start lose
before anything is sent to the other one.)  In play, the turn of a bot begins when the line that gives it the
turn was sent, and ends with its next complete line.  Lines that a bot sends early wait in a queue for its
turn, as with the course's engine.

The clocks and the deadlines are those of a GameClock.

Every fault ends the game, with the other side credited; if neither bot's command could be run, the game is a
draw.  Where one event shows several faults, PRECEDENCE
decides, by the event's own time stamp; an event later than the deadline therefore always finds a bot that had
lost on time before it happened.  A line stamped exactly at the deadline counts.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Generic

from protocol.errors import ProtocolError, RemoteProtocolError
from protocol.messages import SWAP_WORD
from referee.errors import RefereeError
from referee.games.base import Game, IllegalMoveError, InvalidMoveError, M, S, Side
from referee.games.catalog import parse_game
from referee.games.opening import Step, parse_opening
from referee.judge import runtime_messages, verdict_text
from referee.judge.clock import TimeControl
from referee.judge.conversations import Conversations
from referee.judge.events import (
    BotExited,
    Event,
    FaultEvent,
    LimitPassed,
    LineReceived,
    NotStarted,
    OutputClosed,
    PlayerEvent,
    ProcessEnded,
    Send,
    Sent,
    StartRead,
    TimePassed,
    Usage,
)
from referee.judge.facts import fact_of
from referee.judge.faults import (
    CAUSE_WAIT_US,
    RuntimeFailure,
    classified,
    loss_by,
    loss_by_exit,
    neither_started,
)
from referee.judge.game_clock import GameClock
from referee.judge.limits import DEFAULT_WIRE_BYTES, Limits
from referee.judge.record_rows import Fact, MoveRecord, WireLine
from referee.judge.results import GONE, JUDGE, NO_OWN_CONTROLS, MatchResult, OwnControls, Player, Reason

PRECEDENCE = (
    Reason.START,  # did not read START in time: nothing after that counts
    Reason.TIMEOUT,  # whatever came was too late
    Reason.CPU,  # the awaited bot is not late, and nothing that it did counts as its fault
    Reason.MEMORY,  # the cause of a process's end is more useful than its end
    Reason.FILES,
    Reason.EXIT,
    Reason.FLOOD,
    Reason.BLOCKED,
    Reason.PROTOCOL,  # a line must be a message before it can be a move
    Reason.ILLEGAL,
)
"""Order of faults where one event shows several, as ``handle`` looks for them.
tests/judge/test_match.py checks this list."""

USUAL_CHARACTERS = 64
"""Length of replies that do not count towards the bytes that a bot may send: a game has few replies."""
MAX_QUEUED_LINES = 1000
"""Number of early lines above which a bot is flooding.  A whole game has about 50 moves of each side,
and the oddest real bot seen was three lines ahead."""

UNCONFINED_TIERS = ("", "off", "weak")
"""Tiers of the sandbox in which a bot may lower its own priority, and so look starved.  Records without a
tier have the empty text."""


def new_match(
    game: str,
    control: TimeControl,
    players: tuple[Player, Player],
    opening: str,
    limits: Limits,
    tier: str,
    judge: int = JUDGE,
    own_controls: OwnControls = NO_OWN_CONTROLS,
) -> "Match[Any, Any]":
    """Return the match of a job or of a record, before its start.

    Args:
        game: The spec text of the rules.
        control: The time control.
        players: The two players.
        opening: The opening's text, see referee/games/opening.py.
        limits: The limits of each bot.
        tier: The tier of the sandbox.  With ``off`` bots have no limits that a verdict could mention.  A
            bot that is not confined may lower its own priority, so it never counts as starved.
        judge: The version of the judge's rules.
        own_controls: See ``GameRecord.own_controls``.

    Raises:
        SpecError: There is no such game.
        OpeningError: The game has no such opening.
    """
    rules = parse_game(game)
    first, second = players
    return Match(
        rules,
        control,
        (first.name, second.name),
        parse_opening(rules, opening),
        ("time" in first.capabilities, "time" in second.capabilities),
        limits.wire_bytes,
        None if tier == "off" else limits,
        judge,
        own_controls,
        is_confined=tier not in UNCONFINED_TIERS,
    )


class Match(Generic[S, M]):
    """One game between two bots.

    Call ``start``, then ``handle`` for every event, and carry out the effects that each call returns, until
    ``result`` is set (the effects returned with the result still count: they are the END lines).  Report
    TimePassed when ``deadline`` has passed, after all lines read by then.
    """

    def __init__(
        self,
        game: Game[S, M],
        control: TimeControl,
        names: tuple[str, str],
        opening: Sequence[Step] = (),
        timed: tuple[bool, bool] = (False, False),
        wire_bytes: int = DEFAULT_WIRE_BYTES,
        limits: Limits | None = None,
        judge: int = JUDGE,
        own_controls: OwnControls = NO_OWN_CONTROLS,
        *,
        is_confined: bool = False,
    ) -> None:
        """Create a match that has not started.

        Args:
            game: The rule book.
            control: The time control.
            names: The players' names, for verdicts.
            opening: Steps that are announced before the first turn.
            timed: True for each bot that is sent TIME lines.
            wire_bytes: Bytes that a bot may send in all before it is flooding.
            limits: The limits that a verdict mentions.
            judge: The version of the rules, see ``results.JUDGE``.
            own_controls: See ``GameRecord.own_controls``.
            is_confined: True if bots are in a sandbox that keeps them from changing their own priority.
        """
        self.game = game
        self.control = control
        self.names = names
        self.opening = opening
        """Steps that are announced before the first turn."""
        self._wire_bytes = wire_bytes
        self._limits = limits
        self.judge = judge
        self.state: S = opening[-1].state if opening else game.initial_state()
        self.seats = game.seats(self.state)
        self.last_seat = game.seats(game.initial_state())[Side.SECOND]
        """The seat to which START and END are sent first: the course's North."""
        self.result: MatchResult | None = None
        self.moves: list[MoveRecord] = []
        self.wire: list[WireLine] = []
        self.facts: list[Fact] = []
        self._happened: set[tuple[int, type[PlayerEvent]]] = set()
        """Player and class of the events so far that count once for each player; later ones are ignored."""
        first_on_turn = game.to_move(self.state)
        self._clock = GameClock(
            control, own_controls, names, judge, first_on_turn=first_on_turn, is_confined=is_confined
        )
        self.corrections = self._clock.corrections
        self.starting: int | None = None
        """The player that must read its START now; None in play."""
        self.on_turn: int | None = None
        """The player whose clock runs; None while starting and after the end."""
        self._received_bytes = [0, 0]
        self._conversations = Conversations(game, opening, timed, self._clock)
        self._early: tuple[deque[LineReceived], deque[LineReceived]] = (deque(), deque())
        self._is_answer_to_start = False
        """True if the first player's first line came after its START, and showed that START was read."""
        self._output_closed: list[OutputClosed | None] = [None, None]
        self._failure: RuntimeFailure | None = None
        """Error message that the bot on turn printed instead of a move, while its cause is awaited."""
        self.gives_turn: Send | None = None
        """The line whose Sent event is awaited: START, or a line that gives a turn."""

    @property
    def clocks_ms(self) -> tuple[int, int]:
        """Values of the players' clocks when the current turn began, in milliseconds."""
        return self._clock.shown_ms

    @property
    def began(self) -> float:
        """Start of the game, before its processes are started, in the time of the events."""
        return self._clock.began

    @property
    def turn_began(self) -> float:
        """Beginning of the current turn, or the time at which START was sent to the player that is starting.

        In the time of the events.
        """
        return self._clock.began + self._clock.since_us / 1e6

    @property
    def deadline(self) -> float | None:
        """Moment after which TimePassed must be reported, in the time of the events; None for no deadline."""
        clock = self._clock
        return None if clock.deadline_us is None else clock.began + clock.deadline_us / 1e6

    def start(self, at: float) -> list[Send]:
        """Begin the match; ``at`` is the time at which the processes are being started."""
        self._clock.began = at
        return self._open(Side.SECOND)

    def handle(self, event: Event) -> list[Send]:
        """Process one event; return the lines to send.

        Raises RefereeError for bugs of the referee, and when the host kept a bot waiting beyond all measure.
        """
        clock = self._clock
        now_us = clock.advance(event.at)
        kind = type(event)  # not isinstance, for speed: each line passes here
        if kind is Sent:
            player, _, line = event  # type: ignore[misc]
            self.wire.append(WireLine(player, "to", line, now_us))
            awaited = self.gives_turn
            if awaited is None or player != awaited.player or line != awaited.line:
                return []  # this line is not awaited
        if self.result is not None:
            return []
        past = clock.deadline_us is not None and now_us > clock.deadline_us
        if kind is LineReceived:
            reply: LineReceived = event  # type: ignore[assignment]
            if reply.usage is not None:
                event = reply = clock.corrected(reply, reply.usage, len(self.wire))
                # A reply can be charged too much even if it comes before a deadline that was put off.
                past = past or clock.is_overdrawn(reply)
                if past:
                    # The counters decide whether the line is late; no move records them if it loses.
                    self.facts.append(fact_of(event, now_us, len(self.wire)))
                    clock.record_correction()
            self.wire.append(WireLine(reply.player, "from", reply.line, now_us))
        elif kind is not Sent:
            if isinstance(event, ProcessEnded):
                event = self._classified(event)
                kind = type(event)
            elif isinstance(event, TimePassed):
                if event.is_queued and event.activity != "stopped":
                    event = event._replace(activity="queued")
                if not clock.counts_off_turn():
                    event = event._replace(off_turn=None)
            if not isinstance(event, TimePassed):
                once = (event.player, type(event))
                if once in self._happened or (kind is StartRead and event.player != self.starting):
                    return []
                self._happened.add(once)
            if past or kind is not TimePassed:
                self.facts.append(fact_of(event, now_us, len(self.wire)))
        try:
            if self._failure is not None and kind is not Sent:
                return self._follow_failure(self._failure, event, past)
            if past and (late := clock.past_deadline(event)) is not None:
                loser, loss = late
                return self._lose(loser, *loss)
            if kind is TimePassed:
                return []
            handler = self._HANDLERS.get(kind, Match._faulty)  # type: ignore[arg-type]
            following: list[Send] = handler(self, event)
            return following
        except ProtocolError as error:
            raise RefereeError(f"the judge contradicted the protocol: {error}") from error

    # The three stages.

    def _open(self, player: int) -> list[Send]:
        """Send START to a player, which must read it within the start limit."""
        self.starting = player
        self._clock.await_start(player)
        return self._await_last(self._conversations.start(player, self.seats[player]))

    def _line_sent(self, event: Sent) -> list[Send]:
        """Process the Sent event of the awaited line: START, or a line that gives a turn."""
        player, at, _ = event
        self.gives_turn = None
        if player != self.starting:
            return self._begin_turn(player)
        self._clock.start_sent()
        if self._early[player]:
            return self._start_read(StartRead(player, at))  # it sent a line before START, so it is running
        return []

    def _start_read(self, event: StartRead) -> list[Send]:
        player = event.player
        self._happened.add((player, StartRead))
        if player == Side.SECOND:
            return self._open(Side.FIRST)
        self.starting = None
        if self.opening:
            self._clock.stop()
            return self._await_last(self._conversations.announce_opening())
        return self._begin_turn(player)

    def _begin_turn(self, player: int) -> list[Send]:
        """Begin a player's turn: its clock runs from now."""
        self.on_turn = player
        self._clock.await_move(player)
        if self._early[player]:
            is_early, self._is_answer_to_start = not self._is_answer_to_start, False
            return self._reply(player, self._early[player].popleft().line, None, is_early=is_early)
        closed = self._output_closed[player]
        return self._closed_output(closed) if closed is not None else []

    def _received(self, event: LineReceived) -> list[Send]:
        player, at, line, usage, _, _ = event
        if player == self.on_turn and len(line) <= USUAL_CHARACTERS:
            return self._reply(player, line, usage)
        self._received_bytes[player] += len(line) + 1
        if self._received_bytes[player] > self._wire_bytes:
            return self._lose(player, Reason.FLOOD, "wire-limit", verdict_text.wire_limit(self._wire_bytes))
        if player == self.on_turn:
            return self._reply(player, line, usage)
        early = self._early[player]
        self._is_answer_to_start = player == self.starting == Side.FIRST and not self.opening
        early.append(event)
        if len(early) > MAX_QUEUED_LINES:
            return self._lose(player, Reason.FLOOD, "unasked-output", verdict_text.unasked(len(early), line))
        if player == self.starting:
            return self._start_read(StartRead(player, at))
        return []

    def _reply(self, player: int, line: str, usage: Usage | None, *, is_early: bool = False) -> list[Send]:
        """Process a line that the bot on turn completed in time: a move, or a fault.

        ``is_early`` is true if the line was complete before the turn began.
        """
        game, state = self.game, self.state
        try:
            move = self._conversations.receive(player, line, state)
            following = game.apply(state, move)
        except IllegalMoveError as error:
            reason = Reason.PROTOCOL if line == SWAP_WORD else Reason.ILLEGAL
            detail = verdict_text.refused(line, error.message) + (verdict_text.EARLY if is_early else "")
            return self._lose(player, reason, error.fault, detail)
        except (RemoteProtocolError, InvalidMoveError) as error:
            detail = verdict_text.refused(line, error.message)
            if self.judge > 1 and runtime_messages.begins_error_message(line, or_debug_text=self.judge < 6):
                return self._await_cause(RuntimeFailure(player, error.fault, detail, line))
            return self._lose(player, Reason.PROTOCOL, error.fault, detail)

        wall_us, spent_us = self._clock.charge(player, usage)
        text = game.format_move(state, move)
        if usage is None:
            self.moves.append(MoveRecord(player, text, wall_us, spent_us))
        else:
            self.moves.append(MoveRecord(player, text, wall_us, spent_us, *usage))
            self._clock.record_correction()
        self.state = following
        self.on_turn = None
        if is_swap := line == SWAP_WORD:
            self.seats = game.seats(following)
        return self._announce(player, text, swapped=is_swap)

    def _announce(self, mover: int, text: str, *, swapped: bool) -> list[Send]:
        """Announce a move to the bots; the player that is on turn next receives it last."""
        outcome = self.game.outcome(self.state)
        if outcome is None:
            # Nothing is sent to the swapper until the next move.
            but = mover if swapped and mover != self.game.to_move(self.state) else None
            return self._await_last(self._conversations.announce_move(text, self.state, but=but))
        sends = self._conversations.announce_last_move(text, self.state)
        winner = None if outcome.winner is None else int(outcome.winner)
        detail = verdict_text.score(self.names, self.seats, winner, outcome.score, outcome.detail)
        result = MatchResult(winner, Reason(outcome.reason), detail, outcome.score)
        return sends + self._finish(result, gone=None)

    def _await_last(self, sends: list[Send]) -> list[Send]:
        """Return the lines to send; the Sent event of the last line is awaited."""
        self.gives_turn = sends[-1]
        return sends

    # Faults.

    def _faulty(self, event: FaultEvent) -> list[Send]:
        """Give the verdict on an event that is a fault in every stage of the game."""
        return self._lose(event.player, *loss_by(event, self.judge))

    def _closed_output(self, event: OutputClosed) -> list[Send]:
        player = event.player
        if player not in (self.on_turn, self.starting):
            self._output_closed[player] = event  # lines it completed before still count
            return []
        return self._faulty(event)

    def _classified(self, end: ProcessEnded) -> BotExited | LimitPassed | NotStarted:
        """Return the event for the end of a process; see ``faults``."""
        if (end.player, StartRead) in self._happened:  # it was executed, whatever it printed
            end = end._replace(not_executed=None)
        if end.other is not None and self.starting == Side.SECOND:
            neither = neither_started(end, end.other, self.names, self._limits)
            if neither is not None:
                return neither
        return classified(end, self.names[end.player], self._limits)

    def _exited(self, event: BotExited) -> list[Send]:
        player = event.player
        early = [line.line for line in self._early[player]]
        loss = loss_by_exit(event, early, self._when(player), self._limits, self.judge)
        return self._lose(player, *loss)

    def _when(self, player: int) -> str:
        """Return the stage of the game in which this player's process ended."""
        if self.starting is not None:
            has_no_start = player == self.starting or self.starting == Side.SECOND
            return verdict_text.BEFORE_START if has_no_start else "before the first move"
        is_its_turn = player == self.on_turn or self._failure is not None
        return "on its turn" if is_its_turn else "while it was not its turn"

    def _not_started(self, event: NotStarted) -> list[Send]:
        if event.why_other:
            whys = (event.why, event.why_other)[:: -1 if event.player else 1]
            detail = verdict_text.neither_started(self.names, self.seats, whys)
            self._finish(MatchResult(None, Reason.START, detail, None, "not-runnable"), None)
            return []  # nobody is there to be sent END
        return self._lose(event.player, Reason.START, "not-runnable", verdict_text.not_started(event.why))

    def _lose(self, player: int, reason: Reason, fault: str, event: str, note: str = "") -> list[Send]:
        detail = f"{self.names[player]} ({self.seats[player]}) lost: {event}"
        gone = player if reason in GONE or fault == "not-runnable" else None
        return self._finish(MatchResult(1 - player, reason, detail, None, fault, note), gone)

    def _finish(self, result: MatchResult, gone: int | None) -> list[Send]:
        """End the game: send END to both, the current North first, but not to a bot that is gone."""
        self.result = result
        self.on_turn = self.starting = self.gives_turn = None
        self._clock.stop()
        order = (0, 1) if self.seats[0] == self.last_seat else (1, 0)
        return self._conversations.end([player for player in order if player != gone])

    # Runtimes that give up.

    def _await_cause(self, failure: RuntimeFailure) -> list[Send]:
        """Begin to wait for the cause of an error message of the bot on turn, which has lost.

        No player is on turn until the verdict, so that no line is taken for a move.
        """
        player = failure.player
        failure.lines += [early.line for early in self._early[player]]
        self._early[player].clear()
        self._failure = failure
        self._clock.await_cause(CAUSE_WAIT_US)
        self.on_turn = None
        closed = self._output_closed[player]
        if closed is not None:
            failure.add(closed, self._limits, self.judge)
        return self._settle_failure(failure, is_last=closed is not None)

    def _follow_failure(self, failure: RuntimeFailure, event: Event, past: bool) -> list[Send]:
        """Process an event while the cause of an error message is awaited.

        Events of the other bot do not count.  All lines go into the record, so a bot that sends too many ends
        the wait at once.
        """
        if past or isinstance(event, TimePassed):
            return self._settle_failure(failure, is_last=True) if past else []
        is_too_much = isinstance(event, LineReceived) and self._is_flooding(event)
        if event.player != failure.player:
            return self._settle_failure(failure, is_last=True) if is_too_much else []
        if isinstance(event, LimitPassed):
            return self._faulty(event)
        is_last = failure.add(event, self._limits, self.judge)
        return self._settle_failure(failure, is_last=is_last or is_too_much)

    def _is_flooding(self, event: LineReceived) -> bool:
        """Count a line that comes while a cause is awaited; return True if the bot has sent too much."""
        player, early = event.player, self._early[event.player]
        self._received_bytes[player] += len(event.line) + 1
        early.append(event)
        return self._received_bytes[player] > self._wire_bytes or len(early) > MAX_QUEUED_LINES

    def _settle_failure(self, failure: RuntimeFailure, *, is_last: bool) -> list[Send]:
        """Give the verdict if the cause is known, or if no further event can name it."""
        loss = failure.loss(self._when(failure.player), self._limits, self.judge, is_last=is_last)
        return [] if loss is None else self._lose(failure.player, *loss)

    _HANDLERS: dict[type[PlayerEvent], Any] = {  # noqa: RUF012 - a constant
        Sent: _line_sent,
        StartRead: _start_read,
        LineReceived: _received,
        OutputClosed: _closed_output,
        BotExited: _exited,
        NotStarted: _not_started,
    }
    """Methods for events; all others are faults."""


def carry_out(match: Match[Any, Any], sends: Sequence[Send], write: Callable[[Send], Event | None]) -> None:
    """Send the lines that a match returned, and the lines that follow from them.

    ``write`` sends one line and returns the outcome, most often a Sent event; None if there is none.
    """
    while sends:
        following: Sequence[Send] = ()
        for send in sends:
            event = write(send)
            if event is None:
                continue
            following = match.handle(event)
            assert not following or send is sends[-1] or match.result is not None
            if following and match.result is not None:
                break  # the game has ended, so the remaining lines are obsolete
        sends = following  # only the last line can have a following one
