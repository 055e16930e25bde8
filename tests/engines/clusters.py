"""A cluster on this machine: a scheduler and workers of several hosts, each a process, with TLS."""

import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import trio

from tests.engines.games import command_line
from tests.support.paths import REPOSITORY_ROOT
from tests.support.processes import descendants
from tournaments.engines.remote.credentials import Credentials
from tournaments.engines.remote.head.dask_engine import DaskEngine, open_dask_engine
from tournaments.engines.remote.waiting import wait_for_slots

START_LIMIT_S = 300.0
"""A node starts within 2 s on an idle machine; it took 40 s where twenty programs shared two
cores, and a scheduler probably more than 60 s."""
LOOK_S = 0.01
WHO = {"nanny": "tests.engines.cluster_node worker", "worker": "spawn_main", "game": "worker.game_process"}
"""Texts on the command lines of the processes of a worker's host."""


@dataclass
class Cluster:
    """A scheduler and its workers."""

    folder: Path
    slots: int
    """Of each worker."""
    workers: dict[int, "subprocess.Popen[bytes]"] = field(default_factory=dict)
    """Their nannies, by the number of their host."""

    def start(self, *arguments: str, path: Path | None = None) -> "subprocess.Popen[bytes]":
        """Start a node; ``path`` is a folder of programs that other nodes do not have."""
        kind, *rest = arguments
        found = os.environ["PATH"] if path is None else f"{path}{os.pathsep}{os.environ['PATH']}"
        command = [sys.executable, "-m", "tests.engines.cluster_node", kind, str(self.folder), *rest]
        log = (self.folder / "log").open("ab")
        with log:
            return subprocess.Popen(
                command,
                cwd=REPOSITORY_ROOT,
                env={**os.environ, "PATH": found},
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
            )

    def add_worker(self, number: int, path: Path | None = None) -> None:
        self.workers[number] = self.start("worker", str(self.slots), str(number), path=path)

    def process_that_plays(self, text: str, who: str) -> int:
        """One of WHO that plays the game of a bot with this text on its command line."""
        nanny = self.workers[self.host_that_plays(text)].pid
        for pid in [nanny, *descendants(nanny)]:
            playing = any(text in command_line(child) for child in descendants(pid))
            if playing and WHO[who] in command_line(pid):
                return pid
        raise AssertionError(f"nothing plays {text}")

    def host_that_plays(self, text: str) -> int:
        """The number of the host where the game of such a bot is played."""
        for number, nanny in self.workers.items():
            if any(text in command_line(pid) for pid in descendants(nanny.pid)):
                return number
        raise AssertionError(f"nothing plays {text}")

    def leave(self, number: int) -> None:
        """End a host as its user or a batch system does, and wait for its end."""
        end([self.workers.pop(number)])

    def remove(self, number: int) -> None:
        """Kill a host's nanny."""
        nanny = self.workers.pop(number)
        nanny.kill()
        nanny.wait()
        assert nanny.stdin is not None
        nanny.stdin.close()

    @property
    def address(self) -> str:
        return (self.folder / "address").read_text()

    @asynccontextmanager
    async def engine(
        self, name: str = "test", *, wait: bool = True, **options: Any
    ) -> AsyncIterator[DaskEngine]:
        """An engine; wait until all workers are there."""
        security = Credentials(self.folder / "credentials").security()
        async with open_dask_engine(self.address, name, security=security, **options) as engine:
            if wait:
                with trio.fail_after(START_LIMIT_S):
                    await wait_for_slots(engine, len(self.workers) * self.slots, print)
            yield engine


@contextmanager
def open_cluster(folder: Path, workers: int = 2, slots: int = 1) -> Iterator[Cluster]:
    Credentials.made(folder / "credentials")
    cluster = Cluster(folder, slots)
    scheduler = cluster.start("scheduler")
    try:
        wait_for(folder / "address", scheduler)
        for number in range(workers):
            cluster.add_worker(number)
        for number, nanny in cluster.workers.items():  # here, since the time of the first test is limited
            wait_for(folder / f"joined-{number}", nanny)
        yield cluster
    finally:
        end(cluster.workers.values())
        end([scheduler])


def wait_for(path: Path, node: "subprocess.Popen[bytes]") -> None:
    """Wait until a node has made a file."""
    log = path.with_name("log")
    until = time.monotonic() + START_LIMIT_S
    while not path.exists():
        assert time.monotonic() < until, log.read_text()
        assert node.poll() is None, log.read_text()
        time.sleep(LOOK_S)


def end(nodes: "Collection[subprocess.Popen[bytes]]") -> None:
    """End nodes, and what they started, whatever they do."""
    for node in nodes:
        assert node.stdin is not None
        node.stdin.close()
    for node in nodes:
        try:
            node.wait(START_LIMIT_S)
        finally:
            node.kill()
            node.wait()
