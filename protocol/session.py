"""One conversation between the referee and one bot, as a phase table.

Theory of operation.  A session is in one phase at a time.  Each message of either side is one of the signals
below.  The table lists the signals that a phase allows, and the phase that follows each signal.  A missing
entry is an error: LocalProtocolError if the referee was about to send the message, RemoteProtocolError if the
bot sent it.  An error does not change the session.

The table is the course's order of messages (docs/protocol.md, "Order of messages").  Lines that a bot sends
early do not reach the session: the caller keeps them until it is that bot's turn, as the course's engine
does.
"""

from enum import StrEnum

from protocol.codec import change_prefix, decode_bot_line, encode
from protocol.errors import LocalProtocolError, RemoteProtocolError
from protocol.messages import BotMessage, Change, End, Move, Next, RefereeMessage, Start, Time


class Phase(StrEnum):
    """The phase of a conversation."""

    SILENT = "silent"
    """No message was sent yet."""
    WAITING = "waiting"
    """The bot was given its seat and waits for the opponent."""
    THINKING = "thinking"
    """The referee waits for the bot's move."""
    REPLIED = "replied"
    """The bot's move was accepted; the CHANGE that confirms it was not sent yet."""
    FINISHED = "finished"
    """The last move was sent to the bot; END was not."""
    CLOSED = "closed"
    """END was sent."""


class Signal(StrEnum):
    """Messages, distinguished as far as their order matters."""

    START_TO_MOVE = "START to the bot that moves first"
    START_TO_WAIT = "START to the bot that moves second"
    CHANGE_YOU = "CHANGE ... YOU"
    CHANGE_OPPONENT = "CHANGE ... OPP"
    CHANGE_END = "CHANGE ... END"
    TIME = "TIME"
    END = "END"
    MOVE = "MOVE"
    SWAP = "SWAP"


_CHANGES = {
    Signal.CHANGE_YOU: Phase.THINKING,
    Signal.CHANGE_OPPONENT: Phase.WAITING,
    Signal.CHANGE_END: Phase.FINISHED,
}

TABLE: dict[Phase, dict[Signal, Phase]] = {
    Phase.SILENT: {
        Signal.START_TO_MOVE: Phase.THINKING,
        Signal.START_TO_WAIT: Phase.WAITING,
        Signal.TIME: Phase.SILENT,
        Signal.END: Phase.CLOSED,  # the other bot was gone before the game began
    },
    Phase.WAITING: {**_CHANGES, Signal.TIME: Phase.WAITING, Signal.END: Phase.CLOSED},
    Phase.THINKING: {
        Signal.MOVE: Phase.REPLIED,
        Signal.SWAP: Phase.WAITING,  # nothing is sent to the swapper until the next move
        Signal.END: Phase.CLOSED,
    },
    Phase.REPLIED: {**_CHANGES, Signal.TIME: Phase.REPLIED, Signal.END: Phase.CLOSED},
    Phase.FINISHED: {Signal.END: Phase.CLOSED},
    Phase.CLOSED: {},
}

_CHANGE_SIGNAL = {
    Next.YOU: Signal.CHANGE_YOU,
    Next.OPPONENT: Signal.CHANGE_OPPONENT,
    Next.NOBODY: Signal.CHANGE_END,
}


_OTHER_SIGNAL = {Time: Signal.TIME, End: Signal.END}


class Session:
    """The referee's side of the conversation with one bot."""

    def __init__(self, *, moves_first: bool) -> None:
        self._start = Signal.START_TO_MOVE if moves_first else Signal.START_TO_WAIT
        self.phase = Phase.SILENT

    def send(self, message: RefereeMessage) -> str:
        """Return the line of a message to the bot.  Raises LocalProtocolError if it may not be sent now."""
        if isinstance(message, Change):
            return self.send_change(change_prefix(message.move, message.board), message.next)
        line = encode(message)
        self._follow(self._start if isinstance(message, Start) else _OTHER_SIGNAL[type(message)])
        return line

    def send_change(self, prefix: str, following: Next) -> str:
        """Return the line of a CHANGE to the bot, as ``send`` does.

        Args:
            prefix: The line without its last field, from ``codec.change_prefix``.
            following: The last field.
        """
        self._follow(_CHANGE_SIGNAL[following])
        return prefix + following  # a StrEnum is a str

    def _follow(self, signal: Signal) -> None:
        """Enter the phase that follows from a signal of the referee.  Raises LocalProtocolError."""
        following = TABLE[self.phase].get(signal)
        if following is None:
            raise LocalProtocolError(f"{signal} cannot be sent while the bot is {self.phase}")
        self.phase = following

    def receive(self, line: str) -> BotMessage:
        """Parse a line of the bot.  Raises RemoteProtocolError if it is malformed or not allowed now."""
        message = decode_bot_line(line)
        signal = Signal.MOVE if isinstance(message, Move) else Signal.SWAP
        following = TABLE[self.phase].get(signal)
        if following is None:
            raise RemoteProtocolError("out-of-turn", f"{signal} came while the bot was {self.phase}")
        self.phase = following
        return message
