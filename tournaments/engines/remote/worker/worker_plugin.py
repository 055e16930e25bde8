"""Plugins that make a Dask worker play games, and leave before it is killed."""

import asyncio
import os
import pickle
import stat
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from distributed import Status, Worker, WorkerPlugin, get_worker
from distributed.utils import sync

from referee.process.subreaper import become_subreaper
from referee.sandbox.bubblewrap import Tier
from tournaments.engines.remote.extra import ClusterError
from tournaments.engines.remote.host import HostFacts, Versions
from tournaments.engines.remote.worker.bot_cache import ProgramsMissingError
from tournaments.engines.remote.worker.game_process import ENDED, failure
from tournaments.engines.remote.worker.worker_play import Assignment, WantedGame, WorkerGames

NAME = "kalarena"
"""Name of the plugins, and of the facts among a worker's metrics."""
SLOT = "slot"
"""Name of the Dask resource of which a game takes one."""
FETCH_LIMIT_S = 300
"""Limit in seconds; the largest archive takes 20 s on a line of 100 Mbit/s."""
PRIVATE = 0o700
SPARE_S = 20.0
"""Seconds kept free in any case: leaving takes some seconds, and a batch system's clock may differ."""
LONGER = 1.25
"""Assumed maximum duration of the next game, as a multiple of the longest game so far."""
LIFETIME_POLL_S = 0.5


def resources(facts: HostFacts, slots: int) -> dict[str, float]:
    """Return a worker's resources: slots, and the same number for its versions and for each tier it has."""
    tiers = list(Tier)
    names = [SLOT, _with(facts.plays), *map(_tier, tiers[tiers.index(Tier(facts.tier)) :])]
    return dict.fromkeys(names, float(slots))


def needed(versions: Versions, tier: Tier) -> dict[str, float]:
    """Return a game's required resources, which restrict it to workers with these versions and this tier."""
    return dict.fromkeys([SLOT, _with(versions), _tier(tier)], 1.0)


def _with(versions: Versions) -> str:
    return f"{SLOT} of {versions}"


def _tier(tier: Tier) -> str:
    return f"{SLOT} with sandbox {tier.value}"


def worker_options(
    facts: HostFacts, slots: int, scratch: Path | None = None, ends_at: float | None = None
) -> dict[str, Any]:
    """Return arguments that make a ``distributed.Worker``, or the worker of a ``Nanny``, play games.

    For ``scratch`` see ``GamePlugin``.  The worker is killed at ``ends_at``, in seconds since the epoch, and
    so begins no game that would not end by then.
    """
    plugins: list[WorkerPlugin] = [GamePlugin(facts, slots, scratch)]
    if ends_at is not None:
        plugins.append(Lifetime(ends_at))
    return {
        "nthreads": slots,
        "resources": resources(facts, slots),
        "plugins": tuple(plugins),
        "memory_limit": 0,  # games have limits of their own, and a worker that pauses would delay its games
    }


class GamePlugin(WorkerPlugin):  # type: ignore[misc]
    """Plugin that plays the games assigned to its worker."""

    name = NAME

    def __init__(self, facts: HostFacts, slots: int, scratch: Path | None = None) -> None:
        """``scratch`` is a folder that only workers of this user on this host use.

        By default it is one in the temporary directory.
        """
        self.facts = facts
        self.slots = slots
        self._scratch = scratch

    def setup(self, worker: Worker) -> None:
        """Prepare to play.

        Raises ClusterError if there is no folder for files: then the worker does not start.
        """
        self._worker = worker
        self._games: dict[Any, WantedGame] = {}
        self._replies: dict[Any, tuple[str, dict[str, Any]]] = {}
        """Topics and replies of games that have ended, whose tasks go on for a moment."""
        become_subreaper()
        scratch = self._scratch or Path(tempfile.gettempdir(), f"kalarena-worker-{os.getuid()}")
        make_private(scratch)
        self._play = WorkerGames(scratch, self.slots, self.facts.speed, worker.executors["default"])
        worker.metrics[NAME] = lambda _worker: self.facts.to_json()

    def transition(self, key: Any, start: str, finish: str, **_more: Any) -> None:
        """Follow a task's state; called by Dask.

        A cancelled task cannot be stopped by Dask: it becomes ``cancelled``, and runs on.  This happens when
        the head cancels a game and when the head is gone.
        """
        if not is_game(key):
            return
        if finish == "executing":
            self._games[key] = WantedGame()
            return
        if start == "executing" and key in self._games:
            self._games[key].give_up()
        reply = self._replies.pop(key, None)
        if reply is not None and finish == "memory":
            # An event logged here is sent together with Dask's own message that the task has ended.
            self._worker.log_event(*reply)

    async def teardown(self, worker: Worker) -> None:
        """Cancel all games."""
        for game in list(self._games.values()):
            game.give_up()
        await self._play.close()

    async def play(self, key: Any, assignment: Assignment, topic: str) -> None:
        """Play a game, and report its events under a topic."""
        send = partial(self._worker.log_event, topic)
        name = [str(part) for part in key]
        here = [self._worker.address, self.facts.name, self.slots]
        message: dict[str, Any] = {"game": name, "begins": here}
        try:
            reply = await self._play.play(
                assignment,
                self._games[key],
                self._fetch,
                on_start=lambda: send({"game": name, "begins": here}),
                on_snapshot=lambda snapshot: send({"game": name, "snapshot": snapshot}),
            )
        except asyncio.CancelledError:  # noqa: ASYNC103 - the task ends, with a reply
            # This worker ends. It reports that itself: Dask would have the game played elsewhere long before
            # it reports the loss of a worker.
            reply = failure("this worker was ended", ENDED)
        except ProgramsMissingError as error:
            message["missing"] = error.programs
            reply = failure(f"{self.facts.name} {error}")
        except ClusterError as error:
            reply = failure(error)
        except Exception as error:  # without a reply, the head would send more games to this host
            reply = failure(repr(error))
        finally:
            self._games.pop(key, None)
        self._replies[key] = (topic, message | {"reply": reply})

    def _fetch(self, digest: str) -> bytes:
        archive = sync(
            self._worker.loop,
            self._worker.scheduler.kalarena_archive,
            digest=digest,
            callback_timeout=FETCH_LIMIT_S,
        )
        if archive is None:
            raise ClusterError(f"the scheduler does not have the files {digest} of a bot")
        found: bytes = archive
        return found


def is_too_late(left_s: float, longest_s: float) -> bool:
    """Return whether too few seconds are left for a game, judged by the longest game so far."""
    return left_s < longest_s * LONGER + SPARE_S


class Lifetime(WorkerPlugin):  # type: ignore[misc]
    """Plugin that stops new games in time, and lets the worker leave after its last one.

    The duration of a game is estimated from the games that this worker has played.  Before the first game
    ends, only ``SPARE_S`` is kept free.  A game that takes longer than estimated is lost, and is played again
    on another worker.
    """

    name = "kalarena-lifetime"

    def __init__(self, ends_at: float, clock: Callable[[], float] = time.time) -> None:
        """``ends_at`` is in seconds since the epoch, like ``clock``.

        The end stays the same when the worker is restarted.
        """
        self.ends_at = ends_at
        self._clock = clock

    def setup(self, worker: Worker) -> None:
        """Begin to watch the time."""
        self._worker = worker
        self._begun: dict[Any, float] = {}
        self._longest_s = 0.0
        self._task = asyncio.create_task(self._leave_in_time())

    def teardown(self, worker: Worker) -> None:
        """Stop watching."""
        self._task.cancel()

    def transition(self, key: Any, start: str, finish: str, **_more: Any) -> None:
        """Record the state of a task; called by Dask."""
        if not is_game(key):
            return
        if finish == "executing":
            self._begun[key] = self._clock()
        elif key in self._begun:
            self._longest_s = max(self._longest_s, self._clock() - self._begun.pop(key))

    async def _leave_in_time(self) -> None:
        while not is_too_late(self.ends_at - self._clock(), self._longest_s):  # noqa: ASYNC110 - time passes
            await asyncio.sleep(LIFETIME_POLL_S)
        self._worker.status = Status.paused  # waiting games move elsewhere, at the latest when it ends
        while self._begun:  # noqa: ASYNC110 - one check more or less does not matter
            await asyncio.sleep(LIFETIME_POLL_S)
        # Not awaited here: the worker ends its plugins first, and so this task.
        self._leaving = asyncio.create_task(
            self._worker.close_gracefully(restart=False, reason="its time is over")
        )


def is_game(key: Any) -> bool:
    """Return whether a task is a game of Kalarena."""
    return isinstance(key, tuple) and str(key[0]).startswith(f"{NAME}-")


async def play_on_worker(assignment: bytes, topic: str, key: tuple[str, ...]) -> None:
    """Run the task of this key: play a game on the current worker, in its event loop.

    The reply is logged under the topic: one byte for its kind, and its content.
    """
    await get_worker().plugins[NAME].play(key, pickle.loads(assignment), topic)


def make_private(folder: Path) -> None:
    """Create a folder that only this user can write to, or check an existing one.  Raises ClusterError."""
    try:
        folder.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        raise ClusterError(f"{folder}: this folder cannot be made: {error.strerror}") from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        raise ClusterError(
            f"{folder} is not a folder that only you can write to: remove it, or choose another"
        )
