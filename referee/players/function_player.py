"""Players whose moves a Python function chooses: in notebooks, in tests, and for people and services.

A function player has no process and no sandbox.  Its function is called in a thread of its own, so a game
goes on while the function waits, for example for a person.  Time is charged by the wall clock.  An exception
counts as a crash of the player, with the traceback as its standard error.
"""

import inspect
import threading
import traceback
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import trio

from referee.adapters.game_follower import GameFollower
from referee.games.catalog import AnyGame
from referee.judge.clock import TimeControl
from referee.judge.match import Match
from referee.judge.results import CAPABILITIES, Player
from referee.process.player import SessionPlayer

Choose = Callable[[AnyGame, Any], Any] | Callable[[AnyGame, Any], Awaitable[Any]]
"""Function (game, state) -> one of the state's legal moves, or its text; it may be asynchronous."""

FAILED = 1
"""Exit status of a function that raised an exception, as Python's."""


class FunctionPlayer:
    """A player that a function plays.

    Args:
        choose: Function (game, state) -> one of the state's legal moves, or its text.  It is called in a
            thread of its own; it may be asynchronous, with Trio.
        name: The player's name in the record; by default that of the function.
        control: The player's own time control, for a person for example; by default that of the game.

    Raises:
        TypeError: ``choose`` cannot be called.
    """

    def __init__(self, choose: Choose, name: str | None = None, control: TimeControl | None = None) -> None:
        if not callable(choose):
            raise TypeError(f"{choose!r} is no function: a bot is named by tournaments.bot(text)")
        self.choose = choose
        self.control = control
        text = name or str(getattr(choose, "__name__", type(choose).__name__))
        where = f"{getattr(choose, '__module__', '?')}.{getattr(choose, '__qualname__', text)}"
        self.identity = Player(text, (where,), "", capabilities=CAPABILITIES, how="a function")
        """The player as records name it."""

    def start(self, index: int, match: Match[Any, Any]) -> "FunctionBot":
        """Return the player for one game."""
        return FunctionBot(index, self, match.game, opening=bool(match.opening))


class FunctionBot(SessionPlayer):
    """A function player in one game."""

    def __init__(self, index: int, player: FunctionPlayer, game: AnyGame, *, opening: bool) -> None:
        super().__init__(index, player.identity)
        self._choose = player.choose
        self._follower = GameFollower(game, opening=opening)
        self._token = trio.lowlevel.current_trio_token()
        """The event loop, in which an asynchronous function is called."""

    def receive(self, line: str) -> None:
        """Follow the game, and call the function if it is the player's turn."""
        if self._follower.receive(line):
            threading.Thread(target=self._play, daemon=True).start()
        elif self._follower.over:
            self.end()

    def _play(self) -> None:
        """Call the function and send its move; runs in a thread of its own."""
        follower = self._follower
        game, state = follower.game, follower.state
        try:
            if inspect.iscoroutinefunction(self._choose):
                move = trio.from_thread.run(partial(self._choose, game, state), trio_token=self._token)
            else:
                move = self._choose(game, state)
            if isinstance(move, str):
                line = "SWAP" if move == "SWAP" else f"MOVE;{move}"
                if move == "SWAP" and game.swap in game.legal_moves(state):
                    follower.swap()
            else:
                line = follower.reply(move)
            self.send(line)
        except (Exception, SystemExit):
            self.end(FAILED, traceback.format_exc())
