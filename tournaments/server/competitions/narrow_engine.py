"""Engine wrapper that limits a tournament to the number of slots that its lecturer allowed."""

import trio

from referee.play import Job
from tournaments.engines.base import Begun, Engine, Follower
from tournaments.results.packed_game import PackedGame


class NarrowEngine:
    """Engine that plays at most ``most`` games at a time."""

    def __init__(self, engine: Engine, most: int) -> None:
        self._engine = engine
        self._most = most
        self._games = trio.CapacityLimiter(most)

    @property
    def concurrency(self) -> int:
        """Number of games at a time."""
        return min(self._most, self._engine.concurrency)

    async def play(self, job: Job, begins: Begun | None = None, follow: Follower | None = None) -> PackedGame:
        """Play one game; see ``Engine.play``."""
        async with self._games:
            return await self._engine.play(job, begins, follow)
