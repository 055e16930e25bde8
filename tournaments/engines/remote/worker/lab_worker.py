"""A worker on a machine without a batch system: it joins, plays, and ends when it receives a signal."""

import asyncio
import contextlib
import signal
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import dask
from distributed import Nanny

from referee.process.subreaper import become_subreaper, kill_orphans
from tournaments.engines.remote.credentials import Credentials
from tournaments.engines.remote.extra import SETTINGS, ClusterError
from tournaments.engines.remote.host import HostFacts
from tournaments.engines.remote.worker.lifetime import Lifetime
from tournaments.engines.remote.worker.worker_plugin import worker_options

JOIN_LIMIT_S = 60.0
"""Limit in seconds for joining; a worker starts within 3 s on an idle machine."""
END_LIMIT_S = 10.0
"""Seconds after which a worker is killed; it cancels its games, and ends, within a second."""


def work(
    scheduler: str,
    credentials: Credentials,
    facts: HostFacts,
    slots: int,
    joins: Callable[[], None],
    joined: Callable[[], None],
    scratch: Path | None = None,
    name: str | None = None,
    lifetime_s: float | None = None,
) -> bool:
    """Play games until a signal (SIGINT, SIGTERM), then return True, or until the scheduler is gone.

    A worker that dies is restarted.  Games that are being played at the end are cancelled; no process of a
    bot is left.  ``joins`` is called once signals are handled, and ``joined`` when games can arrive; for
    ``scratch`` see ``GamePlugin``; ``name`` identifies the worker to the program that requested it.  After
    ``lifetime_s`` it will be killed, and begins no game that would not end by then, see
    tournaments/engines/remote/worker/lifetime.py.  Raises ClusterError if the scheduler cannot be joined.
    """
    become_subreaper()
    options = worker_options(facts, slots, scratch)
    if lifetime_s is not None:
        options["plugins"] += (Lifetime(time.time() + lifetime_s),)
    try:
        with dask.config.set(SETTINGS):
            return asyncio.run(_work(scheduler, credentials, options, joins, joined, name))
    finally:
        kill_orphans()


async def _work(
    scheduler: str,
    credentials: Credentials,
    options: dict[str, Any],
    joins: Callable[[], None],
    joined: Callable[[], None],
    name: str | None,
) -> bool:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    joins()
    nanny = Nanny(
        scheduler,
        name=name,
        security=credentials.security(),
        death_timeout=JOIN_LIMIT_S,
        dashboard_address="127.0.0.1:0",
        **options,
    )
    try:
        await _unless(stop, nanny.start())
        if not stop.is_set():
            joined()
            await _unless(stop, nanny.finished())
    except (OSError, RuntimeError) as error:
        raise ClusterError(f"{scheduler} could not be joined: {error.__cause__ or error}") from error
    except AssertionError as error:  # by Dask, which does not expect to end a worker while it starts
        why = f"the worker did not start within {JOIN_LIMIT_S:g} s"
        raise ClusterError(f"{scheduler} could not be joined: {why}") from error
    finally:
        with contextlib.suppress(AssertionError):  # by Dask while a worker starts, which ends with us
            await nanny.close(timeout=END_LIMIT_S)
    return stop.is_set()


async def _unless(stop: asyncio.Event, wanted: Awaitable[object]) -> None:
    """Wait for an awaitable, or until ``stop`` is set."""
    stopping, going_on = asyncio.ensure_future(stop.wait()), asyncio.ensure_future(wanted)
    await asyncio.wait((stopping, going_on), return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if going_on.done():
        going_on.result()
    else:
        going_on.cancel()
