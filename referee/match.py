"""The judge of one game.  No input or output, no clock: events in, effects out.

Theory of operation.  A match goes through three stages: the second player is given START and must
take it, then the first player, then they play.  (START goes out in this order because the course's
engine does so; waiting until a bot has taken it keeps a slow interpreter's start out of its playing
time, and lets a bot that dies at its start lose before anything is said to the other one.)  In play,
the turn of a bot begins when the line that gives it the turn was sent, and ends with its next
complete line.  Lines that a bot sends early wait in a queue for its turn, as with the course's engine.

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
from referee.clock import Clock, TimeControl
from referee.errors import RefereeError
from referee.events import (
    BotExited,
    Event,
    InputClosed,
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
)
from referee.games.base import Game, IllegalMoveError, InvalidMoveError, M, S, Side
from referee.games.opening import Step
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
    ) -> None:
        """``opening`` is announced before the first turn; ``timed`` bots are sent TIME lines."""
        self.game = game
        self.control = control
        self.names = names
        self._opening = opening
        self._timed = timed
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
        self._began = 0.0
        self._turn_began = 0.0
        self._free_s = control.setup_s
        """Time of the present turn that is not charged: only the first turn has some."""
        self._clocks = [Clock.fresh(control), Clock.fresh(control)]
        self._limits_s = [clock.limit_s for clock in self._clocks]
        self._sessions = (Session(moves_first=not opening), Session(moves_first=False))
        self._early: tuple[deque[LineReceived], deque[LineReceived]] = (deque(), deque())
        self._output_closed: list[OutputClosed | None] = [None, None]
        self._awaited: Send | None = None
        """The line whose sending matters: the one that gives a turn, or START."""

    def start(self, at: float) -> list[Send]:
        """Begin, at this time: the processes are being started."""
        self._began = at
        return self._open(Side.SECOND, at)

    def handle(self, event: Event) -> list[Send]:
        """Take one event; return what is to be sent.  Raises RefereeError only for bugs of ours."""
        if isinstance(event, Sent):
            player, at, line = event
            self.wire.append(WireLine(player, "to", line, self._micros(at)))
            awaited = self._awaited
            if awaited is None or player != awaited.player or line != awaited.line:
                return []  # nothing waited for this line to be gone
        if self.result is not None:
            return []
        if isinstance(event, LineReceived):
            player, at, line = event
            self.wire.append(WireLine(player, "from", line, self._micros(at)))
        elif not isinstance(event, Sent):
            self._note(event)
        try:
            if self.deadline is not None and event.at > self.deadline:
                return self._too_late(event)
            if isinstance(event, TimePassed):
                return []
            following: list[Send] = self._HANDLERS[type(event)](self, event)
            return following
        except ProtocolError as error:
            raise RefereeError(f"the judge contradicted the protocol: {error}") from error

    # The three stages.

    def _open(self, player: int, at: float) -> list[Send]:
        """Give a player its START; it has the start limit to take it."""
        self.starting = player
        self.deadline = at + self.control.start_s
        gives_turn = player == Side.FIRST and not self._opening
        return self._say_awaited(player, Start(self.seats[player]), timed=gives_turn)

    def _sent(self, event: Sent) -> list[Send]:
        """The awaited line has left."""
        player, at, _ = event
        self._awaited = None
        if player != self.starting:
            return self._begin_turn(player, at)
        if self._early[player]:
            return self._taken(Taken(player, at))  # it spoke before START: it lives
        return []

    def _taken(self, event: Taken) -> list[Send]:
        player, at = event
        if player != self.starting:
            return []
        if player == Side.SECOND:
            return self._open(Side.FIRST, at)
        self.starting = None
        if self._opening:
            self.deadline = None
            return self._announce_opening()
        return self._begin_turn(player, at)

    def _announce_opening(self) -> list[Send]:
        """Tell both bots each step of the opening; the last one gives the first turn."""
        sends = []
        for step in self._opening[:-1]:
            board = self.game.board_text(step.state)
            change = Change(step.move or OPENING_WORD, board, Next.OPPONENT)
            sends += [self._say(player, change) for player in (Side.FIRST, Side.SECOND)]
        step = self._opening[-1]
        return sends + self._change(step.move or OPENING_WORD, self.game.board_text(step.state))

    def _begin_turn(self, player: int, at: float) -> list[Send]:
        """The player's clock runs from now."""
        self.on_turn = player
        self._turn_began = at
        self.deadline = at + self._free_s + self._limits_s[player]
        if self._early[player]:
            event = self._early[player].popleft()
            return self._reply(player, max(at, event.at), event.line)
        closed = self._output_closed[player]
        return self._closed_output(closed._replace(at=at)) if closed is not None else []

    def _received(self, event: LineReceived) -> list[Send]:
        player, at, line = event
        if player == self.on_turn:
            return self._reply(player, at, line)
        early = self._early[player]
        early.append(event)
        if len(early) > MAX_QUEUED_LINES:
            return self._lose(player, Reason.FLOOD, "unasked-output", sentences.unasked(len(early), line))
        if player == self.starting:
            return self._taken(Taken(player, at))
        return []

    def _reply(self, player: int, at: float, line: str) -> list[Send]:
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

        elapsed = at - self._turn_began
        clock = self._clocks[player].after(max(0.0, elapsed - self._free_s))
        if clock is not self._clocks[player]:
            self._clocks[player], self._limits_s[player] = clock, clock.limit_s
        self._free_s = 0.0
        text = game.format_move(state, move)
        self.moves.append(MoveRecord(player, text, int(elapsed * 1e6 + 0.5)))
        self.state = following
        self.on_turn = self.deadline = None
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
        self._awaited = self._say(player, message)
        return [*sends, self._awaited]

    # Faults.

    def _too_late(self, event: Event) -> list[Send]:
        """Something happened after the deadline: its bot lost before that."""
        unfinished = event.unfinished if isinstance(event, TimePassed) else ("", "")
        if self.starting is not None:
            return self._lose(
                self.starting, Reason.START, "start-limit", sentences.start_limit(self.control.start_s)
            )
        player = self.on_turn
        assert player is not None  # a deadline is set only while starting or on turn
        elapsed = event.at - self._turn_began
        why = self._clocks[player].why_late(elapsed, self._free_s)
        return self._lose(player, Reason.TIMEOUT, "late", sentences.late(why, unfinished[player]))

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

    def _not_started(self, event: NotStarted) -> list[Send]:
        return self._lose(event.player, Reason.START, "not-runnable", sentences.not_started(event.why))

    def _lose(self, player: int, reason: Reason, fault: str, what: str, note: str = "") -> list[Send]:
        detail = f"{self.names[player]} ({self.seats[player]}) lost: {what}"
        gone = player if reason is Reason.EXIT or fault == "not-runnable" else None
        return self._finish(MatchResult(1 - player, reason, detail, None, fault, note), gone)

    def _finish(self, result: MatchResult, gone: int | None) -> list[Send]:
        """END to both, the current North first; a bot that is gone gets nothing."""
        self.result = result
        self.on_turn = self.starting = self.deadline = self._awaited = None
        order = (0, 1) if self.seats[0] == self.last_seat else (1, 0)
        return [self._say(player, End()) for player in order if player != gone]

    # Helpers.

    def _say(self, player: int, message: RefereeMessage) -> Send:
        return Send(player, self._sessions[player].say(message))

    def _micros(self, at: float) -> int:
        return int((at - self._began) * 1e6 + 0.5)

    def _note(self, event: Event) -> None:
        """Keep a fact for the record."""
        player: int | None = None
        rest: tuple[object, ...]
        if isinstance(event, TimePassed):
            if self.deadline is None or event.at <= self.deadline:
                return  # nothing came of it
            rest = event.unfinished
        else:
            player, rest = event.player, event[2:]
        text = "; ".join(str(part) for part in rest if part != "")
        self.facts.append(Fact(player, type(event).__name__, self._micros(event.at), text))

    _HANDLERS: dict[type[PlayerEvent], Any] = {  # noqa: RUF012 - a constant
        Sent: _sent,
        Taken: _taken,
        LineReceived: _received,
        LineTooLong: _too_long,
        OutputBlocked: _blocked,
        InputClosed: _closed_input,
        OutputClosed: _closed_output,
        BotExited: _exited,
        NotStarted: _not_started,
    }
