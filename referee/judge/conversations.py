"""The referee's lines in its conversations with both players: START, openings, moves, TIME and END (pure)."""

from collections.abc import Sequence
from typing import Generic, Protocol

from protocol.codec import change_prefix
from protocol.messages import (
    OPENING_WORD,
    Change,
    End,
    Next,
    RefereeMessage,
    Start,
    Swap,
    Time,
)
from protocol.session import Session
from referee.games.base import Game, IllegalMoveError, InvalidMoveError, M, S, Side
from referee.games.opening import Step
from referee.judge.events import Send


class Clocks(Protocol):
    """Both players' clocks, such as a GameClock."""

    @property
    def shown_ms(self) -> tuple[int, int]:
        """Values of the players' clocks when the current turn began, in milliseconds."""
        ...


class Conversations(Generic[S, M]):
    """The conversations of one game.

    Methods return lines in the order in which they are sent.  Unless the game is over, the last line is START
    or gives a player the turn.
    """

    def __init__(
        self,
        game: Game[S, M],
        opening: Sequence[Step],
        timed: tuple[bool, bool],
        clock: Clocks,
    ) -> None:
        """Begin the conversations.

        Args:
            game: The rule book.
            opening: Steps that are announced before the first turn.
            timed: Whether each player is sent TIME lines.
            clock: Both players' clocks, for TIME lines.
        """
        self._game = game
        self._opening = opening
        self._timed = timed
        self._clock = clock
        self._sessions = (Session(moves_first=not opening), Session(moves_first=False))

    def receive(self, player: int, line: str, state: S) -> M:
        """Return the move in a player's line.

        Raises:
            RemoteProtocolError: The line is no message that the player may send now.
            InvalidMoveError: The game has no such move.
            IllegalMoveError: The game has no swap.
        """
        message = self._sessions[player].receive(line)
        swap = self._game.swap
        if isinstance(message, Swap):
            if swap is None:
                raise IllegalMoveError("swap-not-offered", "this game has no SWAP")
            return swap
        move = self._game.parse_move(state, message.move)
        if move == swap:
            raise InvalidMoveError("bad-number", f"{message.move!r} is not a move: a swap is written SWAP")
        return move

    def start(self, player: int, seat: str) -> list[Send]:
        """Return the START line of a player."""
        sends: list[Send] = []
        gives_turn = player == Side.FIRST and not self._opening
        if gives_turn and self._timed[player]:
            self._add_time(sends, player)
        sends.append(self._send(player, Start(seat)))
        return sends

    def announce_opening(self) -> list[Send]:
        """Announce each step of the opening to both players; the last one gives the first turn."""
        sends = []
        for step in self._opening[:-1]:
            change = Change(step.move or OPENING_WORD, self._game.board_text(step.state), Next.OPPONENT)
            sends += [self._send(player, change) for player in (Side.FIRST, Side.SECOND)]
        step = self._opening[-1]
        return sends + self.announce_move(step.move or OPENING_WORD, step.state)

    def announce_move(self, text: str, state: S, *, but: int | None = None) -> list[Send]:
        """Announce a move after which the game goes on to both players, or to all ``but`` one."""
        prefix = change_prefix(text, self._game.board_text(state))
        player: int = self._game.to_move(state)
        other = 1 - player
        sends = []
        if but is None:
            sends.append(Send(other, self._sessions[other].send_change(prefix, Next.OPPONENT)))
        if self._timed[player]:
            self._add_time(sends, player)
        sends.append(Send(player, self._sessions[player].send_change(prefix, Next.YOU)))
        return sends

    def announce_last_move(self, text: str, state: S) -> list[Send]:
        """Announce a move that ends the game."""
        change = Change(text, self._game.board_text(state), Next.NOBODY)
        next_player: int = self._game.to_move(state)
        return [self._send(player, change) for player in (1 - next_player, next_player)]

    def end(self, players: Sequence[int]) -> list[Send]:
        """Return the END lines of these players."""
        return [self._send(player, End()) for player in players]

    def _add_time(self, sends: list[Send], player: int) -> None:
        """Add the TIME line before the turn of a player that takes such lines; the caller checks this."""
        clocks_ms = self._clock.shown_ms
        sends.append(self._send(player, Time(clocks_ms[player], clocks_ms[1 - player])))

    def _send(self, player: int, message: RefereeMessage) -> Send:
        return Send(player, self._sessions[player].send(message))
