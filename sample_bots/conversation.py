"""The bot's side of the protocol: lines of the referee in, moves out.

Theory of operation.  The referee sends every move that was played and the board after it.  A bot applies
these moves to its own state, since the rules depend on more than the board: whether the seats may still be
swapped, which positions there were before.  The board of each message is a check.  If it differs from the
board of the bot's state, the bot and the referee play different games, so the bot writes an error to standard
error and exits.

A game may begin with an opening: moves that are announced like all others before the first turn, or a
position.  All announcements of an opening but the last have OPP as the next player, whichever side is next.
So OPP is accepted until the bot's first turn.
"""

import os
import sys
from collections.abc import Callable
from typing import Any

from protocol.codec import decode_referee_line, encode
from protocol.errors import RemoteProtocolError
from protocol.messages import OPENING_WORD, SWAP_WORD, Change, End, Move, Next, Start, Swap, Time
from referee.games.base import MoveError, PositionError, Side
from referee.games.catalog import DEFAULT_GAME, GAME_VARIABLE, OPENING_VARIABLE, AnyGame, parse_game
from referee.games.spec import SpecError

Choose = Callable[[AnyGame, Any], Any]
"""The play of a bot: (game, state) -> one of the state's legal moves."""

OnTime = Callable[[int, int], None]
"""Callback for the clocks before each own turn: (own, opponent's) milliseconds left."""

_POSITION = f"CHANGE;{OPENING_WORD};"


class OutOfStepError(Exception):
    """The state of the referee's game differs from the bot's."""


class Conversation:
    """One game from a bot's view.  Does no input or output itself."""

    def __init__(
        self, game: AnyGame, choose: Choose, *, opening: bool = False, on_time: OnTime | None = None
    ) -> None:
        """Begin at the initial state.

        Args:
            game: The rule book.
            choose: The play of the bot.
            opening: True if an opening will be announced, so that no turn follows from START alone.
            on_time: Callback for TIME lines.
        """
        self._game = game
        self._choose = choose
        self._on_time = on_time
        self._state = game.initial_state()
        self._side: Side | None = None
        self._opening = True
        """True until the bot's first turn: announcements may belong to an opening."""
        self._announced_next = Next.OPPONENT if opening else None
        """The next player as the referee announced last; None if only the rules determine it."""
        self.over = False
        """True after END."""

    def receive(self, line: str) -> str | None:
        """Process a line of the referee; return the reply, or None if it is not the bot's turn.

        Raises OutOfStepError; RemoteProtocolError for an invalid line.
        """
        if self._opening and line.startswith(_POSITION):
            self._set_position(line.removeprefix(_POSITION))
        else:
            message = decode_referee_line(line)
            if isinstance(message, End):
                self.over = True
                return None
            if isinstance(message, Time):
                if self._on_time is not None:
                    self._on_time(message.own_ms, message.opponent_ms)
                return None
            if isinstance(message, Start):
                self._start(message)
            else:
                self._follow(message)
        is_own_turn = self._next() is Next.YOU and self._announced_next is not Next.OPPONENT
        return self._reply() if is_own_turn else None

    def _start(self, message: Start) -> None:
        seats = self._game.seats(self._state)
        if message.seat not in seats:
            raise OutOfStepError(f"no seat {message.seat!r} in {self._game.name}; there are {seats}")
        self._side = Side(seats.index(message.seat))
        if self._announced_next is Next.YOU and self._next() is not Next.YOU:
            raise OutOfStepError(f"the opening said YOU, but after it {message.seat} is not next")

    def _set_position(self, announced: str) -> None:
        """Set the position of an opening: ``<position>;<YOU|OPP>``; the position may contain semicolons."""
        position, _, following = announced.rpartition(";")
        # A position may lack the side to move; then the last field has it.
        for text in (position, *(f"{position};{seat}" for seat in self._game.seats(self._state))):
            try:
                self._state = self._game.parse_state(text)
            except PositionError as error:
                if text == position:
                    raise OutOfStepError(f"cannot begin with {announced}: {error}") from error
                continue
            if following == self._next() or self._side is None:
                break
        if not self._accept_next(following):
            raise OutOfStepError(f"{announced}: the last field should be {self._next()}")

    def _follow(self, message: Change) -> None:
        """Play an announced move, and compare the announced board and player with the state."""
        game, state = self._game, self._state
        try:
            swapped = message.move == SWAP_WORD and game.swap is not None
            move = game.swap if swapped else game.parse_move(state, message.move)
            self._state = game.apply(state, move)
        except MoveError as error:
            raise OutOfStepError(f"move {message.move} cannot be played here: {error}") from error
        board = game.board_text(self._state)
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
            possible = [Next.YOU, Next.OPPONENT] if self._side is None else [expected, Next.OPPONENT]
        else:
            possible = [expected]
        if following not in possible:
            return False
        self._announced_next = Next(following)
        return True

    def _next(self) -> Next:
        if self._game.outcome(self._state) is not None:
            return Next.NOBODY
        return Next.YOU if self._game.to_move(self._state) is self._side else Next.OPPONENT

    def _reply(self) -> str:
        self._opening = False
        move = self._choose(self._game, self._state)
        if move == self._game.swap:
            # Only the opponent receives a CHANGE for a swap; all other moves are sent to both players.
            self._state = self._game.apply(self._state, move)
            return encode(Swap())
        return encode(Move(self._game.format_move(self._state, move)))


def run(choose: Choose, on_time: OnTime | None = None) -> int:
    """Play one game on standard input and output; return the exit status."""
    return run_player(lambda _game: (choose, on_time))


def run_player(player_of: Callable[[AnyGame], tuple[Choose, OnTime | None]]) -> int:
    """Play one game with a player that depends on the game; return the exit status.

    ``player_of`` returns the play of the bot and its callback for TIME lines.
    """
    try:
        game = parse_game(os.environ.get(GAME_VARIABLE, DEFAULT_GAME))
        choose, on_time = player_of(game)
        opening = bool(os.environ.get(OPENING_VARIABLE))
        conversation = Conversation(game, choose, opening=opening, on_time=on_time)
        for line in sys.stdin:
            reply = conversation.receive(line.removesuffix("\n"))
            if reply is not None:
                print(reply, flush=True)
            if conversation.over:
                break
    except (OutOfStepError, RemoteProtocolError, SpecError) as error:
        print(f"giving up: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # The referee has ended the game during the bot's turn.  Without another standard output Python would
        # report the unwritten rest of the output when it closes the stream.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def run_without_option(name: str, choose: Choose, arguments: list[str]) -> int:
    """Play one game with a bot that takes no option; return the exit status."""
    if arguments:
        print(f"{name} takes no option", file=sys.stderr)
        return 2
    return run(choose)
