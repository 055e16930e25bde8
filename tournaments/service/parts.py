"""What the parts of the service share."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from tournaments.course.course import Course
from tournaments.database.location import Database
from tournaments.engines.base import Engine
from tournaments.service.cluster import ServiceCluster
from tournaments.service.config import ServiceConfig
from tournaments.service.failures import Failures
from tournaments.service.live import Hub
from tournaments.service.places import Places
from tournaments.service.players import Bots


@dataclass(frozen=True)
class Parts:
    """One of each, made by ``open_service``."""

    data: Path
    """The data directory."""
    course: Course
    database: Database
    config: ServiceConfig
    now: Callable[[], datetime]
    """The time, aware, in UTC."""
    bots: Bots
    places: Places
    engine: Engine
    """Plays whatever it is given at once: take a place first."""
    hub: Hub
    failures: Failures
    cluster: ServiceCluster | None = None
    """Plays the games of tournaments; None: ``engine`` does."""
