"""What a Dask scheduler is taught: to keep the files of bots, and to tell of workers that come and go."""

from typing import Any

from distributed import Scheduler, SchedulerPlugin

from tournaments.cluster.dask_settings import SEND_EVERY_S
from tournaments.cluster.worker_plugin import NAME

LOST = f"{NAME}-lost"
"""The topic under which the address of each lost worker is told."""


class BotsAndWorkers(SchedulerPlugin):  # type: ignore[misc]
    """Handlers beside the scheduler's own; the engine installs it once.

    Files are kept in memory for as long as the scheduler lives: those of 400 bots of a course are 100 MB.
    """

    name = NAME
    idempotent = True

    async def start(self, scheduler: Scheduler) -> None:
        """Begin."""
        self._scheduler = scheduler
        self._archives: dict[str, bytes] = {}
        self._changes = 0
        scheduler.handlers |= {
            "kalarena_archive": self.archive,
            "kalarena_keep": self.keep,
            "kalarena_workers": self.workers,
        }
        for worker in scheduler.workers:
            self._send_at_once(worker)

    async def archive(self, digest: str) -> bytes | None:
        """The archive of a digest; None if it was never kept."""
        return self._archives.get(digest)

    async def keep(self, digest: str, archive: bytes | None = None) -> bool:
        """Keep an archive; whether it is kept.  Without one, only that is asked."""
        if archive is not None:
            self._archives[digest] = archive
        return digest in self._archives

    async def workers(self, changes: int) -> dict[str, Any] | None:
        """The workers that play games, with what they say of their hosts; None if none came or went since
        there were so many changes.
        """
        if changes == self._changes:
            return None
        found = [
            [address, state.nthreads, state.metrics[NAME]]
            for address, state in self._scheduler.workers.items()
            if NAME in state.metrics
        ]
        return {"changes": self._changes, "workers": found}

    def add_worker(self, scheduler: Scheduler, worker: str) -> None:
        """One has come."""
        self._changes += 1
        self._send_at_once(worker)

    def remove_worker(self, scheduler: Scheduler, worker: str, **_more: Any) -> None:
        """One is gone, for whatever reason."""
        self._changes += 1
        scheduler.log_event(LOST, worker)

    def _send_at_once(self, worker: str) -> None:
        self._scheduler.stream_comms[worker].interval = SEND_EVERY_S
