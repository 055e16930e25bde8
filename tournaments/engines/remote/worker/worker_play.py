"""Games on a worker, each played in a reused game process.

Games are awaited in the worker's event loop: threads would add two context switches to each game.  Only slow
work, such as building a bot, runs in threads.
"""

import asyncio
import contextlib
import itertools
import multiprocessing
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from referee.judge.results import Player
from referee.live_feed import DATAGRAM_BYTES
from referee.playing import Job
from referee.process.subreaper import kill_orphans
from referee.sandbox.bubblewrap import Sandbox, Tier
from referee.sandbox.detection import AUTO, find_sandbox
from referee.sandbox.host_resources import usable_cores
from tournaments.config.host_speed import scaled
from tournaments.engines.base import listening
from tournaments.engines.local import FEED_PATTERN
from tournaments.engines.remote.extra import ClusterError
from tournaments.engines.remote.packed_bot import PackedBot
from tournaments.engines.remote.worker import game_process
from tournaments.engines.remote.worker.bot_cache import BotCache
from tournaments.engines.remote.worker.game_process import DIED, GIVE_UP, Order, failure

Value = TypeVar("Value")

QUICK_S = 0.05
"""Seconds within which the end of a game is reported together with its beginning, unless it is followed.

Each message of a worker wakes three processes, on the cores of games.
"""
ENDS_WITHIN_S = 10.0
"""Seconds after which a game process is killed; it ends its bots within milliseconds."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """Request for a game, as it is sent to a worker; can be pickled."""

    job: Job
    """The game, with commands and paths of the head."""
    packed_bots: tuple[PackedBot, PackedBot]
    own_core: bool = False
    reference_speed: float | None = None
    """Speed from which time limits are scaled, see tournaments/config/host_speed.py."""
    followed: bool = False
    """True if snapshots are requested."""


class GameProcess:
    """A process that plays games, one after the other."""

    def __init__(self) -> None:
        """Start a process.  Raises ClusterError."""
        try:
            self._connection, theirs = multiprocessing.Pipe()
            with theirs:
                # -P: no module in the worker's directory shadows Kalarena's.
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-m", game_process.__name__, str(theirs.fileno())],
                    stdin=subprocess.DEVNULL,
                    stdout=2,  # output of libraries
                    pass_fds=[theirs.fileno()],
                    process_group=0,  # a signal to the worker's group must not end it before its bots
                )
        except OSError as error:
            raise ClusterError(f"no game process could be started: {error.strerror}") from error

    async def play(
        self,
        order: bytes,
        feed: int | None,
        on_start: Callable[[], None],
        on_snapshot: Callable[[bytes], None],
    ) -> bytes | None:
        """Play the game of a pickled order; return its reply, or None if the process died.

        ``feed`` is a descriptor of datagrams, with each of which ``on_snapshot`` is called.  For ``on_start``
        see ``WorkerGames.play``.
        """
        begun = False

        def begin() -> None:
            nonlocal begun
            if not begun:
                begun = True
                on_start()

        def receive(feed: int) -> None:
            begin()
            with contextlib.suppress(BlockingIOError):
                on_snapshot(os.read(feed, DATAGRAM_BYTES))

        loop = asyncio.get_running_loop()
        replied = asyncio.Event()
        lasts = loop.call_later(QUICK_S, begin)
        loop.add_reader(self._connection.fileno(), replied.set)
        if feed is not None:
            loop.add_reader(feed, receive, feed)
        try:
            self._connection.send_bytes(order)
            await replied.wait()
            return self._connection.recv_bytes()
        except (OSError, EOFError):
            return None
        finally:
            lasts.cancel()
            loop.remove_reader(self._connection.fileno())
            if feed is not None:
                loop.remove_reader(feed)

    def give_up(self) -> None:
        """Cancel the current game, if there is one."""
        with contextlib.suppress(OSError):  # it has ended
            self._connection.send_bytes(GIVE_UP)

    def let_go(self) -> None:
        """End the process and its bots by closing the connection."""
        self._connection.close()

    def wait(self) -> None:
        """Wait until the process has ended, after ``let_go``."""
        try:
            self._process.wait(ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class WantedGame:
    """A game that a worker was requested to play, with its cancellation."""

    def __init__(self) -> None:
        self.wanted = True
        self.process: GameProcess | None = None
        """Process to which the game was sent; None before that and after the reply."""

    def give_up(self) -> None:
        """Cancel the game; its order is not sent any more."""
        self.wanted = False
        if self.process is not None:
            self.process.give_up()


class WorkerGames:
    """Player of assignments on this host.  Its methods are called in one event loop."""

    def __init__(self, scratch: Path, slots: int, speed: float | None, threads: Executor) -> None:
        """``scratch`` is a folder of this host's own; ``speed`` is in positions per second.

        ``threads`` has as many threads as ``slots``, and they are not awaited for ever at the end.
        """
        self._threads = threads
        self._scratch = scratch
        self._speed = speed
        self._children = threading.Lock()
        """Lock held by a build, and while orphaned bots are killed: a build's processes look like orphans."""
        self._bot_cache = BotCache(scratch / "bots", self._children)
        self._bot_cache.remove_old()
        self._sandboxes: dict[Sandbox, Sandbox] = {}
        """Requested sandbox -> this host's sandbox, which takes a moment to detect."""
        cores = usable_cores()
        self._all_cores = tuple(cores)
        self._places: list[tuple[int, ...]] = []
        """Free cores for games with a core of their own; empty if there are more slots than cores."""
        if slots <= len(cores):
            self._places = [(core,) for core in cores[:slots]]
        self._idle: list[GameProcess] = []
        self._numbers = itertools.count()

    async def play(
        self,
        assignment: Assignment,
        game: WantedGame,
        fetch: Callable[[str], bytes],
        on_start: Callable[[], None],
        on_snapshot: Callable[[bytes], None],
    ) -> bytes:
        """Play a game to its end, and return its reply.  Raises ClusterError if this host cannot.

        When cancelled, the game is cancelled too.  For ``fetch`` see BotCache; it is called in a thread.
        ``on_start`` is called before the first snapshot, or when the game has lasted ``QUICK_S``; not if it
        is over by then.  ``on_snapshot`` is called with snapshots.
        """
        job = await self._job_here(assignment, fetch)
        own_core = assignment.own_core and bool(self._places)
        cores = self._places.pop() if own_core else self._all_cores
        process: GameProcess | None = None
        idle = sweeps = True
        reply = None
        try:
            process = self._idle.pop() if self._idle else GameProcess()
            path = self._scratch / FEED_PATTERN.replace("*", f"{os.getpid()}-{next(self._numbers)}")
            with listening(path) if assignment.followed else contextlib.nullcontext() as feed:
                address, descriptor = (None, None) if feed is None else (str(path), feed.fileno())
                order = Order(job, assignment.job.players, cores, own_core, address, self._speed).packed()
                if not game.wanted:
                    raise ClusterError("the game was cancelled by the tournament runner")
                game.process, idle = process, False
                reply = await process.play(order, descriptor, on_start, on_snapshot)
                idle = reply is not None
        except asyncio.CancelledError:
            sweeps = False  # the shutdown of this worker does that; here it would wait for a build
            raise
        finally:
            game.process = None
            try:
                if process is not None and idle:
                    self._idle.append(process)
                elif process is not None:
                    process.let_go()
                    await self._in_a_thread(process.wait)
                    if sweeps:
                        await self._in_a_thread(self._sweep)
            finally:
                if own_core:
                    self._places.append(cores)
        return reply or failure("the game's process died", DIED)

    async def close(self) -> None:
        """End the idle processes."""
        idle, self._idle = self._idle, []
        for process in idle:
            process.let_go()
        for process in idle:
            await asyncio.to_thread(process.wait)  # the worker's own threads may all be building bots

    async def _job_here(self, assignment: Assignment, fetch: Callable[[str], bytes]) -> Job:
        """Return the job with this host's players, sandbox and time control.  Raises ClusterError."""
        job = assignment.job
        sandbox = self._sandboxes.get(job.sandbox)
        if sandbox is None:
            sandbox = await self._in_a_thread(sandbox_here, job.sandbox)
            self._sandboxes[job.sandbox] = sandbox
        first, second = [await self._player_here(packed, sandbox, fetch) for packed in assignment.packed_bots]
        control = scaled(job.control, assignment.reference_speed, self._speed)
        return replace(job, players=(first, second), sandbox=sandbox, control=control)

    async def _player_here(
        self, packed: PackedBot, sandbox: Sandbox, fetch: Callable[[str], bytes]
    ) -> Player:
        found = self._bot_cache.cached(packed)
        if found is None:
            found = await self._in_a_thread(self._bot_cache.prepare, packed, sandbox, fetch)
        return found

    async def _in_a_thread(self, function: Callable[..., Value], *arguments: object) -> Value:
        return await asyncio.get_running_loop().run_in_executor(self._threads, function, *arguments)

    def _sweep(self) -> None:
        """Kill the orphaned bots of a game process, which this process has adopted."""
        with self._children:
            kill_orphans()


def sandbox_here(asked: Sandbox) -> Sandbox:
    """Return this host's sandbox of the same tier.  Raises ClusterError if it has none so good."""
    if asked.tier is Tier.OFF:
        return asked
    here = find_sandbox(AUTO)
    tiers = list(Tier)
    if tiers.index(here.tier) > tiers.index(asked.tier):  # the best is the first
        raise ClusterError(f"bots are to be confined ({asked.tier}), and this host gives {here.tier} only")
    return here if here.tier is asked.tier else replace(here, tier=asked.tier, cgroup="")
