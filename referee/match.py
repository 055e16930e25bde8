"""The judge of one game.  No input or output, no clock: events in, effects out.

Theory of operation.  A match goes through three stages: the second player is given START and must
take it, then the first player, then they play.  (START goes out in this order because the course's
engine does so; waiting until a bot has taken it keeps a slow interpreter's start out of its playing
time, and lets a bot that dies at its start lose before anything is said to the other one.)  In play,
the turn of a bot begins when the line that gives it the turn was sent, and ends with its next
complete line.  Lines that a bot sends early wait in a queue for its turn, as with the course's engine.

Times come as seconds of any clock and are kept in whole microseconds since the start, so that a game can be
judged again from its record to the same verdict.  With the fair clock a deadline that passed is only an
occasion to look: where the counters say that less time is charged than passed, it is put off by the
difference.

Every fault ends the game, with the other side credited.  Where one event shows several faults,
PRECEDENCE decides, by the event's own time stamp; an event later than the deadline therefore always
finds a bot that had lost on time before it happened.  A line stamped exactly at the deadline counts.
"""

from collections import deque
from collections.abc import Sequence
from typing import Any, Generic

from protocol.errors import ProtocolError, RemoteProtocolError
from protocol.messages import OPENING_WORD, Change, End, Next, RefereeMessage, Start, Swap, Time
from protocol.session import Session
from referee import sentences
from referee.clock import (
    FAIR,
    LEAST_EXTENSION_US,
    QUEUED_EXTENSION_US,
    SUSPEND,
    Clock,
    TimeControl,
    charged_us,
    host_fault_us,
)
from referee.errors import RefereeError
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
    PlayerEvent,
    Send,
    Sent,
    Taken,
    TimePassed,
    Usage,
)
from referee.facts import fact_of
from referee.games.base import Game, IllegalMoveError, InvalidMoveError, M, S, Side
from referee.games.opening import Step
from referee.limits import DEFAULT_WIRE_BYTES
from referee.results import Fact, MatchResult, MoveRecord, Reason, WireLine

PRECEDENCE = (
    Reason.START,  # never took START in time: nothing after that counts
    Reason.TIMEOUT,  # late: whatever came was too late
    Reason.EXIT,
    Reason.FLOOD,
    Reason.BLOCKED,
    Reason.PROTOCOL,  # a line must be a message before it can be a move
    Reason.ILLEGAL,
)
"""Which fault is the verdict where one event shows several: the order in which ``handle`` looks for them.
tests/test_match_precedence.py holds it to this list."""

USUAL_CHARACTERS = 64
"""Replies of at most this length are not counted towards the bytes that a bot may send: a game has few."""
MAX_QUEUED_LINES = 1000
"""A bot with more unasked-for lines than this is flooding.  A whole game has about 50 moves of each
side, and the oddest real bot seen was three lines ahead."""


class Match(Generic[S, M]):
    """One game between two bots.

    Drive it so: ``start``, then ``handle`` for everything that happens, carrying out the effects
    that each returns, until ``result`` is set (the effects returned with it still count: they are the
    farewell lines).  Report TimePassed when ``deadline`` has passed, after all lines read by then.
    """

    def __init__(
        self,
        game: Game[S, M],
        control: TimeControl,
        names: tuple[str, str],
        opening: Sequence[Step] = (),
        timed: tuple[bool, bool] = (False, False),
        wire_bytes: int = DEFAULT_WIRE_BYTES,
    ) -> None:
        """``opening`` is announced before the first turn; ``timed`` bots are sent TIME lines; a bot that
        sends more than ``wire_bytes`` in all is flooding.
        """
        self.game = game
        self.control = control
        self.names = names
        self._opening = opening
        self._timed = timed
        self._wire_bytes = wire_bytes
        self.state: S = opening[-1].state if opening else game.initial_state()
        self.seats = game.seats(self.state)
        self.last_seat = game.seats(game.initial_state())[Side.SECOND]
        """The seat that is spoken to first in START and END: the course's North."""
        self.deadline: float | None = None
        """Report TimePassed after this moment, in the time of the events; None: no need."""
        self.result: MatchResult | None = None
        self.moves: list[MoveRecord] = []
        self.wire: list[WireLine] = []
        self.facts: list[Fact] = []
        self.starting: int | None = None
        """The player that is to take its START; None in play."""
        self.on_turn: int | None = None
        """The player whose clock runs; None while starting and after the end."""
        self.began = 0.0
        """When the game began, its processes not yet started; in the time of the events."""
        self._now_us = 0
        self._turn_began_us = 0
        self.turn_began = 0.0
        """When the present turn began, in the time of the events."""
        self._deadline_us: int | None = None
        """The deadline in microseconds since the start; ``deadline`` follows it."""
        setup_us = _to_us(control.setup_s)
        # A bot that is stopped while its opponent thinks cannot set itself up then.
        self._free_us = [setup_us, setup_us if control.ponder == SUSPEND else 0]
        """Time of each player's next turn that is not charged: only a first turn has some."""
        self._clocks = [Clock.fresh(control), Clock.fresh(control)]
        self._limits_us = [_to_us(clock.limit_s) for clock in self._clocks]
        self._heard_bytes = [0, 0]
        self._sessions = (Session(moves_first=not opening), Session(moves_first=False))
        self._early: tuple[deque[LineReceived], deque[LineReceived]] = (deque(), deque())
        self._output_closed: list[OutputClosed | None] = [None, None]
        self.gives_turn: Send | None = None
        """The line whose sending matters: the one that gives a turn, or START."""

    @property
    def clocks_ms(self) -> tuple[int, int]:
        """What the players' clocks show, in milliseconds, as they were when the present turn began."""
        first, second = self._clocks
        return first.shown_ms, second.shown_ms

    def start(self, at: float) -> list[Send]:
        """Begin, at this time: the processes are being started."""
        self.began = at
        return self._open(Side.SECOND)

    def handle(self, event: Event) -> list[Send]:
        """Take one event; return what is to be sent.

        Raises RefereeError for bugs of ours, and when our host kept a bot waiting beyond all measure.
        """
        now_us = int((event.at - self.began) * 1e6 + 0.5)
        # Of two lines that came in one read, the second is told after what we sent because of the first.
        if now_us < self._now_us:
            now_us = self._now_us
        self._now_us = now_us
        kind = type(event)  # asked thus, not by isinstance, for speed: each line passes here
        if kind is Sent:
            player, _, line = event  # type: ignore[misc]
            self.wire.append(WireLine(player, "to", line, now_us))
            awaited = self.gives_turn
            if awaited is None or player != awaited.player or line != awaited.line:
                return []  # nothing waited for this line to be gone
        if self.result is not None:
            return []
        past = self._deadline_us is not None and now_us > self._deadline_us
        if kind is LineReceived:
            reply: LineReceived = event  # type: ignore[assignment]
            if past and reply.usage is not None:
                # What decides whether the line is late; of a line that loses, no move keeps it.
                self.facts.append(fact_of(event, now_us, len(self.wire)))
            self.wire.append(WireLine(reply.player, "from", reply.line, now_us))
        elif kind is not Sent and (past or kind is not TimePassed):
            self.facts.append(fact_of(event, now_us, len(self.wire)))
        try:
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
        """Give a player its START; it has the start limit to take it."""
        self.starting = player
        self._set_deadline(self._now_us + _to_us(self.control.start_s))
        gives_turn = player == Side.FIRST and not self._opening
        return self._say_awaited(player, Start(self.seats[player]), timed=gives_turn)

    def _sent(self, event: Sent) -> list[Send]:
        """The awaited line has left."""
        player, at, _ = event
        self.gives_turn = None
        if player != self.starting:
            return self._begin_turn(player)
        if self._early[player]:
            return self._taken(Taken(player, at))  # it spoke before START: it lives
        return []

    def _taken(self, event: Taken) -> list[Send]:
        player = event.player
        if player != self.starting:
            return []
        if player == Side.SECOND:
            return self._open(Side.FIRST)
        self.starting = None
        if self._opening:
            self._clear_deadline()
            return self._announce_opening()
        return self._begin_turn(player)

    def _announce_opening(self) -> list[Send]:
        """Tell both bots each step of the opening; the last one gives the first turn."""
        sends = []
        for step in self._opening[:-1]:
            board = self.game.board_text(step.state)
            change = Change(step.move or OPENING_WORD, board, Next.OPPONENT)
            sends += [self._say(player, change) for player in (Side.FIRST, Side.SECOND)]
        step = self._opening[-1]
        return sends + self._change(step.move or OPENING_WORD, self.game.board_text(step.state))

    def _begin_turn(self, player: int) -> list[Send]:
        """The player's clock runs from now."""
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
        player, at, line, usage = event
        if player == self.on_turn and len(line) <= USUAL_CHARACTERS:
            return self._reply(player, line, usage)
        self._heard_bytes[player] += len(line) + 1
        if self._heard_bytes[player] > self._wire_bytes:
            return self._lose(player, Reason.FLOOD, "wire-limit", sentences.wire_limit(self._wire_bytes))
        if player == self.on_turn:
            return self._reply(player, line, usage)
        early = self._early[player]
        early.append(event)
        if len(early) > MAX_QUEUED_LINES:
            return self._lose(player, Reason.FLOOD, "unasked-output", sentences.unasked(len(early), line))
        if player == self.starting:
            return self._taken(Taken(player, at))
        return []

    def _reply(self, player: int, line: str, usage: Usage | None) -> list[Send]:
        """The bot on turn completed a line in time: a move, or a fault."""
        game, state = self.game, self.state
        try:
            message = self._sessions[player].hear(line)
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
            return self._lose(player, reason, error.fault, sentences.refused(line, error.message))
        except (RemoteProtocolError, InvalidMoveError) as error:
            return self._lose(player, Reason.PROTOCOL, error.fault, sentences.refused(line, error.message))

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
        self.state = following
        self.on_turn = self._deadline_us = self.deadline = None
        if isinstance(message, Swap):
            self.seats = game.seats(following)
        return self._announce(player, text, swapped=isinstance(message, Swap))

    def _swap(self) -> M:
        """The game's swap.  Raises IllegalMoveError if it has none."""
        swap = self.game.swap
        if swap is None:
            raise IllegalMoveError("swap-not-offered", "this game has no SWAP")
        return swap

    def _announce(self, mover: int, text: str, *, swapped: bool) -> list[Send]:
        """Tell the bots of a move: who is not next comes first, who is next last."""
        board = self.game.board_text(self.state)
        next_player: int = self.game.to_move(self.state)
        outcome = self.game.outcome(self.state)
        if outcome is None:
            # The swapper is told nothing until the next move.
            return self._change(text, board, but=mover if swapped and mover != next_player else None)
        sends = [
            self._say(player, Change(text, board, Next.NOBODY)) for player in (1 - next_player, next_player)
        ]
        winner = None if outcome.winner is None else int(outcome.winner)
        detail = sentences.score(self.names, self.seats, winner, outcome.score, outcome.detail)
        result = MatchResult(winner, Reason(outcome.reason), detail, outcome.score)
        return sends + self._finish(result, gone=None)

    def _change(self, text: str, board: str, *, but: int | None = None) -> list[Send]:
        """Tell both bots, or all ``but`` one, of a move after which the game goes on."""
        player: int = self.game.to_move(self.state)
        you = self._say_awaited(player, Change(text, board, Next.YOU), timed=True)
        if but is not None:
            return you
        return [self._say(1 - player, Change(text, board, Next.OPPONENT)), *you]

    def _say_awaited(self, player: int, message: RefereeMessage, *, timed: bool) -> list[Send]:
        """Say something whose sending matters, with the bot's time before it if it wants that."""
        sends = []
        if timed and self._timed[player]:
            own, opponent = self._clocks[player].shown_ms, self._clocks[1 - player].shown_ms
            sends.append(self._say(player, Time(own, opponent)))
        self.gives_turn = self._say(player, message)
        return [*sends, self.gives_turn]

    # Faults.

    def _charged_us(self, usage: Usage | None) -> int:
        """What of the present turn is charged so far."""
        player = self.on_turn
        assert player is not None  # asked in a turn only
        counted = usage if self.control.clock == FAIR else None
        return max(0, charged_us(self._now_us - self._turn_began_us, counted) - self._free_us[player])

    def _usage(self, event: Event) -> Usage | None:
        """What an event tells of the present turn's counters."""
        if isinstance(event, TimePassed) or (
            isinstance(event, LineReceived) and event.player == self.on_turn
        ):
            return event.usage
        return None

    def _is_too_late(self, event: Event) -> bool:
        """Whether the deadline that passed is confirmed; if not, it is put off.  Raises RefereeError."""
        if self.on_turn is None:
            return True  # the start limit, which is generous, is one of wall time
        spent_us, limit_us = self._charged_us(self._usage(event)), self._limits_us[self.on_turn]
        usage = self._usage(event) if self.control.clock == FAIR else None
        queued = isinstance(event, TimePassed) and event.doing == "queued"
        if queued and usage is not None and usage.cpu_us <= limit_us:
            extension_us = max(limit_us - spent_us, QUEUED_EXTENSION_US)
        elif spent_us > limit_us:
            return True
        else:
            extension_us = max(limit_us - spent_us, LEAST_EXTENSION_US)
        wall_us = self._now_us - self._turn_began_us
        if wall_us > host_fault_us(limit_us + self._free_us[self.on_turn]):
            raise RefereeError(
                f"this host kept {self.names[self.on_turn]} waiting for a CPU for so long that its turn "
                f"could not be timed: {wall_us / 1e6:.3f} s passed, {spent_us / 1e6:.3f} s of it are charged"
            )
        self._set_deadline(self._now_us + extension_us)
        return False

    def _too_late(self, event: Event) -> list[Send]:
        """Something happened after the deadline: its bot lost before that."""
        passed = event if isinstance(event, TimePassed) else TimePassed(event.at)
        if self.starting is not None:
            detail = sentences.start_limit(self.control.start_s, passed.doing)
            return self._lose(self.starting, Reason.START, "start-limit", detail)
        player = self.on_turn
        assert player is not None  # a deadline is set only while starting or on turn
        usage = self._usage(event)
        why = self._clocks[player].why_late(
            (self._now_us - self._turn_began_us) / 1e6,
            self._free_us[player] / 1e6,
            self._charged_us(usage) / 1e6 if usage is not None and self.control.clock == FAIR else None,
        )
        if isinstance(event, LineReceived) and event.player == player:
            detail = sentences.late_reply(why, event.line)
        else:
            detail = sentences.late(why, passed.unfinished[player], passed.doing)
        return self._lose(player, Reason.TIMEOUT, "late", detail)

    def _too_long(self, event: LineTooLong) -> list[Send]:
        return self._lose(event.player, Reason.FLOOD, "long-line", sentences.long_line(event.head))

    def _blocked(self, event: OutputBlocked) -> list[Send]:
        return self._lose(event.player, Reason.BLOCKED, "not-reading", sentences.NOT_READING)

    def _closed_input(self, event: InputClosed) -> list[Send]:
        return self._lose(event.player, Reason.EXIT, "closed-input", sentences.CLOSED_INPUT)

    def _closed_output(self, event: OutputClosed) -> list[Send]:
        player = event.player
        if player not in (self.on_turn, self.starting):
            self._output_closed[player] = event  # lines it completed before still count
            return []
        return self._lose(player, Reason.EXIT, "closed-output", sentences.closed_output(event.unfinished))

    def _exited(self, event: BotExited) -> list[Send]:
        if self.starting is not None:
            untold = event.player == self.starting or self.starting == Side.SECOND
            when = "before it had taken its START line" if untold else "before the first move"
        else:
            when = "on its turn" if event.player == self.on_turn else "while it was not its turn"
        detail = sentences.exited(event.status, when, event.unfinished)
        fault = "exited" if event.status >= 0 else "killed"
        note = sentences.last_words(event.last_words)
        return self._lose(event.player, Reason.EXIT, fault, detail, note)

    def _limit_passed(self, event: LimitPassed) -> list[Send]:
        detail = sentences.limit_passed(event.limit, event.used, event.allowed)
        return self._lose(event.player, Reason.EXIT, f"{event.limit}-limit", detail)

    def _not_started(self, event: NotStarted) -> list[Send]:
        return self._lose(event.player, Reason.START, "not-runnable", sentences.not_started(event.why))

    def _lose(self, player: int, reason: Reason, fault: str, what: str, note: str = "") -> list[Send]:
        detail = f"{self.names[player]} ({self.seats[player]}) lost: {what}"
        gone = player if reason is Reason.EXIT or fault == "not-runnable" else None
        return self._finish(MatchResult(1 - player, reason, detail, None, fault, note), gone)

    def _finish(self, result: MatchResult, gone: int | None) -> list[Send]:
        """END to both, the current North first; a bot that is gone gets nothing."""
        self.result = result
        self.on_turn = self.starting = self.gives_turn = None
        self._clear_deadline()
        order = (0, 1) if self.seats[0] == self.last_seat else (1, 0)
        return [self._say(player, End()) for player in order if player != gone]

    # Helpers.

    def _say(self, player: int, message: RefereeMessage) -> Send:
        return Send(player, self._sessions[player].say(message))

    def _set_deadline(self, at_us: int) -> None:
        self._deadline_us = at_us
        self.deadline = self.began + at_us / 1e6

    def _clear_deadline(self) -> None:
        self._deadline_us = self.deadline = None

    _HANDLERS: dict[type[PlayerEvent], Any] = {  # noqa: RUF012 - a constant
        Sent: _sent,
        Taken: _taken,
        LineReceived: _received,
        LineTooLong: _too_long,
        OutputBlocked: _blocked,
        InputClosed: _closed_input,
        OutputClosed: _closed_output,
        BotExited: _exited,
        LimitPassed: _limit_passed,
        NotStarted: _not_started,
    }


def _to_us(seconds: float) -> int:
    return round(seconds * 1e6)
