"""Shared objects of the service, and the stores of all competitions, each opened once."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from threading import Lock

from tournaments.course.course import Course
from tournaments.database.location import Database
from tournaments.engines.base import Engine
from tournaments.results.store import Store
from tournaments.server.bot_provider import BotProvider
from tournaments.server.cluster import ServiceCluster
from tournaments.server.config import ServiceConfig
from tournaments.server.failures import Failures
from tournaments.server.live_hub import Hub
from tournaments.server.slots import Slots


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
    bots: BotProvider
    slots: Slots
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
