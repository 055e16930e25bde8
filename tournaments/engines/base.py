"""The protocol of engines, which run games."""

from collections.abc import Callable
from typing import Protocol

from referee.live_feed import Snapshot
from referee.play import Job
from tournaments.results.game_summary import PackedGame

Begun = Callable[[str], None]
"""Called when a game begins, with the cluster's host that plays it; "" is this machine."""
Follower = Callable[[Snapshot], None]
"""Called with snapshots of a running game."""


class Engine(Protocol):
    """Plays jobs, several at a time.

    ``play`` raises RefereeError, or EngineError, if the game could not be refereed to a result: then
    no result stands, and the game may be played again.
    """

    @property
    def concurrency(self) -> int:
        """The number of games that it plays at a time."""
        ...

    async def play(self, job: Job, begins: Begun | None = None, follow: Follower | None = None) -> PackedGame:
        """Play one game; it is in no round.

        ``begins`` is called in the caller's event loop, once a slot is free and the game is sent there: the
        wait before that is no part of the game.  A cluster calls it a moment later, or together with the
        game's end if the game was over by then.  ``follow`` is called in that loop with snapshots of the
        game, as far as they arrive: they may all be missing.  Both return at once and raise nothing.
        """
        ...


class EngineError(Exception):
    """The process or host that ran the game was lost, or could not play it."""


class WorkerLostError(EngineError):
    """The worker was lost, as machines are that come and go; the game is not known to be the cause."""
