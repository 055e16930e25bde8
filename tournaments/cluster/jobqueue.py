"""What of dask-jobqueue is used, without what importing it does.

It takes SIGINT for itself, and ends the process without a word when that comes.
"""

import signal

_before = signal.getsignal(signal.SIGINT)
from dask_jobqueue.slurm import SLURMCluster, SLURMJob  # noqa: E402 - in between

signal.signal(signal.SIGINT, _before)

__all__ = ["SLURMCluster", "SLURMJob"]
