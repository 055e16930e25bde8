"""Status of the service, for the lecturer's dashboard and for health monitoring."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from tournaments.server.cluster import ClusterStatus
from tournaments.server.failures import Failure
from tournaments.server.live_hub import LiveGame
from tournaments.server.slots import Kind, Use


@dataclass(frozen=True)
class Status:
    """Status of the service at some moment."""

    unchecked: int
    """Versions that wait for their check, or are being checked."""
    playing: tuple[LiveGame, ...]
    """Games that are being played."""
    slots: int
    """Maximum number of games and checks at a time."""
    uses: Mapping[Kind, Use]
    """Use of the slots by each kind."""
    resting: str
    """Reason why no practice game can begin; empty if games can begin."""
    load: tuple[float, float, float] | None
    """Load averages (runnable processes) of the last 1, 5 and 15 minutes; None where the system has none."""
    cores: int
    failures: tuple[Failure, ...]
    """Failures of the server since it began, newest first."""
    cluster: ClusterStatus | None = None
    """Machines that play tournaments; None if this one does."""


def load_average() -> tuple[float, float, float] | None:
    """Return the system's load averages of the last 1, 5 and 15 minutes; None if there are none."""
    try:
        return os.getloadavg()
    except OSError:
        return None
