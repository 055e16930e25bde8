"""Configuration of the service by the server's operator; the course has the lecturers' settings."""

from dataclasses import dataclass

from tournaments.config.cluster_table import ServerClusterTable
from tournaments.server.mail.mail_table import Mailing

MAX_PLACES = 1024
"""Maximum number of slots, as in a tournament file: far more cores than a server has."""


@dataclass(frozen=True)
class ServiceConfig:
    """Resources and timing of the service.  Raises ValueError for invalid values."""

    slots: int | None = None
    """Number of games and checks at a time; None is one per core."""
    checks: int | None = None
    """Number of checks at a time; None is half of the slots, so that games go on beside them."""
    nice: int = 5
    """Nice value of games and checks, below the priority of pages.  The fair clock does not charge bots for
    it."""
    retry_s: float = 10.0
    """Seconds until a retry after a failure of the server, doubled after each further failure."""
    shutdown_s: float = 0.5
    """Seconds that a cancelled check has to end its bots, before it is killed."""
    leisure_s: float = 120.0
    """Seconds between practice pairs once every two bots have met often enough."""
    retired_s: float = 60.0
    """Seconds between removals of built bots that do not play any more: a team whose storage is used up
    waits for them, and they cost some reads of the database."""

    cluster: ServerClusterTable | None = None
    """Cluster that plays the games of tournaments; None is this machine."""
    mail: Mailing | None = None
    """Mail server that sends the course's mails; None sends none."""

    def __post_init__(self) -> None:
        for name in ("slots", "checks"):
            value = getattr(self, name)
            if value is not None and not 1 <= value <= MAX_PLACES:
                raise ValueError(f"{name} must be from 1 to {MAX_PLACES}, not {value}")
        if not 0 <= self.nice <= 19:
            raise ValueError(f"nice must be from 0 to 19, not {self.nice}")
        for name in ("retry_s", "shutdown_s", "leisure_s", "retired_s"):
            value = getattr(self, name)
            if not 0 < value < float("inf"):
                raise ValueError(f"{name} must be more than 0 seconds, not {value:g}")

    def slots_on(self, cores: int) -> int:
        """Return the number of slots on a machine with ``cores`` cores."""
        return self.slots or cores

    def checks_on(self, cores: int) -> int:
        """Return the number of checks at a time on a machine with ``cores`` cores."""
        return self.checks or max(1, self.slots_on(cores) // 2)
