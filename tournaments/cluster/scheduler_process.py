"""The scheduler of a cluster, as a process of its own: ``python -m tournaments.cluster.scheduler_process``.

It is told where to listen on its command line, says in one line of JSON where it does, or why it cannot, and
ends when its standard input ends: with whoever started it, however that ended.
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

from referee.orphans import adopt_orphans
from tournaments.cluster.credentials import Credentials
from tournaments.cluster.dask_settings import SETTINGS
from tournaments.cluster.errors import ClusterError

WORKER_TTL = "60s"
"""A worker that was not heard of for so long, as its host vanished, is given up and its games are played
elsewhere; Dask's own 300 s are as many lost games of others."""


async def serve(credentials: Credentials, host: str | None, port: int) -> None:
    """Be the scheduler until standard input ends.  Raises RuntimeError if it cannot listen."""
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
        _tell({"address": scheduler.address})
        await let_go.wait()


def _tell(said: dict[str, str]) -> None:
    print(json.dumps(said), flush=True)


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("credentials", type=Path)
    parser.add_argument("--host")
    parser.add_argument("--port", type=int, default=0)
    asked = parser.parse_args()
    logging.getLogger("distributed").setLevel(logging.WARNING)
    adopt_orphans()
    try:
        with dask.config.set({**SETTINGS, "distributed.scheduler.worker-ttl": WORKER_TTL}):
            uvloop.run(serve(Credentials(asked.credentials), asked.host, asked.port))
    except (ClusterError, RuntimeError) as error:  # Dask's own has its cause as another one
        _tell({"error": str(error.__cause__ or error)})
        sys.exit(1)


if __name__ == "__main__":
    main()
