"""What is told of a game while it goes on, to whoever watches.

Snapshots go as datagrams to a Unix socket, from the worker process that plays the game.  Nothing waits for
their reader: where its queue is full, what happened since is told with the next one; where there is no reader
any more, nothing is told.  A feed is never the source of a result.

A datagram that was taken is neither lost nor overtaken on its way, so each one holds only the moves that the
ones before it did not.
"""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgpack

from referee.match import Match

INTERVAL_S = 0.05
"""No sooner after the one before it is a snapshot sent: 20 in a second are more than anybody can follow."""
MOST_MOVES = 500
"""In one snapshot.  Together at most 10 kB; the rest comes with the next ones."""
MOST_WORDS = 2_000
"""Characters of the verdict in a snapshot; the record has all of it."""
DATAGRAM_BYTES = 65_536
"""More than any snapshot has."""
MOST_BYTES_OF_ADDRESS = 103
"""Of the path of a Unix socket: the least that systems allow (macOS), without the zero at its end."""


class Move(NamedTuple):
    """One move of a game that goes on."""

    text: str
    charged_us: int


class Snapshot(NamedTuple):
    """A game at some moment."""

    told: int
    """How many moves earlier snapshots have told."""
    moves: tuple[Move, ...]
    """Those after them."""
    clocks_ms: tuple[int, int]
    """What the players' clocks showed when the present turn began, in milliseconds; see
    ``Clock.shown_ms``."""
    on_turn: int | None
    """The player whose clock runs."""
    over: str | None
    """The verdict's sentence; None as long as there is none."""

    def packed(self) -> bytes:
        """As a datagram."""
        packed: bytes = msgpack.packb(self, unicode_errors="replace")
        return packed

    @classmethod
    def unpacked(cls, datagram: bytes) -> "Snapshot":
        """Raises ValueError if it is none: a program of the same user may write to the socket, too."""
        try:
            told, moves, (first_ms, second_ms), on_turn, over = msgpack.unpackb(datagram)
            snapshot = cls(told, tuple(Move(*move) for move in moves), (first_ms, second_ms), on_turn, over)
        except Exception as error:  # msgpack's own errors have several bases
            raise ValueError("this is not a snapshot of a game") from error
        numbers = [told, first_ms, second_ms, *(move.charged_us for move in snapshot.moves)]
        if (
            all(type(number) is int and number >= 0 for number in numbers)
            and all(type(move.text) is str for move in snapshot.moves)
            and on_turn in (None, 0, 1)
            and type(over) in (str, type(None))
        ):
            return snapshot
        raise ValueError("this is not a snapshot of a game")


class Feed:
    """Tells of one match.  Nothing here raises, or waits."""

    def __init__(self, path: str, match: Match[object, object]) -> None:
        """``path`` is the socket's; where none is read there, there is nothing to do."""
        self._match = match
        self._told = 0
        self._has_begun = False
        self._due = 0.0
        self._socket: socket.socket | None = None
        made = None
        try:
            made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            made.setblocking(False)
            with short_address(Path(path)) as address:
                made.connect(address)
            self._socket = made
        except OSError:
            if made is not None:
                made.close()

    def look(self, at: float) -> None:
        """Tell what is new, if anything is and the last time was long enough ago.

        ``at`` is the time in seconds, of a clock that never goes back.  The first turn is news, too.
        """
        match = self._match
        if match.on_turn is None or at < self._due:
            return
        if not self._has_begun or self._told < len(match.moves):
            self._due = at + INTERVAL_S
            self._has_begun = self._send(None) or self._has_begun

    def end(self) -> None:
        """The game is over: tell the rest, and why, and close."""
        result = self._match.result
        over = "" if result is None else result.detail[:MOST_WORDS]
        while len(self._match.moves) - self._told > MOST_MOVES and self._send(None):
            pass
        self._send(over)
        self.close()

    def close(self) -> None:
        """Give the socket back."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _send(self, over: str | None) -> bool:
        """Tell the next moves; whether the datagram was taken."""
        if self._socket is None:
            return False
        match = self._match
        news = match.moves[self._told : self._told + MOST_MOVES]
        moves = tuple(Move(move.move, move.charged_us) for move in news)
        try:
            self._socket.send(Snapshot(self._told, moves, match.clocks_ms, match.on_turn, over).packed())
        except BlockingIOError:
            return False
        except OSError:  # nobody reads any more
            self.close()
            return False
        self._told += len(news)
        return True


@contextmanager
def short_address(path: Path) -> Iterator[str]:
    """How a socket at this path is named while it is bound or connected.

    Raises OSError where the path is too long, and the system has no other name for its directory.
    """
    if len(os.fsencode(path)) <= MOST_BYTES_OF_ADDRESS:
        yield str(path)
        return
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{directory}/{path.name}"
    finally:
        os.close(directory)
