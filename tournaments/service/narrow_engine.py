"""An engine of which a tournament uses no more places than its lecturer allowed."""

import trio

from referee.play import Job
from tournaments.engines.base import Begun, Engine, Follower
from tournaments.packed_game import PackedGame


class NarrowEngine:
    """Plays so many games at a time at most."""

    def __init__(self, engine: Engine, most: int) -> None:
        self._engine = engine
        self._most = most
        self._games = trio.CapacityLimiter(most)

    @property
    def concurrency(self) -> int:
        """How many games it plays at a time."""
        return min(self._most, self._engine.concurrency)

    async def play(self, job: Job, begins: Begun | None = None, follow: Follower | None = None) -> PackedGame:
        """See ``Engine.play``."""
        async with self._games:
            return await self._engine.play(job, begins, follow)
