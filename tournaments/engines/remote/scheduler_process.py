"""The scheduler of a cluster, and its plugin, which stores bots' files and reports workers.

It is run as ``python -m tournaments.engines.remote.scheduler_process``.  Its command line says where to
listen.  It writes one line of JSON with its address, or with an error.  It ends when its standard input ends:
at the latest with the process that started it, even if that process is killed.
"""

import argparse
import asyncio
import json
import logging
import sys
from pathlib import Path
from typing import Any

import dask
import uvloop
from distributed import Scheduler, SchedulerPlugin
from distributed.comm import CommClosedError

from referee.process.subreaper import become_subreaper
from tournaments.engines.remote.credentials import Credentials
from tournaments.engines.remote.extra import SEND_EVERY_S, SETTINGS, ClusterError
from tournaments.engines.remote.worker.worker_plugin import NAME

WORKER_TTL = "60s"
"""Time after which a silent worker is dropped, as its host has vanished, and its games are reassigned.

Dask's own 300 s would cost as many lost games of others.
"""
LOST = f"{NAME}-lost"
"""Topic of the addresses of lost workers."""


class BotsAndWorkers(SchedulerPlugin):  # type: ignore[misc]
    """Plugin that adds handlers to the scheduler's own; the engine installs it once.

    Files stay in memory for the scheduler's lifetime: the files of a course's 400 bots take 100 MB.
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


class ClientGone(logging.Filter):
    """Filter for the tracebacks of clients that vanished, as a head does that is killed.

    Dask logs as an error that a message could not be sent to a client that it has not removed yet.  And if a
    client vanishes while it registers, ``Scheduler.add_client`` looks for a connection that its own
    ``remove_client`` has removed already.  Nothing is lost by either: a head that starts again is another
    client.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Return False for such a record."""
        error = record.exc_info[1] if record.exc_info else None
        is_unregistered = isinstance(error, KeyError) and str(error.args[0]).startswith("Client-")
        return not (is_unregistered or isinstance(error, CommClosedError))


async def serve(credentials: Credentials, host: str | None, port: int) -> None:
    """Run the scheduler until standard input ends.  Raises RuntimeError if it cannot listen."""
    async with Scheduler(
        host=host,
        port=port,
        protocol="tls",
        security=credentials.security(),
        dashboard_address="127.0.0.1:0",
        dashboard=False,
    ) as scheduler:
        let_go = asyncio.Event()
        asyncio.get_running_loop().add_reader(sys.stdin.fileno(), let_go.set)
        _print({"address": scheduler.address})
        await let_go.wait()


def _print(message: dict[str, str]) -> None:
    print(json.dumps(message), flush=True)


def main() -> None:
    """Run the scheduler with the arguments of the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("credentials", type=Path)
    parser.add_argument("--host")
    parser.add_argument("--port", type=int, default=0)
    options = parser.parse_args()
    logging.getLogger("distributed").setLevel(logging.WARNING)
    # asyncio reports the task that has failed.
    for name in ("distributed.core", "distributed.scheduler", "asyncio"):
        logging.getLogger(name).addFilter(ClientGone())
    become_subreaper()
    try:
        with dask.config.set({**SETTINGS, "distributed.scheduler.worker-ttl": WORKER_TTL}):
            uvloop.run(serve(Credentials(options.credentials), options.host, options.port))
    except (ClusterError, RuntimeError) as error:  # the cause of an error from Dask is another exception
        _print({"error": str(error.__cause__ or error)})
        sys.exit(1)


if __name__ == "__main__":
    main()
