"""Check for the optional dependencies of the cluster."""

from importlib.util import find_spec

from tournaments.engines.remote.errors import ClusterError

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
