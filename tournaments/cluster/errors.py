"""What can go wrong between hosts."""


class ClusterError(Exception):
    """A cluster cannot be used as it was asked for, or a host of it cannot do its part; the message says why
    and what to do.  Never a bot's fault.
    """


class SchedulerLostError(ClusterError):
    """The connection to a scheduler was lost, or there is none: it can be tried again with another one."""
