"""Error response for an upload that could not be stored."""

import logging

from tournaments.web.http.errors import Unavailable

LOG = logging.getLogger("kalarena.web")


def not_kept(error: Exception) -> Unavailable:
    """Log the error, and return the response, which does not contain the path on our disk."""
    LOG.error("what was sent could not be kept: %s", error)
    return Unavailable(
        "This server could not keep what you sent, which is not your fault: its disk may be full. "
        "Tell the lecturer, and send it again later."
    )
