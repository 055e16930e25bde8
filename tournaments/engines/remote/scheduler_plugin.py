"""Plugin of the Dask scheduler that stores bots' files, and reports workers that join and leave."""

from typing import Any

from distributed import Scheduler, SchedulerPlugin

from tournaments.engines.remote.extra import SEND_EVERY_S
from tournaments.engines.remote.worker.worker_plugin import NAME

LOST = f"{NAME}-lost"
"""Topic of the addresses of lost workers."""


class BotsAndWorkers(SchedulerPlugin):  # type: ignore[misc]
    """Handlers beside the scheduler's own; the engine installs them once.

    Files are kept in memory for as long as the scheduler lives: those of 400 bots of a course are 100 MB.
    """

    name = NAME
    idempotent = True

    async def start(self, scheduler: Scheduler) -> None:
        """Add the handlers to the scheduler."""
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
        """Return the archive of a digest; None if it is not stored."""
        return self._archives.get(digest)

    async def keep(self, digest: str, archive: bytes | None = None) -> bool:
        """Store an archive, if one is given; return whether the digest is stored."""
        if archive is not None:
            self._archives[digest] = archive
        return digest in self._archives

    async def workers(self, changes: int) -> dict[str, Any] | None:
        """Return the workers that play games, with the facts on their hosts.

        Returns None if no worker has joined or left since ``changes``.
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
        """Count a worker that has joined."""
        self._changes += 1
        self._send_at_once(worker)

    def remove_worker(self, scheduler: Scheduler, worker: str, **_more: Any) -> None:
        """Count and report a worker that is gone, for whatever reason."""
        self._changes += 1
        scheduler.log_event(LOST, worker)

    def _send_at_once(self, worker: str) -> None:
        self._scheduler.stream_comms[worker].interval = SEND_EVERY_S
