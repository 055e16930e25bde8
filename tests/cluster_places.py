"""A cluster on this machine: a scheduler and worker hosts, each a process of its own, with TLS."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.test_engines import command_line
from tests.test_resume import descendants
from tournaments.engines.remote.credentials import Credentials
from tournaments.engines.remote.dask_engine import DaskEngine, open_dask_engine
from tournaments.engines.remote.waiting import wait_for_slots

START_LIMIT_S = 120.0
"""A node starts within 2 s on an idle machine; it took 40 s where twenty programs shared two cores."""
LOOK_S = 0.01
WHO = {"nanny": "tests.cluster_node worker", "worker": "spawn_main", "game": "worker.game_process"}
"""By what, on their command lines, the processes of a worker's host are known."""


@dataclass
class Cluster:
    """A scheduler and its workers."""

    folder: Path
    slots: int
    """Of each worker."""
    workers: dict[int, "subprocess.Popen[bytes]"] = field(default_factory=dict)
    """Their nannies, by the number of their host."""

    def start(self, *arguments: str, path: Path | None = None) -> "subprocess.Popen[bytes]":
        """A node; there are programs in ``path`` that others have not."""
        kind, *rest = arguments
        found = os.environ["PATH"] if path is None else f"{path}{os.pathsep}{os.environ['PATH']}"
        command = [sys.executable, "-m", "tests.cluster_node", kind, str(self.folder), *rest]
        log = (self.folder / "log").open("ab")
        with log:
            return subprocess.Popen(
                command,
                cwd=Path(__file__).parent.parent,
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

    def process_of(self, number: int, who: str) -> int:
        """One of WHO on a host, or its nanny where there is none just now."""
        nanny = self.workers[number].pid
        found = [pid for pid in descendants(nanny) if WHO[who] in command_line(pid)]
        return found[0] if found else nanny

    def kill(self, pid: int) -> None:
        """Kill a process; a nanny is replaced, as its host would do, and replaces a worker itself."""
        os.kill(pid, signal.SIGKILL)
        for number, nanny in self.workers.items():
            if nanny.pid == pid:
                self.remove(number)
                self.add_worker(number)
                return

    def leave(self, number: int) -> None:
        """Have a host leave, as its user or a batch system tells it to; wait until it has."""
        end([self.workers.pop(number)])

    def remove(self, number: int) -> None:
        """Have a host vanish."""
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
                await wait_for_slots(engine, len(self.workers) * self.slots, START_LIMIT_S)
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
        for number, nanny in cluster.workers.items():  # here, and not in the time that the first test has
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
