"""Seats: players of games in worker processes whose moves come from the server.

A game with a seat is played by an engine like any other, in a worker process and with a confined opponent.
The worker connects to a socket in the scratch directory (``players.socket_player``), and the task that holds
the seat receives the referee's lines and sends the player's:

    job = Job(key, spec, (seated_player("Ada", "a person"), bot), control, own_controls=(patient, None))
    async with open_game(engine, job, 0, scratch) as game:
        follower = GameFollower(parse_game(job.game), opening=bool(job.opening))
        async for line in game.seat:
            if follower.receive(line):
                await game.seat.send(follower.reply(await choose(follower.state)))
        played = await game.result()

The lines end when the game is over, also after a forfeit, and when it failed: ``result`` then raises the
reason.  They end with an EngineError if this process cannot accept the worker's connection.  A player who
does not go on forfeits the game by ``Seat.forfeit``, or the caller leaves the block, which cancels the game:
nothing is recorded then.
"""

import contextlib
import errno
import os
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path

import trio

from protocol.codec import decode_bytes
from protocol.lines import LineBuffer
from referee.judge.results import Player
from referee.live_feed import short_address
from referee.players.socket_player import END_MARK, MOST_BYTES_OF_SENTENCE
from referee.playing import Job
from tournaments.engines.base import PRIVATE, Engine, EngineError
from tournaments.engines.local import PLAYER_PATTERN
from tournaments.results.game_summary import PackedGame

OPENINGS = "openings"
"""Capability of a player that takes games from any position."""
READ_BYTES = 4096
MOST_LINE_BYTES = 65_536
"""Longest line of the referee that is accepted: a position of the largest game has a few hundred bytes."""

_NUMBERS = count(1)


class SeatClosedError(Exception):
    """The game is over, or its worker is gone: the seat takes no more lines."""


class Seat:
    """The server's end of a player's connection; iterates over the referee's lines.  See ``open_seat``."""

    def __init__(self, path: Path, listener: trio.socket.SocketType) -> None:
        self.path = path
        """Path of the socket, for ``Job.sockets``."""
        self._listener = listener
        self._connection: trio.socket.SocketType | None = None
        self._lines = LineBuffer(MOST_LINE_BYTES)
        self._received: list[str] = []
        self._sending = trio.Lock()
        self._begun = trio.Event()
        """Set when the worker has connected, or will not connect any more."""
        self._has_ended = False
        self._forfeit_line = ""
        """Last line of a player who has forfeited, else empty; sent at the latest when the game begins."""

    def __aiter__(self) -> AsyncIterator[str]:
        return self

    async def __anext__(self) -> str:
        line = await self.receive()
        if line is None:
            raise StopAsyncIteration
        return line

    async def receive(self) -> str | None:
        """Return the referee's next line, or None after the last one.

        The game need not have begun yet.  Raises EngineError if this process cannot accept the connection,
        for example because it has too many open files: the caller then leaves the game.
        """
        while not self._received:
            if self._has_ended:
                return None
            data = b""
            if self._connection is None:
                self._connection = await self._accept()
                self._begun.set()
                await self._send_forfeit()
            if self._connection is not None:
                with contextlib.suppress(OSError, trio.ClosedResourceError):  # the worker was killed
                    data = await self._connection.recv(READ_BYTES)
            self._has_ended = not data
            self._received += map(decode_bytes, self._lines.feed(data))
        return self._received.pop(0)

    async def _accept(self) -> trio.socket.SocketType | None:
        """Return the worker's connection; None if the game ended before it began.  Raises EngineError."""
        try:
            return (await self._listener.accept())[0]
        except trio.ClosedResourceError:
            return None
        except OSError as error:
            if error.errno == errno.EBADF:  # the listener was closed before
                return None
            raise EngineError(
                f"{self.path}: the connection of a game could not be accepted: {error.strerror}"
            ) from error

    async def send(self, line: str) -> None:
        """Send a line of the player.  It is judged there: an illegal move loses the game.

        A line for a game that has not begun yet waits until it begins, for which another
        task calls ``receive``.
        Raises SeatClosedError if the game is over.
        """
        await self._begun.wait()
        await self._send(_without_mark(line).replace("\n", " "))

    async def forfeit(self, why: str) -> None:
        """End the player, who then loses the game; ``why`` is a sentence for its verdict.

        A game that has not begun yet ends as soon as it begins.
        """
        sentence = _without_mark(" ".join(why.split())).encode("utf-8", "replace")[:MOST_BYTES_OF_SENTENCE]
        self._forfeit_line = END_MARK + sentence.decode("utf-8", "ignore")
        await self._send_forfeit()

    async def _send_forfeit(self) -> None:
        if self._forfeit_line and self._connection is not None:
            with contextlib.suppress(SeatClosedError):
                await self._send(self._forfeit_line)

    async def _send(self, line: str) -> None:
        async with self._sending:
            if self._connection is None or self._has_ended:
                raise SeatClosedError("the game has no connection to this player")
            data = line.encode("utf-8", "replace") + b"\n"
            try:
                while data:
                    data = data[await self._connection.send(data) :]
            except (OSError, trio.ClosedResourceError) as error:
                raise SeatClosedError("the game is over, or its process has ended") from error

    def game_ended(self) -> None:
        """End the lines of a game that has ended: it connects no more."""
        self._listener.close()

    def close(self) -> None:
        """Close the connection."""
        self._listener.close()
        if self._connection is not None:
            self._connection.close()


def _without_mark(text: str) -> str:
    return text.replace(END_MARK, "\N{REPLACEMENT CHARACTER}")


@asynccontextmanager
async def open_seat(scratch: Path) -> AsyncIterator[Seat]:
    """Open a seat for one game, whose worker may connect to it during the block.

    ``scratch`` is the directory of the engine's pipes, which removes what a killed server left there.  Raises
    EngineError if no socket can be made.
    """
    path = scratch / PLAYER_PATTERN.replace("*", f"{os.getpid()}-{next(_NUMBERS)}")
    listener = trio.socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with short_address(path) as address:
            await listener.bind(address)
        path.chmod(PRIVATE)
        listener.listen(1)
        seat = Seat(path, listener)
    except OSError as error:
        listener.close()
        path.unlink(missing_ok=True)
        raise EngineError(f"{path}: a socket for a player could not be made: {error.strerror}") from error
    try:
        yield seat
    finally:
        seat.close()
        path.unlink(missing_ok=True)


class SeatedGame:
    """A game with one seat; see ``open_game``."""

    def __init__(self, seat: Seat) -> None:
        self.seat = seat
        self._ended = trio.Event()
        self._outcome: PackedGame | Exception = EngineError("unplayed")
        self._until_ended = trio.CancelScope()

    @contextmanager
    def until_ended(self) -> Iterator[None]:
        """Run a block, and cancel it when the game ends: the referee may end it on either player's turn.

        Lines that the player sends when the game is over already are dropped.
        """
        with trio.CancelScope() as self._until_ended, contextlib.suppress(SeatClosedError):
            if self._ended.is_set():
                self._until_ended.cancel()
            yield

    async def result(self) -> PackedGame:
        """Wait for the end of the game, and return its record.

        Raises RefereeError, EngineError if it could not be refereed to a result.
        """
        await self._ended.wait()
        if isinstance(self._outcome, Exception):
            raise self._outcome
        return self._outcome

    async def _play(self, engine: Engine, job: Job) -> None:
        try:
            self._outcome = await engine.play(job)
        except Exception as error:
            self._outcome = error
        self._ended.set()
        self._until_ended.cancel()
        self.seat.game_ended()


@asynccontextmanager
async def open_game(engine: Engine, job: Job, index: int, scratch: Path) -> AsyncIterator[SeatedGame]:
    """Play a game whose player of this index has the seat; a game that the block leaves is cancelled.

    ``engine`` plays on this machine; the caller holds a slot.  Raises EngineError if no socket can be made.
    """
    raised: Exception | None = None
    async with open_seat(scratch) as seat:
        async with trio.open_nursery() as nursery:
            path = str(seat.path)
            game = SeatedGame(seat)
            sockets = (path, job.sockets[1]) if index == 0 else (job.sockets[0], path)
            nursery.start_soon(game._play, engine, replace(job, sockets=sockets))
            try:
                yield game
            except Exception as error:  # raised below, since a nursery would wrap it
                raised = error
            nursery.cancel_scope.cancel()
        if raised is not None:
            raise raised


def seated_player(name: str, how: str, capabilities: tuple[str, ...] = (OPENINGS,)) -> Player:
    """Return the player that has a seat, as records name it.

    Args:
        name: The player's name.
        how: Kind of the player for people, such as ``a person``.
        capabilities: Optional parts of the protocol, see ``referee.judge.results.CAPABILITIES``; a player
            with ``time`` is sent TIME lines.
    """
    return Player(name, (how,), "", capabilities=capabilities, how=how)
