"""The interface of engines, which play games, and the parts that engines share."""

import contextlib
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Protocol

import trio

from referee.live_feed import DATAGRAM_BYTES, Snapshot, short_address
from referee.playing import Job
from tournaments.results.game_summary import PackedGame

OnStart = Callable[[str], None]
"""Called when a game begins, with the cluster's host that plays it; "" is this machine."""
OnSnapshot = Callable[[Snapshot], None]
"""Called with snapshots of a running game."""
PRIVATE = 0o600


class Engine(Protocol):
    """Plays jobs, several at a time.

    ``play`` raises RefereeError, or EngineError, if the game could not be refereed to a result: then
    no result stands, and the game may be played again.
    """

    @property
    def concurrency(self) -> int:
        """Number of games at a time."""
        ...

    async def play(
        self, job: Job, on_start: OnStart | None = None, on_snapshot: OnSnapshot | None = None
    ) -> PackedGame:
        """Play one game; it is in no round.

        ``on_start`` is called in the caller's event loop, once a slot is free and the game is sent there: the
        wait before that is no part of the game.  A cluster calls it a moment later, or together with the
        game's end if the game was over by then.  ``on_snapshot`` is called in that loop with snapshots of the
        game, as far as they arrive: they may all be missing.  Both return at once and raise nothing.
        """
        ...


class EngineError(Exception):
    """The process or host that ran the game was lost, or could not play it."""


class WorkerLostError(EngineError):
    """The worker was lost, as machines are that come and go; the game is not known to be the cause."""


class EngineWrapper:
    """Engine that plays with another engine; subclasses add something to each game."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @property
    def concurrency(self) -> int:
        """Number of games at a time."""
        return self._engine.concurrency

    async def play(
        self, job: Job, on_start: OnStart | None = None, on_snapshot: OnSnapshot | None = None
    ) -> PackedGame:
        """Play one game; see ``Engine.play``."""
        return await self._engine.play(job, on_start, on_snapshot)


class LimitedEngine(EngineWrapper):
    """Engine that holds one of a limited number of slots during each game."""

    def __init__(
        self, engine: Engine, slots: int, slot: Callable[[], AbstractAsyncContextManager[Any]]
    ) -> None:
        """``slot`` returns a context manager that waits for a slot, and holds it during its block."""
        super().__init__(engine)
        self._slots, self._slot = slots, slot

    @property
    def concurrency(self) -> int:
        """Number of games at a time, if all slots are free."""
        return min(self._slots, self._engine.concurrency)

    async def play(
        self, job: Job, on_start: OnStart | None = None, on_snapshot: OnSnapshot | None = None
    ) -> PackedGame:
        """Play one game; see ``Engine.play``."""
        async with self._slot():
            return await super().play(job, on_start, on_snapshot)


@asynccontextmanager
async def followed(path: Path, on_snapshot: OnSnapshot | None) -> AsyncIterator[str | None]:
    """Call ``on_snapshot`` with each snapshot that is sent to a socket at this path, which must be free.

    Yields the argument ``feed`` of ``play_in_worker``.  It is None without a callback, and where no socket
    could be made, for example without free descriptors: a game without a feed is played all the same.
    """
    with listening(path) if on_snapshot is not None else contextlib.nullcontext() as listener:
        if listener is None or on_snapshot is None:
            yield None
            return
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_follow, listener, on_snapshot)
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


async def _follow(listener: socket.socket, on_snapshot: OnSnapshot) -> None:
    while True:
        await trio.lowlevel.wait_readable(listener)
        try:
            snapshot = Snapshot.unpacked(listener.recv(DATAGRAM_BYTES))
        except (BlockingIOError, ValueError):  # a program of the same user may write to the socket, too
            continue
        on_snapshot(snapshot)
