"""A worker on a machine without a batch system: it joins, plays, and ends when it receives a signal."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

import dask
from distributed import Nanny, rpc

from referee.process.subreaper import become_subreaper, kill_orphans
from tournaments.engines.remote.credentials import Credentials
from tournaments.engines.remote.extra import SETTINGS, ClusterError
from tournaments.engines.remote.waiting import DEMANDS, Demands
from tournaments.processes.process_settings import stopping_signals

CONNECT_LIMIT_S = 10.0
"""Time limit in seconds for connecting; a scheduler in the same network answers within 0.1 s."""
JOIN_LIMIT_S = 60.0
"""Limit in seconds for joining; a worker starts within 3 s on an idle machine."""
END_LIMIT_S = 10.0
"""Seconds after which a worker is killed; it cancels its games, and ends, within a second."""


def fetch_demands(scheduler: str, credentials: Credentials) -> Demands:
    """Return the demands of the tournament at a scheduler; no demands if none are published yet.

    Raises ClusterError if the scheduler refuses the connection.
    """

    async def fetch() -> dict[str, Any] | None:
        arguments = credentials.security().get_connection_args("client")
        async with rpc(scheduler, connection_args=arguments, timeout=CONNECT_LIMIT_S) as found:
            demands: dict[str, Any] | None = await found.get_metadata(keys=[DEMANDS], default=None)
            return demands

    try:
        published = asyncio.run(fetch())
    except (OSError, ValueError, RuntimeError) as error:
        raise ClusterError(
            f"{scheduler}: no scheduler at this address accepts the credentials of {credentials.directory}: "
            "is the tournament running, are these its own, is the address right, and does no firewall lie "
            "between?"
        ) from error
    return Demands() if published is None else Demands.from_json(published)


def work(
    scheduler: str,
    credentials: Credentials,
    options: dict[str, Any],
    joins: Callable[[], None],
    joined: Callable[[], None],
) -> bool:
    """Play games until a signal (SIGINT, SIGTERM, SIGHUP), then return True, or until the scheduler is gone.

    A worker that dies is restarted.  Games that are being played at the end are cancelled; no process of a
    bot is left.  For ``options`` see ``worker_options``.  ``joins`` is called once signals are handled, and
    ``joined`` when games can arrive.  Raises ClusterError if the scheduler cannot be joined.
    """
    become_subreaper()
    try:
        with dask.config.set(SETTINGS):
            return asyncio.run(_work(scheduler, credentials, options, joins, joined))
    finally:
        kill_orphans()


async def _work(
    scheduler: str,
    credentials: Credentials,
    options: dict[str, Any],
    joins: Callable[[], None],
    joined: Callable[[], None],
) -> bool:
    stop = asyncio.Event()
    for number in stopping_signals():
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    joins()
    nanny = Nanny(
        scheduler,
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
