"""Writer of results that stores games as they end, and groups simultaneous ones.

Tournaments and the practice ladder use it; the practice ladder has no files.

A transaction waits for the disk once for all its games.  So games that end at the same time share one: a
tournament on a few cores has a transaction for each game or few, and one on thousands has one for hundreds.
A game is reported as stored only once it is on the disk, and no game waits for others that are still played.

Files are written after the store, and may be delayed: they can be made from it at any time.
"""

import math
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

import trio
import trio_parallel

from tournaments.results.game_archives import ArchivePlan, write_archive
from tournaments.results.game_files import GameFilesError, write_game_files
from tournaments.results.game_summary import PackedGame
from tournaments.results.packing import unpacked
from tournaments.results.store import Store, StoreError

APART_S = 0.02
"""Minimum seconds between the beginnings of two transactions.

A game by itself does not wait, and of hundreds in a second some share one.  A transaction takes a millisecond
of processor time, a game in it 30 us.
"""
MOST_AT_ONCE = 500
"""Maximum games in a transaction: a quarter of a second, in which the store has no other writer."""
FILES_AT_ONCE = 32
"""Number of games whose files one process writes at a time."""
MOST_BEHIND_ONE = 64
"""Maximum games whose files one thread of this process may have pending, a tenth of a second.

More games are a sign that they end faster than the thread writes: then other cores help, and not before,
since they may be the games' own.
"""
BATCHES_BEHIND = 40
"""Maximum transactions whose files are pending: 20,000 games, which are 80 MB.

A tournament that plays faster than files are written for longer than that waits for the files.
"""
STILL_WRITTEN = MOST_AT_ONCE
"""Maximum games whose files a stopped run still writes, which takes a second.

With more, the next run writes them.
"""


T = TypeVar("T")


@dataclass
class _Batch(Generic[T]):
    """Games that are written together."""

    games: list[tuple[T, PackedGame]] = field(default_factory=list)
    is_taken: bool = False
    failure: StoreError | None = None
    """Error that kept all of them out of the store."""


class ResultWriter(Generic[T]):
    """Writer of the store and of the games' files, outside the event loop.  See ``open_result_writer``.

    ``T`` is the type of the caller's pairings.
    """

    def __init__(
        self,
        store: Store,
        directory: Path | None,
        on_stored: Callable[[T, PackedGame], None],
        processes: trio_parallel.WorkerContext,
        archives: ArchivePlan | None = None,
    ) -> None:
        """``archives`` are those of the tournament; None if each game's files are in a folder."""
        self._store = store
        self._archives = archives
        self._directory = directory
        self._on_stored = on_stored
        self._processes = processes
        self._storing = trio.Lock()
        self._filing = trio.Lock()
        self._behind = trio.Semaphore(BATCHES_BEHIND)
        self._without_files = 0
        self._next_at = -math.inf
        self._batch: _Batch[T] = _Batch()

    async def write(self, pairing: T, game: PackedGame) -> None:
        """Wait until the game is in the store.  Raises StoreError, GameFilesError."""
        if self._batch.is_taken or len(self._batch.games) >= MOST_AT_ONCE:
            self._batch = _Batch()
        batch = self._batch
        batch.games.append((pairing, game))
        async with self._storing:
            if batch.is_taken:  # by the first task of the batch
                if batch.failure is not None:
                    raise copy(batch.failure) from batch.failure
                return
            with trio.CancelScope(shield=True):  # a short delay: no game that has ended is lost by it
                await trio.sleep_until(self._next_at)
            try:
                self._behind.acquire_nowait()
            except trio.WouldBlock:
                await self._behind.acquire()
            self._next_at = trio.current_time() + APART_S
            batch.is_taken = True
            try:
                added = await self._store_batch(batch)
            except BaseException:
                self._behind.release()
                raise
        # Further batches are stored while the files of this one are written.
        try:
            new = [packed for _, packed in batch.games if packed.summary.key in added]
            if self._archives is None:
                await self._write_files([packed.packed for packed in new])
            else:
                self._archives.add([packed.summary.key for packed in new])
                await self._write_archives(self._archives)
        finally:
            self._without_files -= len(batch.games)
            self._behind.release()

    async def _store_batch(self, batch: _Batch[T]) -> set[str]:
        """Store a batch; return the keys of the games that the store did not have yet."""
        games = [packed for _, packed in batch.games]
        with trio.CancelScope(shield=True):  # stored games are always reported
            # A thread cannot be stopped half-way, nor can a transaction be half kept.
            try:
                added = await trio.to_thread.run_sync(self._store.add_all, games)
            except StoreError as failure:
                batch.failure = failure
                raise
            for pairing, packed in batch.games:
                if packed.summary.key in added:
                    self._on_stored(pairing, packed)
            self._without_files += len(games)
        return added

    async def _write_files(self, packed: Sequence[bytes]) -> None:
        if self._directory is None:
            return
        with trio.CancelScope(shield=self._without_files <= STILL_WRITTEN):
            await self._filing.acquire()
        try:
            with trio.CancelScope(shield=True):
                await self._write_parts(self._directory, packed)
        finally:
            self._filing.release()

    async def _write_archives(self, plan: ArchivePlan) -> None:
        """Write the archives that are complete now."""
        if self._directory is None:
            return
        async with self._filing:
            for number, keys in plan.due():
                with trio.CancelScope(shield=True):
                    await self._in_process(write_archive, self._store.location, self._directory, number, keys)

    async def _write_parts(self, directory: Path, packed: Sequence[bytes]) -> None:
        parts = [packed[at : at + FILES_AT_ONCE] for at in range(0, len(packed), FILES_AT_ONCE)]
        if len(packed) <= FILES_AT_ONCE and self._without_files <= MOST_BEHIND_ONE:
            await trio.to_thread.run_sync(write_files_of, directory, packed)
            return
        async with trio.open_nursery() as nursery:
            for part in parts:
                nursery.start_soon(self._in_process, write_files_of, directory, part)

    async def _in_process(self, write: Callable[..., None], *arguments: Any) -> None:
        """Call a function that writes files in another process.  Raises GameFilesError, StoreError."""
        try:
            await self._processes.run_sync(write, *arguments)
        except trio_parallel.BrokenWorkerError as error:
            raise GameFilesError(
                f"{self._directory}: a process that wrote files of games died; their results are safe, and "
                "the next run writes them"
            ) from error


@asynccontextmanager
async def open_result_writer(
    store: Store,
    directory: Path | None,
    on_stored: Callable[[T, PackedGame], None],
    archives: ArchivePlan | None = None,
) -> AsyncIterator[ResultWriter[T]]:
    """Open a writer into a store, and into the games' files in a directory; None if games have no files.

    ``on_stored`` is called, in the event loop, with each game that was added to the store.  For ``archives``,
    see ``ResultWriter``.
    """
    async with trio_parallel.open_worker_context() as processes:  # each starts when it is first needed
        yield ResultWriter(store, directory, on_stored, processes, archives)


def write_files_of(directory: Path, packed: Sequence[bytes]) -> None:
    """Write the files of some games.  Raises GameFilesError."""
    for one in packed:
        write_game_files(directory, unpacked(one))
