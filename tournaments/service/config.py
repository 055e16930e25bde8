"""What whoever runs the server decides of the service; a lecturer's part is in the course's settings."""

from dataclasses import dataclass

from tournaments.cluster.settings import ServerClusterTable

MAX_PLACES = 1024
"""As in a tournament file: far more cores than a server has."""


@dataclass(frozen=True)
class ServiceConfig:
    """How much of the machine the service takes.  Raises ValueError for what makes no sense."""

    places: int | None = None
    """Games and checks at a time; None is one per core."""
    checks: int | None = None
    """Checks at a time; None is half of the places, so that games go on beside them."""
    nice: int = 5
    """By how much games and checks give way to the pages.  The fair clock charges no bot for that."""
    retry_s: float = 10.0
    """After a failure of ours, the same is tried again so much later, and twice as late each time."""
    shutdown_s: float = 0.5
    """A check has so long to end its bots by itself, before it is killed."""
    leisure_s: float = 120.0
    """Once everybody has met everybody often enough, one more practice pair is begun so often."""

    cluster: ServerClusterTable | None = None
    """Where the games of tournaments are played; None is on this machine."""

    def __post_init__(self) -> None:
        for name in ("places", "checks"):
            value = getattr(self, name)
            if value is not None and not 1 <= value <= MAX_PLACES:
                raise ValueError(f"{name} must be from 1 to {MAX_PLACES}, not {value}")
        if not 0 <= self.nice <= 19:
            raise ValueError(f"nice must be from 0 to 19, not {self.nice}")
        for name in ("retry_s", "shutdown_s", "leisure_s"):
            value = getattr(self, name)
            if not 0 < value < float("inf"):
                raise ValueError(f"{name} must be more than 0 seconds, not {value:g}")

    def places_on(self, cores: int) -> int:
        """Places on a machine with so many cores."""
        return self.places or cores

    def checks_on(self, cores: int) -> int:
        """Checks at a time on such a machine."""
        return self.checks or max(1, self.places_on(cores) // 2)
