"""What is told when this server's disk does not take what was sent."""

import logging

from tournaments.web.errors import Unavailable

LOG = logging.getLogger("kalarena.web")


def not_kept(error: Exception) -> Unavailable:
    """The answer; where on our disk it was is for the log alone."""
    LOG.error("what was sent could not be kept: %s", error)
    return Unavailable(
        "This server could not keep what you sent, which is not your fault: its disk may be full. "
        "Tell the lecturer, and send it again later."
    )
