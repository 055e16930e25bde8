"""The socket on which a game's feed arrives."""

import contextlib
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import trio

from referee.live_feed import DATAGRAM_BYTES, Snapshot, short_address
from tournaments.engines.base import Follower

PRIVATE = 0o600


@asynccontextmanager
async def followed(path: Path, follow: Follower | None) -> AsyncIterator[str | None]:
    """Call ``follow`` with each snapshot that is sent to a socket at this path, which must be free.

    Yields the argument ``feed`` of ``play_leashed``.  It is None without a follower, and where no socket
    could be made, as out of descriptors: a game without a feed is played all the same.
    """
    with listening(path) if follow is not None else contextlib.nullcontext() as listener:
        if listener is None or follow is None:
            yield None
            return
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_follow, listener, follow)
            yield str(path)
            nursery.cancel_scope.cancel()


@contextmanager
def listening(path: Path) -> Iterator[socket.socket | None]:
    """Provide a socket for a feed at this path; None if it could not be made."""
    with contextlib.ExitStack() as stack:
        listener: socket.socket | None = None
        try:
            made = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
            made.setblocking(False)
            with short_address(path) as address:
                made.bind(address)
            stack.callback(path.unlink, missing_ok=True)
            path.chmod(PRIVATE)
            listener = made
        except OSError:
            pass
        yield listener


async def _follow(listener: socket.socket, follow: Follower) -> None:
    while True:
        await trio.lowlevel.wait_readable(listener)
        try:
            snapshot = Snapshot.unpacked(listener.recv(DATAGRAM_BYTES))
        except (BlockingIOError, ValueError):  # a program of the same user may write to the socket, too
            continue
        follow(snapshot)
