"""A scheduler or a worker host in a process of its own: `python -m tests.engines.cluster_node ...`.

It ends when its standard input does, so that none outlives the tests.
"""

import asyncio
import os
import sys
from pathlib import Path

import dask
import uvloop
from distributed import Nanny, Scheduler

from referee.process.subreaper import become_subreaper
from referee.sandbox.detection import AUTO, find_sandbox
from tournaments.engines.remote.credentials import Credentials
from tournaments.engines.remote.extra import SETTINGS
from tournaments.engines.remote.host import HostFacts, Versions
from tournaments.engines.remote.worker.worker_plugin import worker_options

SPEED = 1_234_567.0
"""Of host 0, and one more for each further one, by which they are told apart: nothing is measured here."""


async def until_input_ends() -> None:
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(0, ended.set)
    await ended.wait()


async def scheduler(folder: Path) -> None:
    security = Credentials(folder / "credentials").security()
    async with Scheduler(
        protocol="tls", host="127.0.0.1", port=0, dashboard=False, security=security
    ) as opened:
        (folder / "address.new").write_text(opened.address)
        (folder / "address.new").rename(folder / "address")
        await until_input_ends()


async def worker(folder: Path, slots: int, number: int) -> None:
    become_subreaper()
    tier, ours = find_sandbox(AUTO).tier.value, Versions()
    facts = HostFacts(f"host-{number}", slots, tier, SPEED + number, ours.kalarena, ours.python)
    async with Nanny(
        (folder / "address").read_text(),
        security=Credentials(folder / "credentials").security(),
        host="127.0.0.1",
        local_directory=str(folder / f"dask-{os.getpid()}"),
        **worker_options(facts, slots, folder / f"host-{os.getpid()}"),
    ):
        (folder / f"joined-{number}").touch()
        await until_input_ends()


if __name__ == "__main__":
    _, kind, where, *rest = sys.argv
    with dask.config.set(SETTINGS):
        uvloop.run(scheduler(Path(where)) if kind == "scheduler" else worker(Path(where), *map(int, rest)))
