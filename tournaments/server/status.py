"""Status of the service, for the lecturer's dashboard and for health monitoring."""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tournaments.server.cluster import ClusterStatus
from tournaments.server.failures import Failure
from tournaments.server.live_hub import LiveGame
from tournaments.server.slots import Kind, Use

LOW_SHARE, LOW_BYTES = 0.05, 2 << 30
"""Free space below which a disk is called nearly full: a twentieth of it, but at most 2 GiB.  A tournament of
100,000 games takes half a gigabyte, and a build some hundred megabytes."""


@dataclass(frozen=True)
class Disk:
    """Space of the file system with the data directory."""

    free_bytes: int
    total_bytes: int

    @classmethod
    def of(cls, data: Path) -> "Disk | None":
        """Return the space for a data directory; None if it cannot be examined."""
        try:
            found = shutil.disk_usage(data)
        except OSError:
            return None
        return cls(found.free, found.total)

    @property
    def is_low(self) -> bool:
        """True if the disk is nearly full."""
        return self.free_bytes < min(LOW_BYTES, LOW_SHARE * self.total_bytes)

    def __str__(self) -> str:
        text = f"{self.free_bytes / 1e9:.1f} GB of {self.total_bytes / 1e9:.1f} GB free"
        return f"{text}: nearly full, make room soon" if self.is_low else text


@dataclass(frozen=True)
class Status:
    """Status of the service at some moment."""

    unchecked: int
    """Versions that wait for their check, or are being checked."""
    checking: int
    """Workers that check a version."""
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
    mail_trouble: str | None = None
    """Reason why no mail could be delivered at the last attempt; empty if mails are delivered, None if this
    server sends none."""
    disk: Disk | None = None
    """Space for the data directory; None if it cannot be examined."""


def load_average() -> tuple[float, float, float] | None:
    """Return the system's load averages of the last 1, 5 and 15 minutes; None if there are none."""
    try:
        return os.getloadavg()
    except OSError:
        return None
