"""Games on a worker: each in one of its game processes, which are used again."""

import contextlib
import itertools
import os
import selectors
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from referee.feed import DATAGRAM_BYTES
from referee.orphans import sweep_orphans
from referee.play import Job
from referee.probe import AUTO, find_sandbox
from referee.sandbox import Sandbox, Tier
from tournaments.cluster.bot_shelf import BotShelf
from tournaments.cluster.contents import Traveller
from tournaments.cluster.errors import ClusterError
from tournaments.cluster.fairness import scaled
from tournaments.cluster.game_process import ENDED, GIVE_UP, ORDER, Order, Reply, frame, read_frame, write_all
from tournaments.engines.following import listening
from tournaments.engines.local import FEED_PATTERN, usable_cores

QUICK_S = 0.05
"""A game that is over within it is told of once, by its reply, unless somebody follows it.  What a worker
says wakes three processes, on the cores of games."""
ENDS_WITHIN_S = 10.0
"""A game process that is told to end kills its bots, which takes milliseconds; after this it is killed."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """A game as a worker is asked for it; can be pickled."""

    job: Job
    """With commands and paths of the head."""
    travellers: tuple[Traveller, Traveller]
    own_core: bool = False
    reference_speed: float | None = None
    """Time limits are scaled from it, see tournaments/cluster/fairness.py."""
    followed: bool = False
    """Whether somebody wants snapshots."""


class GameProcess:
    """One process for games; started by its first."""

    def __init__(self) -> None:
        """Raises ClusterError."""
        try:
            self._process = subprocess.Popen(
                # -P: nothing in the worker's directory is imported in place of ours.
                [sys.executable, "-P", "-m", "tournaments.cluster.game_process"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                process_group=0,  # a signal to the worker's group must not end it before its bots
            )
        except OSError as error:
            raise ClusterError(f"no game process could be started: {error.strerror}") from error
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._orders, self._replies = self._process.stdin.fileno(), self._process.stdout.fileno()

    def begin(self, order: bytes) -> None:
        """Have a pickled order carried out, if the process lives."""
        with contextlib.suppress(OSError):
            write_all(self._orders, frame(ORDER, order))

    def reply(
        self, feed: int | None, begins: Callable[[], None], told: Callable[[bytes], None]
    ) -> Reply | None:
        """What became of an order, once that is known; None if the process died.

        ``feed`` is a descriptor of datagrams, each of which is passed on to ``told``.  For ``begins`` see
        ``WorkerGames.play``.
        """
        begun = False
        with selectors.DefaultSelector() as selector:
            selector.register(self._replies, selectors.EVENT_READ)
            if feed is not None:
                selector.register(feed, selectors.EVENT_READ)
            while self._replies not in (ready := self._ready(selector, None if begun else QUICK_S)):
                if not begun:
                    begins()
                    begun = True
                if feed is not None and feed in ready:
                    told(os.read(feed, DATAGRAM_BYTES))
        answer = read_frame(self._replies)
        return None if answer is None else Reply(*answer)

    @staticmethod
    def _ready(selector: selectors.BaseSelector, within_s: float | None) -> list[int]:
        return [key.fd for key, _ in selector.select(within_s)]

    def give_up(self) -> None:
        """End the game that it plays; from any thread, and also when it plays none."""
        try:
            write_all(self._orders, GIVE_UP)
        except OSError:  # it has ended
            return

    def close(self) -> None:
        """End it and its bots."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()


class WantedGame:
    """A game that a worker was told to play, for as long as somebody wants it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: GameProcess | None = None
        self.wanted = True

    def give_up(self) -> None:
        """Nobody wants it any more."""
        with self._lock:
            self.wanted = False
            if self._process is not None:
                self._process.give_up()

    def begin(self, process: GameProcess, order: bytes) -> bool:
        """Have it played by this process, if it is wanted still; whether it is.

        A word that it is not comes either before the order, which is not given then, or after it.
        """
        with self._lock:
            if self.wanted:
                self._process = process
                process.begin(order)
            return self.wanted

    def ended(self) -> None:
        """No process plays it any more."""
        with self._lock:
            self._process = None


class WorkerGames:
    """Plays assignments on this host.  Its methods may be called in several threads."""

    def __init__(self, scratch: Path, slots: int, speed: float | None) -> None:
        """``scratch`` is a folder of this host's own; ``speed`` is in positions per second."""
        self._scratch = scratch
        self._speed = speed
        self._children = threading.Lock()
        """Held by a build, and while left-behind bots are ended: a build's processes look like theirs."""
        self._shelf = BotShelf(scratch / "bots", self._children)
        self._shelf.remove_old()
        cores = usable_cores()
        self._all_cores = tuple(cores)
        self._places = [(core,) for core in cores[:slots]] if slots <= len(cores) else []
        self._lock = threading.Lock()
        self._idle: list[GameProcess] = []
        self._numbers = itertools.count()

    def play(
        self,
        assignment: Assignment,
        game: WantedGame,
        fetch: Callable[[str], bytes],
        begins: Callable[[], None],
        told: Callable[[bytes], None],
    ) -> Reply:
        """Play a game to its end.  Raises ClusterError if this host cannot.

        For ``fetch`` see BotShelf.  ``begins`` is called before the first snapshot, or when the game has
        lasted ``QUICK_S``; not if it is over by then.  ``told`` is called with snapshots.
        """
        job = self._job_here(assignment, fetch)
        process, cores = self._take(own_core=assignment.own_core)
        reply = None
        try:
            number = next(self._numbers)
            path = self._scratch / FEED_PATTERN.replace("*", f"{os.getpid()}-{number}")
            with listening(path) if assignment.followed else contextlib.nullcontext() as feed:
                order = Order(
                    job, assignment.job.players, cores, None if feed is None else str(path), self._speed
                )
                if not game.begin(process, order.packed()):
                    raise ClusterError("nobody wants this game any more")
                reply = process.reply(None if feed is None else feed.fileno(), begins, told)
        finally:
            game.ended()
            self._give_back(process, cores, alive=reply is not None)
        if reply is None:
            return Reply(ENDED, b"the game's process died")
        return reply

    def close(self) -> None:
        """End the processes that play nothing."""
        with self._lock:
            idle, self._idle = self._idle, []
        for process in idle:
            process.close()

    def _job_here(self, assignment: Assignment, fetch: Callable[[str], bytes]) -> Job:
        """The job with what this host has.  Raises ClusterError."""
        job = assignment.job
        sandbox = sandbox_here(job.sandbox)
        first, second = (self._shelf.ready(traveller, sandbox, fetch) for traveller in assignment.travellers)
        control = scaled(job.control, assignment.reference_speed, self._speed)
        return replace(job, players=(first, second), sandbox=sandbox, control=control)

    def _take(self, *, own_core: bool) -> tuple[GameProcess, tuple[int, ...]]:
        with self._lock:
            cores = self._places.pop() if own_core and self._places else self._all_cores
            process = self._idle.pop() if self._idle else None
        try:
            return process or GameProcess(), cores
        except ClusterError:
            self._free(cores)
            raise

    def _give_back(self, process: GameProcess, cores: tuple[int, ...], *, alive: bool) -> None:
        if not alive:
            process.close()
            with self._children:
                sweep_orphans()  # its bots, which are ours now
        else:
            with self._lock:
                self._idle.append(process)
        self._free(cores)

    def _free(self, cores: tuple[int, ...]) -> None:
        with self._lock:
            if cores != self._all_cores:
                self._places.append((cores[0],))


def sandbox_here(asked: Sandbox) -> Sandbox:
    """This host's sandbox of the same tier.  Raises ClusterError if it gives none so good."""
    if asked.tier is Tier.OFF:
        return asked
    here = find_sandbox(AUTO)
    tiers = list(Tier)
    if tiers.index(here.tier) > tiers.index(asked.tier):  # the best is the first
        raise ClusterError(f"bots are to be confined ({asked.tier}), and this host gives {here.tier} only")
    return here if here.tier is asked.tier else replace(here, tier=asked.tier, cgroup="")
