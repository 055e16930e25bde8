"""The bot's side of the conversation: lines of the referee in, moves out.

Theory of operation.  The referee tells every move that was played and the board after it.  A bot
applies these moves to its own state, since a board alone does not show everything that the rules ask
for (may the seats still be swapped?  which positions were there before?).  The board of each message
is the check: if it is not the board of our state, we play another game than the referee, and every
further move would be a guess; the bot says so on standard error and gives up.

A game may begin with an opening: moves that nobody was asked for, announced like all others before the
first turn, or a position that takes their place.  All announcements but the last say OPP, whoever would be
next; so until we are first asked for a move, OPP is believed.
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
"""What makes one bot another: (game, state) -> one of the state's legal moves."""


OnTime = Callable[[int, int], None]
"""Told what is left on the clocks, (own, opponent's) milliseconds, before each turn of ours."""

_POSITION = f"CHANGE;{OPENING_WORD};"


class OutOfStepError(Exception):
    """The referee's game is not the one that we have followed."""


class Conversation:
    """One game as its bot hears it.  Does no input or output itself."""

    def __init__(
        self, game: AnyGame, choose: Choose, *, opening: bool = False, on_time: OnTime | None = None
    ) -> None:
        """``opening``: one will be announced, so START alone gives nobody the turn.

        ``on_time`` is given what TIME lines tell: our milliseconds and the opponent's.
        """
        self._game = game
        self._choose = choose
        self._on_time = on_time
        self._state = game.initial_state()
        self._side: Side | None = None
        self._opening = True
        """Whether we have yet to be asked for a move, so that what we hear may be an opening."""
        self._told = Next.OPPONENT if opening else None
        """Who is next, as the referee said last; None if only the rules tell."""
        self.over = False
        """Whether the referee has said END."""

    def hear(self, line: str) -> str | None:
        """Take a line of the referee; return our reply, or None if it is not our turn.

        Raises OutOfStepError, or RemoteProtocolError for a line that no referee sends.
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
        asked = self._next() is Next.YOU and self._told is not Next.OPPONENT
        return self._reply() if asked else None

    def _start(self, message: Start) -> None:
        seats = self._game.seats(self._state)
        if message.seat not in seats:
            raise OutOfStepError(f"no seat {message.seat!r} in {self._game.name}; there are {seats}")
        self._side = Side(seats.index(message.seat))
        if self._told is Next.YOU and self._next() is not Next.YOU:
            raise OutOfStepError(f"the opening said YOU, but after it {message.seat} is not next")

    def _set_position(self, announced: str) -> None:
        """Begin with a position: ``<position>;<YOU|OPP>``, where the position may hold semicolons."""
        position, _, following = announced.rpartition(";")
        # A board alone may not say who is to move; then the last field does.
        for text in (position, *(f"{position};{seat}" for seat in self._game.seats(self._state))):
            try:
                self._state = self._game.parse_state(text)
            except PositionError as error:
                if text == position:
                    raise OutOfStepError(f"cannot begin with {announced}: {error}") from error
                continue
            if following == self._next() or self._side is None:
                break
        if not self._believe(following):
            raise OutOfStepError(f"{announced}: the last field should be {self._next()}")

    def _follow(self, message: Change) -> None:
        """Play a move that was told, and compare what is told with it."""
        game, state = self._game, self._state
        try:
            swapped = message.move == SWAP_WORD and game.swap is not None
            move = game.swap if swapped else game.parse_move(state, message.move)
            self._state = game.apply(state, move)
        except MoveError as error:
            raise OutOfStepError(f"move {message.move} cannot be played here: {error}") from error
        board = game.board_text(self._state)
        if message.board != board or not self._believe(message.next):
            raise OutOfStepError(
                f"after move {message.move} of {game.name} the referee says {message.board};{message.next}, "
                f"but it should be {board};{self._next()}"
            )

    def _believe(self, following: str) -> bool:
        """Take note of who is told to be next; False if that cannot be."""
        expected = self._next()
        if self._opening and expected is not Next.NOBODY:
            # Before START we do not know which side is ours.
            possible = [Next.YOU, Next.OPPONENT] if self._side is None else [expected, Next.OPPONENT]
        else:
            possible = [expected]
        if following not in possible:
            return False
        self._told = Next(following)
        return True

    def _next(self) -> Next:
        if self._game.outcome(self._state) is not None:
            return Next.NOBODY
        return Next.YOU if self._game.to_move(self._state) is self._side else Next.OPPONENT

    def _reply(self) -> str:
        self._opening = False
        move = self._choose(self._game, self._state)
        if move == self._game.swap:
            # Only the opponent is told of a swap; any other move comes back to us as a CHANGE.
            self._state = self._game.apply(self._state, move)
            return encode(Swap())
        return encode(Move(self._game.format_move(self._state, move)))


def run(choose: Choose, on_time: OnTime | None = None) -> int:
    """Play one game on standard input and output; return the exit status."""
    return run_player(lambda _game: (choose, on_time))


def run_player(player_of: Callable[[AnyGame], tuple[Choose, OnTime | None]]) -> int:
    """``run`` for a player that has to know the game beforehand: game -> how it chooses, and hears of
    time."""
    try:
        game = parse_game(os.environ.get(GAME_VARIABLE, DEFAULT_GAME))
        choose, on_time = player_of(game)
        opening = bool(os.environ.get(OPENING_VARIABLE))
        conversation = Conversation(game, choose, opening=opening, on_time=on_time)
        for line in sys.stdin:
            reply = conversation.hear(line.removesuffix("\n"))
            if reply is not None:
                print(reply, flush=True)
            if conversation.over:
                break
    except (OutOfStepError, RemoteProtocolError, SpecError) as error:
        print(f"giving up: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # The referee has ended the game while we were thinking.  What was not written must go
        # somewhere, else Python complains about it once more when it closes standard output.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def run_without_option(name: str, choose: Choose, arguments: list[str]) -> int:
    """``run`` for a bot that takes no option; return the exit status."""
    if arguments:
        print(f"{name} takes no option", file=sys.stderr)
        return 2
    return run(choose)
