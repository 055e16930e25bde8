"""An engine whose games are seen in the hub."""

from collections.abc import Callable

from referee.feed import Snapshot
from referee.play import Job
from referee.results import GameRecord
from tournaments.engines.base import Engine, Follower
from tournaments.service.live import Channel, Hub

GIVEN_UP = "The game was given up; it has no result."


class WatchedEngine:
    """Plays with another engine, and tells the hub: one for each competition."""

    def __init__(self, engine: Engine, hub: Hub, competition: str) -> None:
        """``competition`` is its slug."""
        self._engine = engine
        self._hub = hub
        self._competition = competition

    @property
    def concurrency(self) -> int:
        """How many games it plays at a time."""
        return self._engine.concurrency

    async def play(
        self, job: Job, begins: Callable[[], None] | None = None, follow: Follower | None = None
    ) -> GameRecord:
        """Play one game; see ``Engine.play``.  Raises RefereeError, EngineError."""
        channel: Channel | None = None

        def started() -> None:
            nonlocal channel
            channel = self._hub.started(self._competition, job)
            if begins is not None:
                begins()

        def told(snapshot: Snapshot) -> None:
            if channel is not None:
                channel.snapshot(snapshot)
            if follow is not None:
                follow(snapshot)

        try:
            record = await self._engine.play(job, started, told)
            if channel is not None:
                channel.ended(record)
            return record
        finally:
            if channel is not None:
                channel.failed(GIVEN_UP)  # unless it has its result
