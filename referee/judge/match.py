"""The judge of one game, without input, output or a clock: events in, effects out.

Theory of operation.  A match has three stages: the second player is sent START and must read it, then the
first player, then they play.  (The course's engine sends START in this order.  Waiting until a bot has read
START keeps a slow interpreter's start out of its playing time, and lets a bot that dies at its start lose
before anything is sent to the other one.)  In play, the turn of a bot begins when the line that gives it the
turn was sent, and ends with its next complete line.  Lines that a bot sends early wait in a queue for its
turn, as with the course's engine.

Times are given in seconds of any clock and are kept in whole microseconds since the start, so that a game can
be judged again from its record with the same verdict.  With the fair clock a deadline that passed only causes
a check: where the counters show that less time is charged than passed, the deadline is put off by the
difference.

Every fault ends the game, with the other side credited; if neither bot's command could be run, the game is a
draw.  Where one event shows several faults, PRECEDENCE
decides, by the event's own time stamp; an event later than the deadline therefore always finds a bot that had
lost on time before it happened.  A line stamped exactly at the deadline counts.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Generic

from protocol.errors import ProtocolError, RemoteProtocolError
from protocol.messages import OPENING_WORD, Change, End, Next, RefereeMessage, Start, Swap, Time
from protocol.session import Session
from referee.errors import RefereeError
from referee.games.base import Game, IllegalMoveError, InvalidMoveError, M, S, Side
from referee.games.catalog import parse_game
from referee.games.opening import Step, parse_opening
from referee.judge import runtime_messages, verdict_text
from referee.judge.clock import (
    FAIR,
    QUEUED_EXTENSION_US,
    SUSPEND,
    Clock,
    TimeControl,
    charged_us,
    extension_us,
    host_fault_us,
    own_cpu_us,
)
from referee.judge.events import (
    BotExited,
    Event,
    InputClosed,
    LimitPassed,
    LineReceived,
    LineTooLong,
    NotStarted,
    OutputBlocked,
    OutputClosed,
    PlayerEvent,
    ProcessEnded,
    Send,
    Sent,
    StartRead,
    TimePassed,
    Usage,
)
from referee.judge.exit_causes import classified
from referee.judge.facts import fact_of
from referee.judge.limits import DEFAULT_WIRE_BYTES, Limits
from referee.judge.results import (
    GONE,
    JUDGE,
    NO_OWN_CONTROLS,
    Correction,
    Fact,
    MatchResult,
    MoveRecord,
    OwnControls,
    Player,
    Reason,
    WireLine,
)
from referee.judge.runtime_failure import (
    CAUSE_WAIT_US,
    RuntimeFailure,
    early_message,
    exit_hint,
    exit_note,
    message_note,
)

PRECEDENCE = (
    Reason.START,  # did not read START in time: nothing after that counts
    Reason.TIMEOUT,  # whatever came was too late
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

LIMIT_REASONS = {"memory": (Reason.MEMORY, "memory-limit"), "files": (Reason.FILES, "too-many-files")}
"""Name of a limit in LimitPassed -> reason and fault; any other limit has reason ``exit``."""


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
        tier: The tier of the sandbox.  With ``off`` bots have no limits that a verdict could mention.
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
    ) -> None:
        """Create a match that has not started.

        Args:
            game: The rule book.
            control: The time control.
            names: The players' names, for verdicts.
            opening: Steps that are announced before the first turn.
            timed: Whether each bot is sent TIME lines.
            wire_bytes: Bytes that a bot may send in all before it is flooding.
            limits: The limits that a verdict mentions.
            judge: The version of the rules, see ``results.JUDGE``.
            own_controls: See ``GameRecord.own_controls``.
        """
        self.game = game
        self.control = control
        self.names = names
        self.opening = opening
        """Steps that are announced before the first turn."""
        self._timed = timed
        self._wire_bytes = wire_bytes
        self._limits = limits
        self.judge = judge
        self.state: S = opening[-1].state if opening else game.initial_state()
        self.seats = game.seats(self.state)
        self.last_seat = game.seats(game.initial_state())[Side.SECOND]
        """The seat to which START and END are sent first: the course's North."""
        self.deadline: float | None = None
        """Moment after which TimePassed must be reported, in the time of the events; None for no deadline."""
        self.result: MatchResult | None = None
        self.moves: list[MoveRecord] = []
        self.wire: list[WireLine] = []
        self.facts: list[Fact] = []
        self.corrections: list[Correction] = []
        self._correction: Correction | None = None
        """Correction of the last reply, until it is recorded."""
        self.starting: int | None = None
        """The player that must read its START now; None in play."""
        self.on_turn: int | None = None
        """The player whose clock runs; None while starting and after the end."""
        self.began = 0.0
        """Start of the game, before its processes are started, in the time of the events."""
        self._now_us = 0
        self._opened_us = 0
        """Time at which START was sent to the player that is starting, in microseconds since the start."""
        self._turn_began_us = 0
        self.turn_began = 0.0
        """Beginning of the current turn, in the time of the events."""
        self._deadline_us: int | None = None
        """The deadline in microseconds since the start; ``deadline`` is derived from it."""
        setup_us = _to_us(control.setup_s)
        # A bot that is stopped while its opponent thinks cannot set itself up then.
        self._free_us = [setup_us, setup_us if control.ponder == SUSPEND else 0]
        """Microseconds of each player's next turn that are not charged: nonzero only before a first turn."""
        self._clocks = [Clock.fresh(control if own is None else own) for own in own_controls]
        self._limits_us = [_to_us(clock.limit_s) for clock in self._clocks]
        self._received_bytes = [0, 0]
        self._sessions = (Session(moves_first=not opening), Session(moves_first=False))
        self._early: tuple[deque[LineReceived], deque[LineReceived]] = (deque(), deque())
        self._output_closed: list[OutputClosed | None] = [None, None]
        self._failure: RuntimeFailure | None = None
        """Error message that the bot on turn printed instead of a move, while its cause is awaited."""
        self.gives_turn: Send | None = None
        """The line whose Sent event is awaited: START, or a line that gives a turn."""

    @property
    def clocks_ms(self) -> tuple[int, int]:
        """Values of the players' clocks when the current turn began, in milliseconds."""
        first, second = self._clocks
        return first.shown_ms, second.shown_ms

    @property
    def awaits_cause(self) -> bool:
        """True if a bot has lost by an error message of its runtime, and the cause is awaited."""
        return self._failure is not None and self.result is None

    def start(self, at: float) -> list[Send]:
        """Begin the match; ``at`` is the time at which the processes are being started."""
        self.began = at
        return self._open(Side.SECOND)

    def handle(self, event: Event) -> list[Send]:
        """Process one event; return the lines to send.

        Raises RefereeError for bugs of the referee, and when the host kept a bot waiting beyond all measure.
        """
        now_us = int((event.at - self.began) * 1e6 + 0.5)
        # Of two lines that came in one read, the second follows the lines sent in response to the first.
        if now_us < self._now_us:
            now_us = self._now_us
        self._now_us = now_us
        kind = type(event)  # not isinstance, for speed: each line passes here
        if kind is Sent:
            player, _, line = event  # type: ignore[misc]
            self.wire.append(WireLine(player, "to", line, now_us))
            awaited = self.gives_turn
            if awaited is None or player != awaited.player or line != awaited.line:
                return []  # this line is not awaited
        if self.result is not None:
            return []
        past = self._deadline_us is not None and now_us > self._deadline_us
        if kind is LineReceived:
            reply: LineReceived = event  # type: ignore[assignment]
            if reply.cores and reply.usage is not None:
                event = reply = self._corrected(reply, reply.usage)
            # A reply can be charged too much even if it comes before a deadline that was put off.
            past = past or (reply.usage is not None and self._is_overdrawn(reply))
            if past and reply.usage is not None:
                # The counters decide whether the line is late; for a line that loses, no move records them.
                self.facts.append(fact_of(event, now_us, len(self.wire)))
                self._record_correction()
            self.wire.append(WireLine(reply.player, "from", reply.line, now_us))
        elif kind is not Sent:
            if isinstance(event, ProcessEnded):
                event = classified(event, self.names[event.player], self._limits)
                kind = type(event)
            elif isinstance(event, TimePassed) and event.is_queued and event.activity != "stopped":
                event = event._replace(activity="queued")
            if past or kind is not TimePassed:
                self.facts.append(fact_of(event, now_us, len(self.wire)))
        try:
            if self._failure is not None and kind is not Sent:
                return self._follow_failure(self._failure, event, past)
            if past and self._is_too_late(event):
                return self._too_late(event)
            if kind is TimePassed:
                return []
            following: list[Send] = self._HANDLERS[kind](self, event)  # type: ignore[index]
            return following
        except ProtocolError as error:
            raise RefereeError(f"the judge contradicted the protocol: {error}") from error

    # The three stages.

    def _open(self, player: int) -> list[Send]:
        """Send START to a player, which must read it within the start limit."""
        self.starting = player
        self._opened_us = self._now_us
        self._set_deadline(self._now_us + _to_us(self.control.start_s))
        gives_turn = player == Side.FIRST and not self.opening
        return self._send_awaited(player, Start(self.seats[player]), timed=gives_turn)

    def _line_sent(self, event: Sent) -> list[Send]:
        """Process the Sent event of the awaited line: START, or a line that gives a turn."""
        player, at, _ = event
        self.gives_turn = None
        if player != self.starting:
            return self._begin_turn(player)
        if self._early[player]:
            return self._start_read(StartRead(player, at))  # it sent a line before START, so it is running
        return []

    def _start_read(self, event: StartRead) -> list[Send]:
        player = event.player
        if player != self.starting:
            return []
        if player == Side.SECOND:
            return self._open(Side.FIRST)
        self.starting = None
        if self.opening:
            self._clear_deadline()
            return self._announce_opening()
        return self._begin_turn(player)

    def _announce_opening(self) -> list[Send]:
        """Announce each step of the opening to both bots; the last one gives the first turn."""
        sends = []
        for step in self.opening[:-1]:
            board = self.game.board_text(step.state)
            change = Change(step.move or OPENING_WORD, board, Next.OPPONENT)
            sends += [self._send(player, change) for player in (Side.FIRST, Side.SECOND)]
        step = self.opening[-1]
        return sends + self._change(step.move or OPENING_WORD, self.game.board_text(step.state))

    def _begin_turn(self, player: int) -> list[Send]:
        """Begin a player's turn: its clock runs from now."""
        now_us = self._now_us
        self.on_turn = player
        self._turn_began_us = now_us
        self._deadline_us = at_us = now_us + self._free_us[player] + self._limits_us[player]
        self.turn_began = self.began + now_us / 1e6
        self.deadline = self.began + at_us / 1e6
        if self._early[player]:
            return self._reply(player, self._early[player].popleft().line, None)
        closed = self._output_closed[player]
        return self._closed_output(closed) if closed is not None else []

    def _received(self, event: LineReceived) -> list[Send]:
        player, at, line, usage, _ = event
        if player == self.on_turn and len(line) <= USUAL_CHARACTERS:
            return self._reply(player, line, usage)
        self._received_bytes[player] += len(line) + 1
        if self._received_bytes[player] > self._wire_bytes:
            return self._lose(player, Reason.FLOOD, "wire-limit", verdict_text.wire_limit(self._wire_bytes))
        if player == self.on_turn:
            return self._reply(player, line, usage)
        early = self._early[player]
        early.append(event)
        if len(early) > MAX_QUEUED_LINES:
            return self._lose(player, Reason.FLOOD, "unasked-output", verdict_text.unasked(len(early), line))
        if player == self.starting:
            return self._start_read(StartRead(player, at))
        return []

    def _reply(self, player: int, line: str, usage: Usage | None) -> list[Send]:
        """Process a line that the bot on turn completed in time: a move, or a fault."""
        game, state = self.game, self.state
        try:
            message = self._sessions[player].receive(line)
            if isinstance(message, Swap):
                move = self._swap()
            else:
                move = game.parse_move(state, message.move)
                if move == game.swap:
                    raise InvalidMoveError(
                        "bad-number", f"{message.move!r} is not a move: a swap is written SWAP"
                    )
            following = game.apply(state, move)
        except IllegalMoveError as error:
            reason = Reason.PROTOCOL if isinstance(message, Swap) else Reason.ILLEGAL
            return self._lose(player, reason, error.fault, verdict_text.refused(line, error.message))
        except (RemoteProtocolError, InvalidMoveError) as error:
            detail = verdict_text.refused(line, error.message)
            if self.judge > 1 and runtime_messages.begins_error_message(line):
                return self._await_cause(RuntimeFailure(player, error.fault, detail, line))
            return self._lose(player, Reason.PROTOCOL, error.fault, detail)

        wall_us = self._now_us - self._turn_began_us
        spent_us = self._charged_us(usage) if usage is not None or self._free_us[player] else wall_us
        clock = self._clocks[player]
        if clock.left_s is not None:
            self._clocks[player] = clock = clock.after(spent_us / 1e6)
            self._limits_us[player] = _to_us(clock.limit_s)
        self._free_us[player] = 0
        text = game.format_move(state, move)
        if usage is None:
            self.moves.append(MoveRecord(player, text, wall_us, spent_us))
        else:
            self.moves.append(MoveRecord(player, text, wall_us, spent_us, *usage))
            self._record_correction()
        self.state = following
        self.on_turn = self._deadline_us = self.deadline = None
        if isinstance(message, Swap):
            self.seats = game.seats(following)
        return self._announce(player, text, swapped=isinstance(message, Swap))

    def _swap(self) -> M:
        """Return the game's swap.  Raises IllegalMoveError if it has none."""
        swap = self.game.swap
        if swap is None:
            raise IllegalMoveError("swap-not-offered", "this game has no SWAP")
        return swap

    def _announce(self, mover: int, text: str, *, swapped: bool) -> list[Send]:
        """Announce a move to the bots; the player that is on turn next receives it last."""
        board = self.game.board_text(self.state)
        next_player: int = self.game.to_move(self.state)
        outcome = self.game.outcome(self.state)
        if outcome is None:
            # Nothing is sent to the swapper until the next move.
            return self._change(text, board, but=mover if swapped and mover != next_player else None)
        sends = [
            self._send(player, Change(text, board, Next.NOBODY)) for player in (1 - next_player, next_player)
        ]
        winner = None if outcome.winner is None else int(outcome.winner)
        detail = verdict_text.score(self.names, self.seats, winner, outcome.score, outcome.detail)
        result = MatchResult(winner, Reason(outcome.reason), detail, outcome.score)
        return sends + self._finish(result, gone=None)

    def _change(self, text: str, board: str, *, but: int | None = None) -> list[Send]:
        """Announce a move after which the game goes on to both bots, or to all ``but`` one."""
        player: int = self.game.to_move(self.state)
        you = self._send_awaited(player, Change(text, board, Next.YOU), timed=True)
        if but is not None:
            return you
        return [self._send(1 - player, Change(text, board, Next.OPPONENT)), *you]

    def _send_awaited(self, player: int, message: RefereeMessage, *, timed: bool) -> list[Send]:
        """Send a line whose Sent event is awaited, after a TIME line if the bot supports those."""
        sends = []
        if timed and self._timed[player]:
            own, opponent = self._clocks[player].shown_ms, self._clocks[1 - player].shown_ms
            sends.append(self._send(player, Time(own, opponent)))
        self.gives_turn = self._send(player, message)
        return [*sends, self.gives_turn]

    # Faults.

    def _charged_us(self, usage: Usage | None) -> int:
        """Return the charged time of the current turn so far, in microseconds."""
        player = self.on_turn
        assert player is not None  # called during a turn only
        counted = usage if self.control.clock == FAIR else None
        return max(0, charged_us(self._now_us - self._turn_began_us, counted) - self._free_us[player])

    def _corrected(self, reply: LineReceived, usage: Usage) -> LineReceived:
        """Return a reply without the CPU time that the bot used after it."""
        cpu_us = own_cpu_us(usage, self._now_us - self._turn_began_us, reply.cores)
        if cpu_us != usage.cpu_us:
            self._correction = Correction(len(self.wire), usage.cpu_us, reply.cores)
        return reply._replace(usage=usage._replace(cpu_us=cpu_us))

    def _record_correction(self) -> None:
        """Record the correction of a reply whose counters are recorded: of a move, or a late reply."""
        if self._correction is not None:
            self.corrections.append(self._correction)
            self._correction = None

    def _is_overdrawn(self, reply: LineReceived) -> bool:
        """Return True if a reply of the player on turn is charged more than its limit."""
        player = self.on_turn
        if player != reply.player or self.judge < 2:
            return False
        return self._charged_us(reply.usage) > self._limits_us[player]

    def _usage(self, event: Event) -> Usage | None:
        """Return the counters of the current turn that an event carries."""
        if isinstance(event, TimePassed) or (
            isinstance(event, LineReceived) and event.player == self.on_turn
        ):
            return event.usage
        return None

    def _is_too_late(self, event: Event) -> bool:
        """Confirm the deadline that passed and return True, or put it off.  Raises RefereeError."""
        if self.on_turn is None:
            return self._start_is_over(event)
        spent_us, limit_us = self._charged_us(self._usage(event)), self._limits_us[self.on_turn]
        usage = self._usage(event) if self.control.clock == FAIR else None
        queued = isinstance(event, TimePassed) and event.activity == "queued"
        more_us = extension_us(limit_us, spent_us, usage, is_queued=queued)
        if more_us is None:
            return True
        wall_us = self._now_us - self._turn_began_us
        if wall_us > host_fault_us(limit_us + self._free_us[self.on_turn]):
            raise RefereeError(self._kept_waiting(self.on_turn, "turn", wall_us, spent_us))
        self._set_deadline(self._now_us + more_us)
        return False

    def _start_is_over(self, event: Event) -> bool:
        """Return True if the start limit is confirmed; put it off otherwise.  Raises RefereeError."""
        player = self.starting
        usage = event.usage if isinstance(event, TimePassed) and self.control.clock == FAIR else None
        if player is None or usage is None or self.judge < 2:
            return True
        wall_us, limit_us = self._now_us - self._opened_us, _to_us(self.control.start_s)
        spent_us = charged_us(wall_us, usage)
        if spent_us > limit_us and event.activity != "queued":  # type: ignore[union-attr]
            return True
        if usage.cpu_us > limit_us:
            return True
        if wall_us > host_fault_us(limit_us):
            raise RefereeError(self._kept_waiting(player, "start", wall_us, spent_us))
        self._set_deadline(self._now_us + max(limit_us - spent_us, QUEUED_EXTENSION_US))
        return False

    def _kept_waiting(self, player: int, stage: str, wall_us: int, spent_us: int) -> str:
        return (
            f"this host kept {self.names[player]} waiting for a CPU for so long that its {stage} could not "
            f"be timed: {wall_us / 1e6:.3f} s passed, {spent_us / 1e6:.3f} s of it are charged"
        )

    def _too_late(self, event: Event) -> list[Send]:
        """Give the verdict for an event after the deadline: the bot had lost before that."""
        passed = event if isinstance(event, TimePassed) else TimePassed(event.at)
        if self.starting is not None:
            detail = verdict_text.start_limit(self.control.start_s, passed.activity)
            return self._lose(self.starting, Reason.START, "start-limit", detail)
        player = self.on_turn
        assert player is not None  # a deadline is set only while starting or on turn
        usage = self._usage(event)
        is_fair = usage is not None and self.control.clock == FAIR
        why = self._clocks[player].why_late(
            (self._now_us - self._turn_began_us) / 1e6,
            self._free_us[player] / 1e6,
            usage if is_fair else None,
            self._charged_us(usage) / 1e6,
        )
        if isinstance(event, LineReceived) and event.player == player:
            detail = verdict_text.late_reply(why, event.line)
        else:
            detail = verdict_text.late(why, passed.unfinished[player], passed.activity)
        return self._lose(player, Reason.TIMEOUT, "late", detail)

    def _too_long(self, event: LineTooLong) -> list[Send]:
        return self._lose(event.player, Reason.FLOOD, "long-line", verdict_text.long_line(event.head))

    def _blocked(self, event: OutputBlocked) -> list[Send]:
        return self._lose(event.player, Reason.BLOCKED, "not-reading", verdict_text.NOT_READING)

    def _closed_input(self, event: InputClosed) -> list[Send]:
        return self._lose(event.player, Reason.EXIT, "closed-input", verdict_text.CLOSED_INPUT)

    def _closed_output(self, event: OutputClosed) -> list[Send]:
        player = event.player
        if player not in (self.on_turn, self.starting):
            self._output_closed[player] = event  # lines it completed before still count
            return []
        return self._lose(player, Reason.EXIT, "closed-output", verdict_text.closed_output(event.unfinished))

    def _exited(self, event: BotExited) -> list[Send]:
        player = event.player
        note = exit_note(event)
        if self.judge > 1:
            lines = early_message([early.line for early in self._early[player]])
            hint = runtime_messages.find_fault(lines) if lines else None
            if hint is not None:
                note = message_note(lines, note)
            else:
                hint = exit_hint(event, self._limits)
            if hint is not None:
                return self._lose_by_hint(player, hint, note)
        detail = verdict_text.exited(event.status, self._when(player), event.unfinished)
        fault = "exited" if event.status >= 0 else "killed"
        return self._lose(player, Reason.EXIT, fault, detail, note)

    def _when(self, player: int) -> str:
        """Return the stage of the game in which this player's process ended."""
        if self.starting is not None:
            has_no_start = player == self.starting or self.starting == Side.SECOND
            return "before it had taken its START line" if has_no_start else "before the first move"
        is_its_turn = player == self.on_turn or self._failure is not None
        return "on its turn" if is_its_turn else "while it was not its turn"

    def _limit_passed(self, event: LimitPassed) -> list[Send]:
        detail = verdict_text.limit_passed(event.limit, event.used, event.allowed)
        reason, fault = Reason.EXIT, f"{event.limit}-limit"
        if self.judge > 1:
            reason, fault = LIMIT_REASONS.get(event.limit, (reason, fault))
        return self._lose(event.player, reason, fault, detail)

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
        self._clear_deadline()
        order = (0, 1) if self.seats[0] == self.last_seat else (1, 0)
        return [self._send(player, End()) for player in order if player != gone]

    # Runtimes that give up.

    def _lose_by_hint(self, player: int, hint: runtime_messages.Hint, note: str) -> list[Send]:
        """Give the verdict on a bot that ended for lack of memory or because of a file."""
        reason = Reason.MEMORY if hint.fault == runtime_messages.MEMORY else Reason.FILES
        detail = verdict_text.gave_up(hint, self._when(player), self._limits)
        return self._lose(player, reason, hint.fault, detail, note)

    def _await_cause(self, failure: RuntimeFailure) -> list[Send]:
        """Begin to wait for the cause of an error message of the bot on turn, which has lost.

        No player is on turn until the verdict, so that no line is taken for a move.
        """
        player = failure.player
        failure.lines += [early.line for early in self._early[player]]
        self._early[player].clear()
        self._failure = failure
        limit_us = self._now_us + CAUSE_WAIT_US
        self._set_deadline(limit_us if self._deadline_us is None else min(limit_us, self._deadline_us))
        self.on_turn = None
        closed = self._output_closed[player]
        if closed is not None:
            failure.add(closed, self._limits)
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
            return self._limit_passed(event)
        is_last = failure.add(event, self._limits)
        return self._settle_failure(failure, is_last=is_last or is_too_much)

    def _is_flooding(self, event: LineReceived) -> bool:
        """Count a line that comes while a cause is awaited; return True if the bot has sent too much."""
        player, early = event.player, self._early[event.player]
        self._received_bytes[player] += len(event.line) + 1
        early.append(event)
        return self._received_bytes[player] > self._wire_bytes or len(early) > MAX_QUEUED_LINES

    def _settle_failure(self, failure: RuntimeFailure, *, is_last: bool) -> list[Send]:
        """Give the verdict if the cause is known, or if no further event can name it."""
        hint, note = failure.conclude()
        if hint is not None:
            return self._lose_by_hint(failure.player, hint, note)
        if not is_last:
            return []
        return self._lose(failure.player, Reason.PROTOCOL, failure.fault, failure.detail, note)

    # Helpers.

    def _send(self, player: int, message: RefereeMessage) -> Send:
        return Send(player, self._sessions[player].send(message))

    def _set_deadline(self, at_us: int) -> None:
        self._deadline_us = at_us
        self.deadline = self.began + at_us / 1e6

    def _clear_deadline(self) -> None:
        self._deadline_us = self.deadline = None

    _HANDLERS: dict[type[PlayerEvent], Any] = {  # noqa: RUF012 - a constant
        Sent: _line_sent,
        StartRead: _start_read,
        LineReceived: _received,
        LineTooLong: _too_long,
        OutputBlocked: _blocked,
        InputClosed: _closed_input,
        OutputClosed: _closed_output,
        BotExited: _exited,
        LimitPassed: _limit_passed,
        NotStarted: _not_started,
    }


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


def _to_us(seconds: float) -> int:
    return round(seconds * 1e6)
