"""Engine that plays games in worker processes of this machine, one game to a process at a time.

The tournament's own process never touches a bot's pipe, so that nothing it does can delay a stamp.

Each game has a cancel pipe, a named pipe that only this process holds open for writing.  When the pipe is
closed, because the game was cancelled or because this process was killed, the worker cancels the game at once
and kills its bots.  (If the worker were killed instead, the bots would go on running.)

Optionally, each game has a core of its own, which its bots share with their referee.  A game then cannot take
time from another one, and a line passes between two processes in half the time, since no sleeping core has to
be woken for it; but a bot that computes off its turn takes time from its opponent.
"""

import math
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import trio
import trio_parallel

from referee.errors import unexpected_errors_as_referee_errors
from referee.playing import Job, play_in_worker
from referee.process.subreaper import become_subreaper, kill_orphans, spare_children
from referee.sandbox.host_resources import usable_cores
from tournaments.engines.base import EngineError, OnSnapshot, OnStart, followed
from tournaments.processes.process_settings import lower_priority
from tournaments.results.game_summary import PackedGame

PIPE_PATTERN = "leash-*"
"""Names of the cancel pipes in the scratch directory."""
FEED_PATTERN = "feed-*"
"""Names of the sockets there, for games that are followed."""
PLAYER_PATTERN = "player-*"
"""Names of the sockets there, for players that are not processes (``Job.sockets``)."""


class LocalEngine:
    """Engine of this machine, see ``open_local_engine``."""

    def __init__(
        self, context: trio_parallel.WorkerContext, concurrency: int, scratch: Path, *, own_core: bool
    ) -> None:
        self._context = context
        self.concurrency = concurrency
        cores = usable_cores()
        pinned = own_core and concurrency <= len(cores)
        self._cores: list[int | None] = [*cores[:concurrency]] if pinned else [None] * concurrency
        self._games = trio.CapacityLimiter(concurrency)
        self._workers = trio.CapacityLimiter(concurrency)  # trio_parallel's own is the number of cores
        self._scratch = scratch
        self._pipes = 0

    async def play(
        self, job: Job, on_start: OnStart | None = None, on_snapshot: OnSnapshot | None = None
    ) -> PackedGame:
        """Play one game in a worker; see ``Engine.play``.  Raises RefereeError, EngineError."""
        with unexpected_errors_as_referee_errors(EngineError):
            return await self._play(job, on_start, on_snapshot)

    async def _play(self, job: Job, on_start: OnStart | None, on_snapshot: OnSnapshot | None) -> PackedGame:
        path, pipe = self._open_pipe()
        socket = self._scratch / FEED_PATTERN.replace("*", path.name)
        played: PackedGame | Exception = EngineError("unplayed")
        try:
            async with trio.open_nursery() as nursery, followed(socket, on_snapshot) as feed:
                nursery.start_soon(self._close_when_cancelled, pipe)
                async with self._games:
                    core = self._cores.pop()
                    try:
                        if on_start is not None:
                            on_start("")
                        # Not to be cancelled: the worker comes back by itself when the pipe is closed.
                        played = await self._context.run_sync(
                            _play, job, str(path), core, feed, limiter=self._workers
                        )
                    except Exception as error:
                        played = error
                    finally:
                        self._cores.append(core)
                nursery.cancel_scope.cancel()
        finally:
            path.unlink(missing_ok=True)
        if isinstance(played, trio_parallel.BrokenWorkerError):
            with trio.CancelScope(shield=True):  # bounded by KILL_LIMIT_S of subreaper.py
                await trio.to_thread.run_sync(kill_orphans)  # its bots, which are ours now
            raise EngineError(f"the worker process of game {job.key} died") from played
        if isinstance(played, Exception):
            raise played
        return played

    async def check(self) -> None:
        """Start a worker, which then waits for a game.  Raises EngineError if workers cannot start."""
        try:
            await self._context.run_sync(os.getpid, limiter=self._workers)
        except trio_parallel.BrokenWorkerError as error:
            raise EngineError("a worker process died at its start") from error
        # RuntimeError: the thread that starts the process cannot be started
        except (OSError, RuntimeError) as error:
            raise EngineError(f"no worker process could be started: {error}") from error

    def _open_pipe(self) -> tuple[Path, int]:
        """Return the path of a new cancel pipe, and a descriptor of it."""
        self._pipes += 1
        path = self._scratch / PIPE_PATTERN.replace("*", f"{os.getpid()}-{self._pipes}")
        try:
            os.mkfifo(path, 0o600)
            # Opening for reading as well keeps the open from waiting for a reader.
            return path, os.open(path, os.O_RDWR)
        except OSError as error:
            raise EngineError(f"{path}: a named pipe could not be made: {error.strerror}") from error

    @staticmethod
    async def _close_when_cancelled(pipe: int) -> None:
        try:
            await trio.sleep_forever()
        finally:
            os.close(pipe)


def _remove_stale_files(scratch: Path) -> None:
    for pattern in (PIPE_PATTERN, FEED_PATTERN, PLAYER_PATTERN):
        for stale in scratch.glob(pattern):
            stale.unlink(missing_ok=True)


def _play(job: Job, pipe: str, core: int | None, feed: str | None) -> PackedGame:
    """Play a game in a worker.  Raises RefereeError only."""
    with unexpected_errors_as_referee_errors():
        return PackedGame.of(play_in_worker(job, pipe, core, feed))


@asynccontextmanager
async def open_local_engine(
    scratch: Path, concurrency: int | None = None, *, own_core: bool = False, nice: int = 0
) -> AsyncIterator[LocalEngine]:
    """Open an engine with this many workers; None is one per core.

    With ``own_core`` each game has a core of its own, as long as there are enough.  ``nice`` is the nice
    value that the workers, and the bots that they start, add to their own.

    ``scratch`` is a directory that only one engine uses; named pipes and sockets that a killed one left in
    it are removed.
    """
    _remove_stale_files(scratch)
    become_subreaper()
    async with trio_parallel.open_worker_context(
        idle_timeout=math.inf, init=partial(lower_priority, nice)
    ) as context:
        with spare_children():
            yield LocalEngine(context, concurrency or len(usable_cores()), scratch, own_core=own_core)
