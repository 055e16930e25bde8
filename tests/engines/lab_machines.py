"""Processes of a cluster as people start them: a scheduler, `kalarena worker`, `kalarena tournament run`."""

import os
import shlex
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import trio
from distributed import Client, Security

from tests.server.server_process import ORPHANED_WORKER
from tests.support.builders import KALARENA

SCHEDULER = (sys.executable, "-P", "-m", "tournaments.engines.remote.scheduler_process")
"""A program for ``machine``."""
LIMIT_S = 300.0
"""Bound for what takes some seconds where cores are free."""
LOOK_S = 0.02
REFUSED_S = 3.0
"""A client tries again for so long; one that is let in needs a tenth of it."""


class Machine:
    """A process whose words can be waited for."""

    def __init__(self, process: trio.Process, said: Path) -> None:
        self.process = process
        self._said = said

    @property
    def said(self) -> str:
        """All of its standard output and error, but for what a process says whose parent is gone too soon."""
        return ORPHANED_WORKER.sub("", self._said.read_text())

    async def says(self, text: str) -> str:
        """All that it said, once a text is in it."""
        with trio.fail_after(LIMIT_S):
            await trio.lowlevel.checkpoint()
            while text not in self.said:
                assert self.process.returncode is None, self.said
                await trio.sleep(LOOK_S)
        return self.said

    async def ends(self, within_s: float = LIMIT_S) -> int:
        """Its exit status."""
        with trio.fail_after(within_s):
            return await self.process.wait()


@asynccontextmanager
async def machine(
    folder: Path, name: str, arguments: Sequence[str], program: Sequence[str] = (str(KALARENA),)
) -> AsyncIterator[Machine]:
    """`kalarena`, or another program, with these arguments, in a group of its own.

    Its standard input is held open until the end; if it is still there then, it is killed.
    """
    said = folder / f"{name}.said"
    with said.open("wb") as output:
        process = await trio.lowlevel.open_process(
            [*program, *arguments],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env={**os.environ, "PATH": f"{KALARENA.parent}{os.pathsep}{os.environ['PATH']}"},
            process_group=0,
        )
    try:
        yield Machine(process, said)
    finally:
        with trio.CancelScope(shield=True):
            if process.returncode is None:
                process.kill()
            await process.wait()
            assert process.stdin is not None
            await process.stdin.aclose()


def printed_command(said: str) -> list[str]:
    """The arguments of the command that a tournament prints for lab machines."""
    (line,) = [line for line in said.splitlines() if line.startswith("  kalarena worker ")]
    program, *arguments = shlex.split(line)
    assert program == "kalarena"
    return arguments


async def why_refused(address: str, security: Security, timeout_s: float = REFUSED_S) -> str:
    """Try to become a client of a scheduler, in asyncio: why that failed, or nothing if it did not."""
    client = Client(address, security=security, asynchronous=True, timeout=timeout_s)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(client.close)
        try:
            await client
        except OSError as error:  # CommClosedError is one, and so is a TimeoutError
            return f"{type(error).__name__}: {error}"
        assert client.scheduler_info()["address"] == address
    return ""
