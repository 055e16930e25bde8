"""Exceptions of the cluster."""


class ClusterError(Exception):
    """A cluster cannot be used as configured, or one of its hosts has failed.

    The message names the reason and the remedy.  It is never a bot's fault.
    """


class SchedulerLostError(ClusterError):
    """The connection to a scheduler was lost, or there is none: a retry with another one is possible."""
