"""How Dask is set for games: it leaves them the cores, and passes on what they say at once."""

from typing import Any

SEND_EVERY_S = 0.001
"""How long messages on one connection are collected.  Dask's own 10 ms from a client and 5 ms to a worker
suit thousands of small tasks a second; here they would be most of what a game waits for between two hosts."""

SETTINGS: dict[str, Any] = {
    # A game is some fifty rounds of the loops of head, scheduler and worker, with little to do in each.
    "distributed.admin.event-loop": "uvloop",
    # They are not encrypted, and ask nobody for a certificate.
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    # Dask would wake up a hundred times a second on each worker to see what its threads do, which is
    # next to nothing, and fifty times to see whether it is still awake: on the cores of the games.
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    # A worker would look through each message for how large it is, as a thread of its own is to pack one of
    # more than 10 MiB.  Only archives of bots are, which it fetches once, and TLS is read in its loop anyway.
    # Dask asks for this when it is imported, hence in the environment.
    "distributed.nanny.pre-spawn-environ.DASK_DISTRIBUTED__COMM__OFFLOAD": "False",
    # Last messages of each connection and topic, kept for developers of Dask: here they are whole games.
    "distributed.admin.low-level-log-length": 20,
}
"""For the scheduler and the workers."""
