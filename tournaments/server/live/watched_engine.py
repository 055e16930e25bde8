"""Engine wrapper that reports its games to the hub."""

import math

from referee.live_feed import Snapshot
from referee.play import Job
from tournaments.engines.base import Begun, Engine, Follower
from tournaments.results.packed_game import PackedGame
from tournaments.server.live.hub import Channel, Hub

GIVEN_UP = "The game was given up; it has no result."


class WatchedEngine:
    """Engine of one competition that plays with another engine and reports the games to the hub."""

    def __init__(self, engine: Engine, hub: Hub, competition: str, most_followed: float = math.inf) -> None:
        """``competition`` is a slug; moves are reported of at most ``most_followed`` games at a time."""
        self._engine = engine
        self._hub = hub
        self._competition = competition
        self._may_follow = most_followed

    @property
    def concurrency(self) -> int:
        """Number of games at a time."""
        return self._engine.concurrency

    async def play(self, job: Job, begins: Begun | None = None, follow: Follower | None = None) -> PackedGame:
        """Play one game; see ``Engine.play``.  Raises RefereeError, EngineError."""
        channel: Channel | None = None

        def started(host: str) -> None:
            nonlocal channel
            channel = self._hub.started(self._competition, job, host)
            if begins is not None:
                begins(host)

        def told(snapshot: Snapshot) -> None:
            if channel is not None:
                channel.snapshot(snapshot)
            if follow is not None:
                follow(snapshot)

        is_followed = self._may_follow > 0
        self._may_follow -= is_followed
        try:
            game = await self._engine.play(job, started, told if is_followed or follow else None)
            if channel is not None:
                channel.ended(game.record)
            return game
        finally:
            self._may_follow += is_followed
            if channel is not None:
                channel.failed(GIVEN_UP)  # ignored if the channel has a result
