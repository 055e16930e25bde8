"""Thousands of simulated Dask workers in one process, connected to a real scheduler; they start nothing.

Each has its own encrypted connection and sends the messages of a worker: its registration, the begin of a
game if it is no quick one, the game, the end of the task.  It plays as many games at a time as it has slots,
and returns waiting games when the scheduler requests them for another worker.  A game is a wait, and its
reply is made from one record.  There are no heartbeats, and no answers to other workers,
which never send requests.
"""

import argparse
import asyncio
import json
import os
import pickle
import resource
import sys
import time
import traceback
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Any

from distributed.comm import connect
from distributed.versions import get_versions

from benchmarks.instant import reply_to
from referee.judge.results import GameRecord
from referee.playing import Job
from referee.sandbox.bubblewrap import Tier
from tournaments.engines.remote.credentials import Credentials
from tournaments.engines.remote.host import HostFacts, Versions
from tournaments.engines.remote.worker.game_process import GAME
from tournaments.engines.remote.worker.worker_play import QUICK_S, Assignment
from tournaments.engines.remote.worker.worker_plugin import NAME, is_game, resources

JOINING_AT_ONCE = 20


class Cluster:
    """All simulated workers."""

    def __init__(self, scheduler: str, credentials: Path, slots: int, length_s: float, record: GameRecord):
        self.scheduler = scheduler
        self.arguments = Credentials(credentials).security().get_connection_args("worker")
        self.slots = slots
        self.length_s = length_s
        self.record = record
        self.topic = ""
        """Topic of the events that the head receives."""
        self.playing = 0
        self.most_playing = 0

    async def join(self, count: int) -> list["FakeWorker"]:
        """Connect the workers, some at a time."""
        limit = asyncio.Semaphore(JOINING_AT_ONCE)
        versions = get_versions()
        workers = [FakeWorker(self, number) for number in range(count)]

        async def join(worker: FakeWorker) -> None:
            async with limit:
                await worker.join(versions)

        await asyncio.gather(*map(join, workers))
        return workers


class FakeWorker:
    """Simulated worker."""

    def __init__(self, cluster: Cluster, number: int) -> None:
        self._cluster = cluster
        self._host = f"node{number:05d}"
        # Nobody listens there, and nobody calls.
        self._address = f"tls://10.{number >> 16}.{number >> 8 & 255}.{number & 255}:1"
        self._here = [self._address, self._host, cluster.slots]
        self._waiting: deque[dict[str, Any]] = deque()
        self._free = cluster.slots
        self._news: list[dict[str, Any]] = []
        self._is_sending = False

    async def join(self, versions: dict[str, Any]) -> None:
        """Connect and register, as a worker does."""
        slots = self._cluster.slots
        ours = Versions()
        facts = HostFacts(self._host, slots, Tier.OFF.value, 1e6, ours.kalarena, ours.python)
        self._comm = await connect(self._cluster.scheduler, **self._cluster.arguments)
        now = time.time()
        await self._comm.write(
            {
                "op": "register-worker",
                "reply": False,
                "address": self._address,
                "resolve_address": False,
                "status": "running",
                "nthreads": slots,
                "name": self._host,
                "now": now,
                "resources": resources(facts, slots),
                "memory_limit": None,
                "local_directory": "",
                "services": {},
                "nanny": None,
                "pid": 1,
                "versions": versions,
                "metrics": {NAME: facts.to_json()} | METRICS,
                "extra": {},
                "stimulus_id": f"worker-connect-{now}",
                "server_id": self._host,
            }
        )
        answer = await self._comm.read()
        assert answer["status"] == "OK", answer
        self._reading = asyncio.ensure_future(self._read())
        self._reading.add_done_callback(_raised)

    async def _read(self) -> None:
        with suppress(OSError):  # the scheduler has ended
            while True:
                for message in await self._comm.read():
                    match message["op"]:
                        case "compute-task":
                            self._waiting.append(message)
                        case "steal-request":
                            self._give_back(message)
                self._begin()

    def _give_back(self, asked: dict[str, Any]) -> None:
        key = _key(asked["key"])
        found = next((one for one in self._waiting if _key(one["key"]) == key), None)
        if found is not None:
            self._waiting.remove(found)
        self._send_message(
            {
                "op": "steal-response",
                "key": key,
                "state": "ready" if found is not None else "executing",
                "stimulus_id": asked["stimulus_id"],
            }
        )

    def _begin(self) -> None:
        while self._free and self._waiting:
            task = self._waiting.popleft()
            key = _key(task["key"])
            assert is_game(key), key
            cluster = self._cluster
            if not cluster.topic:
                cluster.topic = _topic(task["run_spec"])
            self._free -= 1
            cluster.playing += 1
            cluster.most_playing = max(cluster.most_playing, cluster.playing)
            if cluster.length_s > QUICK_S:
                self._send_message(_event(cluster.topic, {"game": list(key), "begins": self._here}))
            asyncio.get_running_loop().call_later(cluster.length_s, self._end, key, task, time.time())

    def _end(self, key: tuple[str, ...], task: dict[str, Any], began: float) -> None:
        cluster = self._cluster
        job = _job(task["run_spec"])
        reply = GAME + reply_to(job, cluster.record)
        self._send_message(_event(cluster.topic, {"game": list(key), "begins": self._here, "reply": reply}))
        self._send_message(
            {
                "op": "task-finished",
                "status": "OK",
                "key": key,
                "run_id": task["run_id"],
                "nbytes": 16,
                "type": NONE,
                "typename": "NoneType",
                "metadata": {},
                "thread": 1,
                "startstops": [{"action": "compute", "start": began, "stop": time.time()}],
                "stimulus_id": f"task-finished-{time.time()}",
            }
        )
        self._free += 1
        cluster.playing -= 1
        self._begin()

    def _send_message(self, message: dict[str, Any]) -> None:
        self._news.append(message)
        if not self._is_sending:
            self._is_sending = True
            self._sending = asyncio.ensure_future(self._send())
            self._sending.add_done_callback(_raised)

    async def _send(self) -> None:
        try:
            while self._news:
                news, self._news = self._news, []
                await self._comm.write(news)
        except OSError:  # the scheduler has ended
            return
        finally:
            self._is_sending = False


METRICS: dict[str, Any] = {
    "task_counts": {},
    "bandwidth": {"total": 1e8, "workers": {}, "types": {}},
    "digests_total_since_heartbeat": {},
    "managed_bytes": 0,
    "spilled_bytes": {"memory": 0, "disk": 0},
    "transfer": {"incoming_bytes": 0, "incoming_count": 0, "incoming_count_total": 0}
    | {"outgoing_bytes": 0, "outgoing_count": 0, "outgoing_count_total": 0},
    "event_loop_interval": 0.02,
    "cpu": 0.0,
    "memory": 0,
    "time": 0.0,
}
"""Metrics of an idle worker."""
NONE = pickle.dumps(type(None))


def _raised(task: "asyncio.Task[None]") -> None:
    """A mistake of ours ends all of it."""
    if not task.cancelled() and (error := task.exception()) is not None:
        traceback.print_exception(error)
        os._exit(1)


def _key(key: Any) -> tuple[str, ...]:
    return tuple(key)


def _event(topic: str, message: dict[str, Any]) -> dict[str, Any]:
    return {"op": "log-event", "topic": topic, "msg": message}


def _topic(run_spec: Any) -> str:
    """The second argument of the task, see ``play_on_worker``."""
    return str(run_spec.args[1])


def _job(run_spec: Any) -> Job:
    """Of its first argument."""
    assignment: Assignment = pickle.loads(run_spec.args[0])
    return assignment.job


async def main() -> None:
    """Simulate workers until standard input ends; then print the measurements."""
    parser = argparse.ArgumentParser()
    parser.add_argument("scheduler")
    parser.add_argument("credentials", type=Path)
    parser.add_argument("record", type=Path)
    parser.add_argument("--workers", type=int, required=True)
    parser.add_argument("--slots", type=int, required=True)
    parser.add_argument("--length", type=float, required=True, metavar="SECONDS")
    asked = parser.parse_args()
    record = GameRecord.from_msgpack(asked.record.read_bytes())
    cluster = Cluster(asked.scheduler, asked.credentials, asked.slots, asked.length, record)
    let_go = asyncio.Event()
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), let_go.set)
    workers = await cluster.join(asked.workers)
    before = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps({"workers": len(workers)}), flush=True)
    await let_go.wait()
    used = resource.getrusage(resource.RUSAGE_SELF)
    cpu = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
    print(json.dumps({"most_playing": cluster.most_playing, "cpu_s": cpu}), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
