"""What the service is doing: for the lecturer's dashboard, and for whoever watches the server's health."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from tournaments.service.cluster import ClusterStatus
from tournaments.service.failures import Failure
from tournaments.service.live import LiveGame
from tournaments.service.places import Kind, Use


@dataclass(frozen=True)
class Status:
    """The service at some moment."""

    unchecked: int
    """Versions that wait for their check, or are being checked."""
    playing: tuple[LiveGame, ...]
    """The games that are being played."""
    places: int
    """Games and checks at a time, at most."""
    uses: Mapping[Kind, Use]
    """What the places are used for."""
    resting: str
    """Why no practice game is begun; empty if some are."""
    load: tuple[float, float, float] | None
    """Processes that want a core, on average over the last 1, 5 and 15 minutes; None where nobody counts."""
    cores: int
    failures: tuple[Failure, ...]
    """What failed on our side since the server began, newest first."""
    cluster: ClusterStatus | None = None
    """The machines that play tournaments; None if this one does."""


def load_average() -> tuple[float, float, float] | None:
    """Processes that want a core."""
    try:
        return os.getloadavg()
    except OSError:
        return None
