"""The scheduler of a cluster, run as ``python -m tournaments.engines.remote.scheduler_process``.

Its command line says where to listen.  It writes one line of JSON with its address, or with an error.  It
ends when its standard input ends, and so with the process that started it, however that ended.
"""

import argparse
import asyncio
import json
import logging
import sys
from pathlib import Path

import dask
import uvloop
from distributed import Scheduler
from distributed.comm import CommClosedError

from referee.process.subreaper import become_subreaper
from tournaments.engines.remote.credentials import Credentials
from tournaments.engines.remote.extra import SETTINGS, ClusterError

WORKER_TTL = "60s"
"""Time after which a silent worker is dropped, as its host has vanished, and its games are reassigned.

Dask's own 300 s would cost as many lost games of others.
"""


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
