"""Where games run."""

from collections.abc import Callable
from typing import Protocol

from referee.feed import Snapshot
from referee.play import Job
from tournaments.packed_game import PackedGame

Begun = Callable[[str], None]
"""Told, when a game begins, which of a cluster's hosts plays it; "" is this machine."""
Follower = Callable[[Snapshot], None]
"""Told how a game goes on."""


class Engine(Protocol):
    """Plays jobs, several at a time.

    ``play`` raises RefereeError, or EngineError, if the game could not be refereed to a result: then
    no result stands, and the game may be played again.
    """

    @property
    def concurrency(self) -> int:
        """How many games it plays at a time."""
        ...

    async def play(self, job: Job, begins: Begun | None = None, follow: Follower | None = None) -> PackedGame:
        """Play one game; it is in no round.

        ``begins`` is called, in the event loop that asked, once a place is free and the game goes there: what
        it waits before that is no part of the game.  A cluster tells it a moment later, and of a game that
        was over by then with its end.  ``follow`` is called there with snapshots of the game, as far as they
        arrive: they may all be missing.  Both return at once and raise nothing.
        """
        ...


class EngineError(Exception):
    """The place where the game ran was lost, or could not play it."""


class WorkerLostError(EngineError):
    """It was lost, as machines are that come and go, and by nothing that is known of this game."""
