"""Objects that the parts of the service share."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from tournaments.course.course import Course
from tournaments.database.location import Database
from tournaments.engines.base import Engine
from tournaments.server.bot_provider import Bots
from tournaments.server.cluster import ServiceCluster
from tournaments.server.config import ServiceConfig
from tournaments.server.failures import Failures
from tournaments.server.live.hub import Hub
from tournaments.server.slots import Places


@dataclass(frozen=True)
class Parts:
    """Shared objects, one of each, made by ``open_service``."""

    data: Path
    """The data directory."""
    course: Course
    database: Database
    config: ServiceConfig
    now: Callable[[], datetime]
    """Clock that returns an aware time in UTC."""
    bots: Bots
    places: Places
    engine: Engine
    """Engine that plays every game at once; callers take a slot first."""
    hub: Hub
    failures: Failures
    cluster: ServiceCluster | None = None
    """Cluster that plays the games of tournaments; None if ``engine`` does."""
