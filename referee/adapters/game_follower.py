"""A game followed from a bot's side of the protocol: lines of the referee in, the position and the turn out.

Theory of operation.  The referee sends every move that was played and the board after it.  The moves are
applied to a state of the rule book, since the rules depend on more than the board: whether the seats may
still be swapped, which positions there were before.  The board of each message is a check.  If it differs
from the board of the state, both sides play different games, which is an error.

A game may begin with an opening: moves that are announced like all others before the first turn, or a
position.  All announcements of an opening but the last have OPP as the next player, whichever side is next.
So OPP is accepted until the bot's first turn.
"""

from typing import Any

from protocol.codec import decode_referee_line, encode
from protocol.messages import OPENING_WORD, SWAP_WORD, Change, End, Move, Next, Start, Swap, Time
from referee.games.base import MoveError, PositionError, Side
from referee.games.catalog import AnyGame

_POSITION = f"CHANGE;{OPENING_WORD};"


class OutOfStepError(Exception):
    """The state of the referee's game differs from the bot's."""


class GameFollower:
    """One game from a bot's view.  Does no input or output itself."""

    def __init__(self, game: AnyGame, *, opening: bool = False) -> None:
        """Begin at the initial state.

        Args:
            game: The rule book.
            opening: True if an opening will be announced, so that no turn follows from START alone.
        """
        self.game = game
        self.state = game.initial_state()
        """The state after the last line."""
        self.side: Side | None = None
        """The bot's side; None before START."""
        self.clocks_ms: tuple[int, int] | None = None
        """Own and opponent's time left as last announced, in milliseconds; None if it was never announced."""
        self.moves: list[tuple[Side, str]] = []
        """All moves so far with the side that played them; an opening's moves are among them."""
        self._opening = True
        """True until the bot's first turn: announcements may belong to an opening."""
        self._announced_next = Next.OPPONENT if opening else None
        """The next player as the referee announced last; None if only the rules determine it."""
        self.over = False
        """True after END."""

    def receive(self, line: str) -> bool:
        """Process a line of the referee; return True if it gives the bot the turn.

        Raises OutOfStepError; RemoteProtocolError for an invalid line.
        """
        if self._opening and line.startswith(_POSITION):
            self._set_position(line.removeprefix(_POSITION))
        else:
            message = decode_referee_line(line)
            if isinstance(message, End):
                self.over = True
                return False
            if isinstance(message, Time):
                self.clocks_ms = (message.own_ms, message.opponent_ms)
                return False
            if isinstance(message, Start):
                self._start(message)
            else:
                self._follow(message)
        is_own_turn = self._next() is Next.YOU and self._announced_next is not Next.OPPONENT
        if is_own_turn:
            self._opening = False
        return is_own_turn

    def reply(self, move: Any) -> str:
        """Return the line that plays a move of the rule book on the bot's turn."""
        if move == self.game.swap:
            # Only the opponent receives a CHANGE for a swap; all other moves are sent to both players.
            self.swap()
            return encode(Swap())
        return encode(Move(self.game.format_move(self.state, move)))

    def swap(self) -> None:
        """Note that the bot sent SWAP, which is legal now."""
        assert self.side is not None
        self.moves.append((self.side, SWAP_WORD))
        self.state = self.game.apply(self.state, self.game.swap)

    def _start(self, message: Start) -> None:
        seats = self.game.seats(self.state)
        if message.seat not in seats:
            raise OutOfStepError(f"no seat {message.seat!r} in {self.game.name}; there are {seats}")
        self.side = Side(seats.index(message.seat))
        if self._announced_next is Next.YOU and self._next() is not Next.YOU:
            raise OutOfStepError(f"the opening said YOU, but after it {message.seat} is not next")

    def _set_position(self, announced: str) -> None:
        """Set the position of an opening: ``<position>;<YOU|OPP>``; the position may contain semicolons."""
        position, _, following = announced.rpartition(";")
        # A position may lack the side to move; then the last field has it.
        for text in (position, *(f"{position};{seat}" for seat in self.game.seats(self.state))):
            try:
                self.state = self.game.parse_state(text)
            except PositionError as error:
                if text == position:
                    raise OutOfStepError(f"cannot begin with {announced}: {error}") from error
                continue
            if following == self._next() or self.side is None:
                break
        if not self._accept_next(following):
            raise OutOfStepError(f"{announced}: the last field should be {self._next()}")

    def _follow(self, message: Change) -> None:
        """Play an announced move, and compare the announced board and player with the state."""
        game, state = self.game, self.state
        try:
            swapped = message.move == SWAP_WORD and game.swap is not None
            move = game.swap if swapped else game.parse_move(state, message.move)
            mover = game.to_move(state)
            self.state = game.apply(state, move)
        except MoveError as error:
            raise OutOfStepError(f"move {message.move} cannot be played here: {error}") from error
        self.moves.append((mover, message.move))
        board = game.board_text(self.state)
        if message.board != board or not self._accept_next(message.next):
            raise OutOfStepError(
                f"after move {message.move} of {game.name} the referee says {message.board};{message.next}, "
                f"but it should be {board};{self._next()}"
            )

    def _accept_next(self, following: str) -> bool:
        """Record the announced next player; return False if the announcement contradicts the rules."""
        expected = self._next()
        if self._opening and expected is not Next.NOBODY:
            # Before START the bot's own side is not known.
            possible = [Next.YOU, Next.OPPONENT] if self.side is None else [expected, Next.OPPONENT]
        else:
            possible = [expected]
        if following not in possible:
            return False
        self._announced_next = Next(following)
        return True

    def _next(self) -> Next:
        if self.game.outcome(self.state) is not None:
            return Next.NOBODY
        return Next.YOU if self.game.to_move(self.state) is self.side else Next.OPPONENT
