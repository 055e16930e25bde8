"""Exceptions of the cluster, and the check for its optional dependencies."""

from importlib.util import find_spec


class ClusterError(Exception):
    """A cluster cannot be used as configured, or one of its hosts has failed.

    The message names the reason and the remedy.  It is never a bot's fault.
    """


class SchedulerLostError(ClusterError):
    """The connection to a scheduler was lost, or there is none: a retry with another one is possible."""


MODULES = ("distributed", "cryptography", "dask_jobqueue", "uvloop")
"""Modules of the extra.

Only tournaments/cluster, tournaments/engines/remote/dask_engine.py and slurm.py, and
tournaments/engines/remote/remote_engine.py need them.
"""


def require_extra() -> None:
    """Check that all modules can be imported; import none of them.

    Raises ClusterError, which names the package to install.
    """
    missing = [name for name in MODULES if find_spec(name) is None]
    if missing:
        raise ClusterError(
            f"playing on a cluster needs what is not installed here ({', '.join(missing)}): "
            "pip install 'kalarena[cluster]'"
        )
