"""Imports from dask-jobqueue, without its signal handler.

When imported, dask-jobqueue installs a handler for SIGINT that ends the process without a message.
"""

import signal

_before = signal.getsignal(signal.SIGINT)
from dask_jobqueue.slurm import SLURMCluster, SLURMJob  # noqa: E402 - in between

signal.signal(signal.SIGINT, _before)

__all__ = ["SLURMCluster", "SLURMJob"]
