"""Optional packages of the cluster: the check for them, exceptions, and Dask's settings for games.

Nothing here imports these packages.
"""

from importlib.util import find_spec
from typing import Any


class ClusterError(Exception):
    """A cluster cannot be used as configured, or one of its hosts has failed.

    The message names the reason and the remedy.  It is never a bot's fault.
    """


class SchedulerLostError(ClusterError):
    """The connection to a scheduler was lost, or there is none: a retry with another one is possible."""


MODULES = ("distributed", "cryptography", "dask_jobqueue", "uvloop")
"""Modules of the extra.

Only modules of tournaments/engines/remote need them.
"""


def require_extra() -> None:
    """Check that all modules can be imported; import none of them.

    Raises ClusterError, which names the package to install.
    """
    missing = [name for name in MODULES if find_spec(name) is None]
    if missing:
        raise ClusterError(
            f"playing on a cluster needs packages that are not installed here ({', '.join(missing)}): "
            "pip install 'kalarena[cluster]'"
        )


SEND_EVERY_S = 0.001
"""Interval in seconds during which messages on one connection are collected.

Dask's own 10 ms from a client and 5 ms to a worker suit thousands of small tasks a second; here they would be
most of the time for which a game waits between two hosts.
"""

SETTINGS: dict[str, Any] = {
    # A game is some fifty rounds of the loops of head, scheduler and worker, with little to do in each.
    "distributed.admin.event-loop": "uvloop",
    # These pages are not encrypted, and require no certificate.
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    # Dask would wake up a hundred times a second on each worker to sample its threads, which do next to
    # nothing, and fifty times to measure its loop's delay: on the cores of the games.
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    # A worker would measure the size of each message, because messages of more than 10 MiB are packed in a
    # thread. Only archives of bots are that large, each is fetched once, and TLS is read in the loop anyway.
    # Dask reads this setting when it is imported, hence in the environment.
    "distributed.nanny.pre-spawn-environ.DASK_DISTRIBUTED__COMM__OFFLOAD": "False",
    # Last messages of each connection and topic, kept for developers of Dask: here these are whole games.
    "distributed.admin.low-level-log-length": 20,
}
"""Dask's settings for the scheduler and the workers: few wake-ups on the games' cores, immediate messages."""
