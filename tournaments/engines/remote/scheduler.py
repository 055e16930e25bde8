"""A scheduler on this machine, for as long as a tournament runs here."""

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from referee.process.subreaper import spare
from tournaments.engines.remote.credentials import Credentials
from tournaments.engines.remote.extra import ClusterError

START_LIMIT_S = 300.0
"""Limit in seconds for its start.

A start takes 2 s on an idle machine; on two cores with a load of 23, none was seen within 60 s.  A scheduler
that ends is noticed at once.
"""
END_LIMIT_S = 10.0
"""Seconds after which it is killed; it disconnects its workers in less than a second."""
LINE_BYTES = 10_000


@asynccontextmanager
async def open_scheduler(
    credentials: Credentials, log: Path, host: str | None = None, port: int = 0
) -> AsyncIterator[str]:
    """Run a scheduler and yield its address, to which only holders of the credentials can connect.

    ``host`` is the address of this machine where it listens, None for every one; ``port`` 0 is any that is
    free.  Errors are appended to the file ``log``.  Raises ClusterError.
    """
    command = [sys.executable, "-P", "-m", "tournaments.engines.remote.scheduler_process"]
    command += [str(credentials.directory.resolve()), "--port", str(port)]
    command += ["--host", host] if host is not None else []
    try:
        await trio.Path(log.parent).mkdir(parents=True, exist_ok=True)
        with log.open("ab") as errors:
            # In a session of its own: Ctrl-C in a terminal stops the tournament first.
            process = await trio.lowlevel.open_process(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, start_new_session=True
            )
    except OSError as error:
        raise ClusterError(f"no scheduler could be started: {error.strerror}: {log}") from error
    with spare(process.pid):
        try:
            yield await _address(process, log)
        finally:
            with trio.CancelScope(shield=True):
                await _end(process)


async def _address(process: trio.Process, log: Path) -> str:
    assert process.stdout is not None
    line = b""
    with trio.move_on_after(START_LIMIT_S) as limit:
        while more := await process.stdout.receive_some(LINE_BYTES):
            line += more
            if line.endswith(b"\n"):
                break
    if limit.cancelled_caught:
        raise ClusterError(
            f"the scheduler did not start within {START_LIMIT_S:g} s; {log} may have the reason"
        )
    try:
        message = json.loads(line)
    except ValueError as error:
        raise ClusterError(f"the scheduler did not start; {log} may have the reason") from error
    if "address" not in message:
        raise ClusterError(f"the scheduler could not be started: {message['error']}")
    return str(message["address"])


async def _end(process: trio.Process) -> None:
    """End the process by closing its standard input, or by force."""
    assert process.stdin is not None
    assert process.stdout is not None
    await process.stdin.aclose()
    with trio.move_on_after(END_LIMIT_S):
        await process.wait()
    if process.returncode is None:
        process.kill()
        await process.wait()
    await process.stdout.aclose()
