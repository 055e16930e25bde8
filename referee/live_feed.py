"""Snapshots of a running game, published for spectators.

The worker process that plays the game sends snapshots as datagrams to a Unix socket, and never waits for the
reader.  If the reader's queue is full, the new moves are part of the next snapshot; without a reader, nothing
is sent.  A feed is never the source of a result.

Accepted datagrams are neither lost nor reordered, so that each one holds only the moves after the earlier
ones.
"""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgpack

from referee.judge.match import Match

INTERVAL_S = 0.05
"""Least seconds between two snapshots: people cannot follow more than 20 in a second."""
MOST_MOVES = 500
"""Most moves in one snapshot, at most 10 kB; further moves are in the next ones."""
MOST_WORDS = 2_000
"""Most characters of the verdict in a snapshot; the record has the whole verdict."""
DATAGRAM_BYTES = 65_536
"""Size of a receive buffer, larger than any snapshot."""
MOST_BYTES_OF_ADDRESS = 103
"""Most bytes in the path of a Unix socket: the least that systems allow (macOS), without the zero at its
end."""


class Move(NamedTuple):
    """One move of a running game."""

    text: str
    charged_us: int


class Snapshot(NamedTuple):
    """The new moves and the state of a running game."""

    offset: int
    """Number of moves in earlier snapshots."""
    moves: tuple[Move, ...]
    """The next moves."""
    clocks_ms: tuple[int, int]
    """Values of the players' clocks at the beginning of the current turn, in milliseconds; see
    ``Clock.shown_ms``."""
    on_turn: int | None
    """The player whose clock runs."""
    over: str | None
    """The verdict's sentence; None before the verdict."""

    def packed(self) -> bytes:
        """Return the snapshot as a datagram."""
        packed: bytes = msgpack.packb(self, unicode_errors="replace")
        return packed

    @classmethod
    def unpacked(cls, datagram: bytes) -> "Snapshot":
        """Return the snapshot in a datagram.

        Raises ValueError if the datagram is not a snapshot: another program of the same user may write to the
        socket, too.
        """
        try:
            offset, moves, (first_ms, second_ms), on_turn, over = msgpack.unpackb(datagram)
            snapshot = cls(offset, tuple(Move(*move) for move in moves), (first_ms, second_ms), on_turn, over)
        except Exception as error:  # msgpack's own errors have several bases
            raise ValueError("this is not a snapshot of a game") from error
        numbers = [offset, first_ms, second_ms, *(move.charged_us for move in snapshot.moves)]
        if (
            all(type(number) is int and number >= 0 for number in numbers)
            and all(type(move.text) is str for move in snapshot.moves)
            and on_turn in (None, 0, 1)
            and type(over) in (str, type(None))
        ):
            return snapshot
        raise ValueError("this is not a snapshot of a game")


class Feed:
    """Publishes the moves of one match.  No method raises an exception, or waits."""

    def __init__(self, path: str | None, match: Match[object, object]) -> None:
        """Connect to the socket at ``path``.  Without a path or a reader there, the feed sends nothing."""
        self._match = match
        self._sent_moves = 0
        self._has_begun = False
        self._due = 0.0
        self._socket: socket.socket | None = None
        if path is None:
            return
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

    def publish(self, at: float) -> None:
        """Publish new moves, at most once every ``INTERVAL_S``, and the first turn.

        ``at`` is the time in seconds, of a clock that never goes back.
        """
        match = self._match
        if match.on_turn is None or at < self._due:
            return
        if not self._has_begun or self._sent_moves < len(match.moves):
            self._due = at + INTERVAL_S
            self._has_begun = self._send(None) or self._has_begun

    def end(self) -> None:
        """Publish the remaining moves and the verdict of the finished game, and close the feed."""
        result = self._match.result
        over = "" if result is None else result.detail[:MOST_WORDS]
        while len(self._match.moves) - self._sent_moves > MOST_MOVES and self._send(None):
            pass
        self._send(over)
        self.close()

    def close(self) -> None:
        """Close the socket."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _send(self, over: str | None) -> bool:
        """Send the next moves; return True if the datagram was accepted."""
        if self._socket is None:
            return False
        match = self._match
        news = match.moves[self._sent_moves : self._sent_moves + MOST_MOVES]
        moves = tuple(Move(move.move, move.charged_us) for move in news)
        try:
            self._socket.send(
                Snapshot(self._sent_moves, moves, match.clocks_ms, match.on_turn, over).packed()
            )
        except BlockingIOError:
            return False
        except OSError:  # the reader is gone
            self.close()
            return False
        self._sent_moves += len(news)
        return True


@contextmanager
def short_address(path: Path) -> Iterator[str]:
    """Provide a short name of the socket at ``path``, to bind or connect it.

    Raises OSError if the path is too long and the system has no other name for its directory.
    """
    if len(os.fsencode(path)) <= MOST_BYTES_OF_ADDRESS:
        yield str(path)
        return
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{directory}/{path.name}"
    finally:
        os.close(directory)
