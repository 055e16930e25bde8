"""Objects that the parts of the service share: configuration, stores, clock."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from threading import Lock

from tournaments.config.cluster_table import ServerClusterTable
from tournaments.course.course import Course
from tournaments.database.location import Database
from tournaments.engines.base import Engine
from tournaments.results.store import Store
from tournaments.server.bot_provider import BotCatalog
from tournaments.server.cluster import ServiceCluster
from tournaments.server.live_hub import Hub
from tournaments.server.slots import Slots
from tournaments.server.status import Failures

MAX_PLACES = 1024
"""Maximum number of slots, as in a tournament file: far more cores than a server has."""


@dataclass(frozen=True)
class ServiceConfig:
    """Resources and timing of the service.  Raises ValueError for invalid values."""

    places: int | None = None
    """Number of games and checks at a time; None is one per core."""
    checks: int | None = None
    """Number of checks at a time; None is half of the slots, so that games go on beside them."""
    nice: int = 5
    """Nice value of games and checks, which yields to the pages.  The fair clock charges no bot for that."""
    retry_s: float = 10.0
    """Seconds until a retry after a failure of the server, doubled after each further failure."""
    shutdown_s: float = 0.5
    """Seconds that a cancelled check has to end its bots, before it is killed."""
    leisure_s: float = 120.0
    """Seconds between practice pairs once every two bots have met often enough."""

    cluster: ServerClusterTable | None = None
    """Cluster that plays the games of tournaments; None is this machine."""

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
        """Return the number of slots on a machine with ``cores`` cores."""
        return self.places or cores

    def checks_on(self, cores: int) -> int:
        """Return the number of checks at a time on a machine with ``cores`` cores."""
        return self.checks or max(1, self.places_on(cores) // 2)


@dataclass(frozen=True)
class ServiceContext:
    """Shared objects, one of each, made by ``open_service``."""

    data: Path
    """The data directory."""
    course: Course
    database: Database
    config: ServiceConfig
    now: Callable[[], datetime]
    """Clock that returns an aware time in UTC."""
    bots: BotCatalog
    places: Slots
    engine: Engine
    """Engine that plays every game at once; callers take a slot first."""
    hub: Hub
    failures: Failures
    cluster: ServiceCluster | None = None
    """Cluster that plays the games of tournaments; None if ``engine`` does."""


class Stores:
    """Cache of open stores, for any thread."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._opened: dict[str, Store] = {}
        self._lock = Lock()
        self._closing = ExitStack()

    def get(self, slug: str) -> Store:
        """Return the store of a competition, creating it if needed.  Blocks.  Raises StoreError."""
        with self._lock:
            if slug not in self._opened:
                store = Store(self._database.competition(slug))
                self._opened[slug] = self._closing.enter_context(store)
            return self._opened[slug]

    def close(self) -> None:
        """Close all connections.  Blocks."""
        with self._lock:
            self._opened.clear()
            self._closing.close()
