"""Players whose moves a Python function chooses: in notebooks, in tests, and for people and services.

A function player has no process and no sandbox.  Its function is called in a thread of its own, so a game
goes on while the function waits, for example for a person.  Time is charged by the wall clock.  An exception
counts as a crash of the player, with the traceback as its standard error.
"""

import inspect
import os
import threading
import traceback
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import trio

from protocol.lines import LineBuffer
from referee.adapters.game_follower import GameFollower
from referee.games.catalog import AnyGame
from referee.judge.events import BotExited, Event, InputClosed, LimitPassed, LineReceived, OutputClosed, Sent
from referee.judge.results import CAPABILITIES, KeptFile, Player
from referee.judge.stderr import StderrBuffer
from referee.process.bot import now
from referee.process.process_tree import ProcessTree

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
    """

    def __init__(self, choose: Choose, name: str | None = None) -> None:
        self.choose = choose
        text = name or str(getattr(choose, "__name__", type(choose).__name__))
        where = f"{getattr(choose, '__module__', '?')}.{getattr(choose, '__qualname__', text)}"
        self.identity = Player(text, (where,), "", capabilities=CAPABILITIES, how="a function")
        """The player as records name it."""


class FunctionBot:
    """A function player in one game: the counterpart of ``referee.process.bot.Bot`` without a process."""

    tree: ProcessTree | None = None
    is_near_a_limit = False
    unfinished = ""
    runtime_settings: dict[str, str] = {}  # noqa: RUF012 - there are none

    def __init__(self, index: int, player: FunctionPlayer, game: AnyGame, *, opening: bool) -> None:
        self.index = index
        self.player = player.identity
        self.pid = os.getpid()
        self.stderr = StderrBuffer()
        self.status: int | None = None
        self.ended_at: float | None = None
        self.output_ended_at: float | None = None
        self._choose = player.choose
        self._follower = GameFollower(game, opening=opening)
        self._lock = threading.Lock()
        """Held while a pipe is written or closed: another file may have a closed descriptor's number."""
        self._is_closed = False
        self._token = trio.lowlevel.current_trio_token()
        self._lines = LineBuffer()
        self.stdout, self._replies = _pipe()
        self.errors, self._complaints = _pipe()
        self._exit, self._end = _pipe()
        self.exit_descriptor: int | None = self._exit

    def wait_ready(self) -> None:
        """Do nothing: a function needs no time to start."""

    def write(self, line: str) -> Event:
        """Follow the game, and call the function if it is the player's turn."""
        if self.status is not None:
            return InputClosed(self.index, now())
        if self._follower.receive(line):
            threading.Thread(target=self._play, daemon=True).start()
        elif self._follower.over:
            self._send(self._end, bytes([0]))
        return Sent(self.index, now(), line)

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
            self._send(self._replies, line.encode() + b"\n")
        except (Exception, SystemExit):
            self._send(self._complaints, traceback.format_exc().encode("utf-8", "replace"))
            self._send(self._end, bytes([FAILED]))

    def _send(self, descriptor: int, data: bytes) -> None:
        with self._lock:
            if not self._is_closed:  # else the game is over, as it is when nobody reads the pipe
                with suppress(BrokenPipeError):
                    os.write(descriptor, data)

    def has_read_all(self) -> bool:
        """Return True: a line is followed when it is written."""
        return True

    def has_closed_input(self) -> bool:
        """Return whether the function has failed."""
        return self.has_ended()

    def read_output(self) -> list[Event]:
        """Read once, and return the events of the lines that are now complete."""
        try:
            data = os.read(self.stdout, 4096)
        except BlockingIOError:
            return []
        at = now()
        return [LineReceived(self.index, at, line.decode()) for line in self._lines.feed(data)]

    def read_errors(self) -> bool:
        """Read the traceback of a failure; return False if there is nothing more."""
        try:
            data = os.read(self.errors, 65536)
        except BlockingIOError:
            return False
        self.stderr.feed(data)
        return bool(data)

    def discard_output(self) -> bool:
        """Read once after the game; return False if nothing was there."""
        return bool(self.read_output())

    def has_ended(self) -> bool:
        """Return True if the function has failed, or the player was killed."""
        if self.status is None:
            try:
                self.status = os.read(self._exit, 1)[0]
            except BlockingIOError:
                return False
            self.ended_at = now()
        return True

    def closed_input_event(self, event: InputClosed, within_s: float) -> Event:
        """Return the event of the failure that closed the input."""
        return self.exited_event() if self.has_ended() else event

    def drain(self) -> Iterator[Event]:
        """Yield the events of the last lines, and read the traceback."""
        yield from self.read_output()
        self.drain_errors()

    def drain_errors(self) -> None:
        """Read the whole traceback."""
        while self.read_errors():
            pass

    def exited_event(self) -> BotExited:
        """Return the event of a failure."""
        self.drain_errors()
        assert self.status is not None
        assert self.ended_at is not None
        return BotExited(self.index, self.ended_at, self.status, "", self.stderr.last_words())

    def output_closed_event(self) -> OutputClosed:
        """Return the event of an end of output, which a function does not have."""
        return OutputClosed(self.index, now(), "")

    def limit_passed(self) -> LimitPassed | None:
        """Return None: a function has no limits but time."""
        return None

    def written_files(self) -> tuple[KeptFile, ...]:
        """Return nothing: a function has no working directory."""
        return ()

    def kill(self) -> None:
        """End the player.  A call of the function under way goes on, and its move is ignored."""
        if self.status is None:
            self.status, self.ended_at = 0, now()

    def close(self) -> str:
        """Close the pipes; return an empty text, since nothing can be left."""
        # The ends for reading first: a thread that holds the lock in a write to a full pipe then goes on.
        for descriptor in (self.stdout, self.errors, self._exit):
            os.close(descriptor)
        with self._lock:
            self._is_closed = True
            for descriptor in (self._replies, self._complaints, self._end):
                os.close(descriptor)
        return ""


def _pipe() -> tuple[int, int]:
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    return read_end, write_end
