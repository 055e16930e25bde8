"""Shared objects of the service, and the stores of competitions, each opened once and closed when unused."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from threading import Lock

from tournaments.course.course import Course
from tournaments.database.base import Location
from tournaments.database.location import Database
from tournaments.engines.base import Engine
from tournaments.results.game_summary import PackedGame
from tournaments.results.store import Store
from tournaments.server.bot_provider import BotProvider
from tournaments.server.cluster import ServiceCluster
from tournaments.server.config import ServiceConfig
from tournaments.server.failures import Failures
from tournaments.server.live_hub import Hub
from tournaments.server.metrics import Metrics
from tournaments.server.slots import Slots

MOST_UNUSED = 8
"""Stores that are kept open while nobody uses them: pages come back to the same ones within seconds."""


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
    metrics: Metrics = field(default_factory=Metrics)

    def count_games(self, kind: str) -> Callable[[PackedGame | None], None]:
        """Return a callback for games that have ended, or that the host could not play (None)."""

        def count(game: PackedGame | None) -> None:
            if game is None:
                self.metrics.host_failed(kind)
            else:
                self.metrics.game_ended(kind, game.summary)

        return count


class MeasuredStore(Store):
    """Store whose transactions with games are measured."""

    def __init__(self, location: Path | Location, metrics: Metrics) -> None:
        super().__init__(location)
        self._metrics = metrics

    def add_all(self, games: Sequence[PackedGame]) -> set[str]:
        """See ``Store.add_all``."""
        with self._metrics.storing():
            return super().add_all(games)


class Stores:
    """Cache of open stores, for any thread."""

    def __init__(self, database: Database, metrics: Metrics | None = None) -> None:
        self._database = database
        self._metrics = metrics or Metrics()
        self._opened: dict[str, Future[Store]] = {}
        """Stores that are open or being opened, the one that was used last at the end."""
        self._users: Counter[str] = Counter()
        self._lock = Lock()
        """Never held while a store is opened, which takes long if its database does not answer."""

    @contextmanager
    def using(self, slug: str) -> Iterator[Store]:
        """Provide the store of a competition, creating it if needed.  Blocks.  Raises StoreError.

        Threads that need the same store wait until one of them has opened it, or has failed to.
        """
        with self._lock:
            is_opened = slug in self._opened
            opened = self._opened[slug] = self._opened.pop(slug) if is_opened else Future()
            self._users[slug] += 1
        try:
            if not is_opened:
                self._open(slug, opened)
            yield opened.result()
        finally:
            with self._lock:
                self._users[slug] -= 1
                self._close_unused(MOST_UNUSED)

    def _open(self, slug: str, opened: Future[Store]) -> None:
        try:
            opened.set_result(MeasuredStore(self._database.competition(slug), self._metrics))
        except BaseException as error:
            opened.set_exception(error)
            with self._lock:
                if self._opened.get(slug) is opened:
                    del self._opened[slug]  # the next use tries again

    def close(self) -> None:
        """Close all stores, also those in use.  Blocks."""
        with self._lock:
            self._users.clear()
            self._close_unused(0)

    def _close_unused(self, most: int) -> None:
        unused = [slug for slug in self._opened if self._users[slug] <= 0]
        for slug in unused[: max(0, len(unused) - most)]:
            opened = self._opened.pop(slug)
            if opened.exception() is None:
                opened.result().close()
            del self._users[slug]
