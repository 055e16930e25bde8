"""Whether the optional part of this program that needs Dask is installed."""

from importlib.util import find_spec

from tournaments.cluster.errors import ClusterError

MODULES = ("distributed", "cryptography", "dask_jobqueue", "uvloop")
"""What the extra brings; nothing needs it but tournaments/cluster, tournaments/engines/dask.py and slurm.py,
and tournaments/elsewhere.py."""


def require_extra() -> None:
    """Raises ClusterError, which says what to install, if something of it is missing; imports none of it."""
    missing = [name for name in MODULES if find_spec(name) is None]
    if missing:
        raise ClusterError(
            f"playing on a cluster needs what is not installed here ({', '.join(missing)}): "
            "pip install 'kalarena[cluster]'"
        )
